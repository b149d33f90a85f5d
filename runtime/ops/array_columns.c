// Shapes are static here. If an axis, a begin or a size is not known when planning, the answer is false.
#include "runtime/ops/array_columns.h"

#include "runtime/graph/tensor.h"

static bool is_last(const struct tfc_tensor *axis, const struct tfc_shape *shape) {
  if (!axis || tfc_tensor_elements(axis) != 1 || shape->rank < 1) return false;
  const int64_t at = tfc_tensor_int(axis, 0);
  return at == shape->rank - 1 || at == -1;
}

static bool takes_slice(const struct tfc_columns_of *op, int64_t *out_first) { // inputs: x, begin, size
  const struct tfc_shape *x = op->shapes[0];
  const struct tfc_tensor *begin = op->values[1], *size = op->values[2];
  if (!begin || !size || x->rank < 1 || tfc_tensor_elements(begin) != x->rank || tfc_tensor_elements(size) != x->rank)
    return false;
  for (int d = 0; d + 1 < x->rank; d++) {
    const int64_t n = tfc_tensor_int(size, d);
    if (tfc_tensor_int(begin, d) || (n != -1 && n != x->dims[d])) return false;
  }
  *out_first = tfc_tensor_int(begin, x->rank - 1);
  return true;
}

bool tfc_takes_columns(const struct tfc_columns_of *op, uint32_t output, uint32_t *out_input, int64_t *out_first) {
  const tfc_plan_trait trait = op->def->plan_trait;
  *out_input = 0;
  *out_first = 0;
  if (trait == TFC_PLAN_SLICE && op->input_count == 3) return takes_slice(op, out_first);
  if (trait == TFC_PLAN_SPLIT_SIZES && op->input_count == 3) {
    const struct tfc_tensor *sizes = op->values[1];
    if (!sizes || !is_last(op->values[2], op->shapes[0])) return false;
    for (uint32_t i = 0; i < output; i++) {
      if (tfc_tensor_int(sizes, i) < 0) return false; // -1: the rest of the dimension
      *out_first += tfc_tensor_int(sizes, i);
    }
    return true;
  }
  if (trait == TFC_PLAN_SPLIT && op->input_count == 2) { // inputs: axis, value; all outputs have the same size
    const struct tfc_shape *x = op->shapes[1];
    *out_input = 1;
    if (!is_last(op->values[0], x) || !op->output_count || x->dims[x->rank - 1] % op->output_count) return false;
    *out_first = output * (x->dims[x->rank - 1] / op->output_count);
    return true;
  }
  return false;
}

bool tfc_joins_columns(const struct tfc_columns_of *op, uint32_t *out_count) {
  *out_count = op->input_count - 1;
  return op->def->plan_trait == TFC_PLAN_CONCAT && op->input_count > 1 &&
         is_last(op->values[op->input_count - 1], op->shapes[0]);
}
