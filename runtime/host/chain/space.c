#include "runtime/host/chain/space.h"

struct tfc_chain_space tfc_chain_space_of(const struct tfc_shape *shape) {
  int64_t columns = shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
  int64_t elements = tfc_shape_elements(shape);
  return (struct tfc_chain_space){columns > 0 ? elements / columns : 0, columns};
}

// Whether the rows of an operand repeat over the space: its leading dimensions are 1, then equal to those of the space,
// then 1 again.
static bool repeats(const struct tfc_shape *operand, const struct tfc_shape *whole, struct tfc_chain_operand *out) {
  enum { BEHIND, EQUAL, BEFORE } part = BEHIND;
  out->each = out->cycle = 1;
  if (operand->rank > whole->rank) return false;
  for (int i = 1; i < whole->rank; i++) {
    int64_t all = whole->dims[whole->rank - 1 - i], own = i < operand->rank ? operand->dims[operand->rank - 1 - i] : 1;
    if (own != all && own != 1) return false;
    if (all == 1) continue;
    if (own == all) {
      if (part == BEFORE) return false;
      part = EQUAL;
      out->cycle *= all;
    } else if (part == BEHIND) {
      out->each *= all;
    } else {
      part = BEFORE;
    }
  }
  return true;
}

bool tfc_chain_lies(const struct tfc_shape *operand, const struct tfc_shape *whole, struct tfc_chain_space space,
                    struct tfc_chain_operand *out) {
  int64_t elements = tfc_shape_elements(operand), last = operand->rank > 0 ? operand->dims[operand->rank - 1] : 1;
  out->offset = out->each = out->cycle = 0;
  if (elements == 1) {
    out->row = out->column = 0;
  } else if (last == space.columns && elements == space.rows * space.columns) {
    out->row = space.columns, out->column = 1;
  } else if (last == space.columns && elements == space.columns) {
    out->row = 0, out->column = 1;
  } else if (last == 1 && elements == space.rows && operand->rank == whole->rank) {
    out->row = 1, out->column = 0;
  } else if ((last == space.columns || last == 1) && elements > 0) {
    out->row = last, out->column = last == space.columns;
    return repeats(operand, whole, out);
  } else {
    return false;
  }
  return true;
}

bool tfc_chain_is_whole(const struct tfc_shape *operand, struct tfc_chain_space space) {
  int64_t last = operand->rank > 0 ? operand->dims[operand->rank - 1] : 1;
  return last == space.columns && tfc_shape_elements(operand) == space.rows * space.columns;
}
