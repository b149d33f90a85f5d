#include "runtime/ops/array_index.h"

// Appends the position of element `at`, like "[1,0]", in a tensor with the first `rank` dimensions of `shape`; "" for a
// scalar.
static void add_position(struct tfc_text *text, const struct tfc_shape *shape, int rank, int64_t at) {
  int64_t place[TFC_MAX_RANK];
  for (int d = rank - 1; d >= 0; at /= shape->dims[d], d--) place[d] = at % shape->dims[d];
  for (int d = 0; d < rank; d++)
    tfc_text_printf(text, "%s%lld%s", d ? "," : "[", (long long)place[d], d == rank - 1 ? "]" : "");
}

tfc_status ops_bad_index(const struct tfc_tensor *indices, int64_t at, int64_t limit) {
  struct tfc_text where = {0};
  add_position(&where, &indices->shape, indices->shape.rank, at);
  tfc_status s =
      tfc_status_make(TFC_INVALID_ARGUMENT, "indices%s = %lld is not in [0, %lld)", where.data ? where.data : "",
                      (long long)tfc_tensor_int(indices, at), (long long)limit);
  tfc_text_deinit(&where);
  return s;
}

tfc_status ops_bad_slice(const struct tfc_tensor *indices, int64_t at, const char *into,
                         const struct tfc_shape *shape) {
  struct tfc_text where = {0};
  int rank = indices->shape.rank - 1;
  int64_t depth = indices->shape.dims[rank];
  char text[TFC_SHAPE_TEXT];
  add_position(&where, &indices->shape, rank, at);
  tfc_text_printf(&where, " = [");
  for (int64_t d = 0; d < depth; d++)
    tfc_text_printf(&where, "%s%lld", d ? ", " : "", (long long)tfc_tensor_int(indices, at * depth + d));
  tfc_status s = tfc_status_make(TFC_INVALID_ARGUMENT, "indices%s] does not index into %s %s",
                                 where.data ? where.data : "", into, tfc_shape_show(shape, text));
  tfc_text_deinit(&where);
  return s;
}
