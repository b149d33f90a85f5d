#include "runtime/ops/collective_parts.h"

#include <string.h>

#include "runtime/ops/collective_math.h"

tfc_status tfc_collective_check(const struct tfc_collective_call *how, const struct tfc_tensor *value) {
  const bool sums = how->kind == TFC_COLLECTIVE_REDUCE || how->kind == TFC_COLLECTIVE_REDUCE_SCATTER;
  if (how->size < 1) return tfc_status_make(TFC_INVALID_ARGUMENT, "group_size must be at least 1, not %d", how->size);
  if (sums && !tfc_collective_takes(how->dtype))
    return tfc_status_make(TFC_UNIMPLEMENTED, "tensors of type %s are not reduced", tfc_dtype_name(how->dtype));
  if (!tfc_dtype_is_plain(how->dtype))
    return tfc_status_make(TFC_UNIMPLEMENTED, "a %s cannot leave its task", tfc_dtype_name(how->dtype));
  if (!value || how->kind == TFC_COLLECTIVE_REDUCE || how->kind == TFC_COLLECTIVE_BROADCAST) return NULL;
  if (value->shape.rank < 1)
    return tfc_status_make(TFC_INVALID_ARGUMENT, how->kind == TFC_COLLECTIVE_GATHER
                                                     ? "a scalar cannot be gathered: its first dimension grows"
                                                     : "a scalar cannot be divided among the members");
  const int64_t rows = value->shape.dims[0];
  if (how->kind == TFC_COLLECTIVE_ALL_TO_ALL && rows != how->size)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "the first dimension of what goes from all to all is %lld, and the group has %d members",
                           (long long)rows, how->size);
  if (how->kind == TFC_COLLECTIVE_REDUCE_SCATTER && rows % how->size)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a first dimension of %lld cannot be divided among %d members",
                           (long long)rows, how->size);
  return NULL;
}

tfc_status tfc_collective_own(const struct tfc_collective_call *how, uint32_t place, const struct tfc_tensor *all,
                              struct tfc_tensor *out) {
  struct tfc_shape shape = all->shape;
  if (how->kind != TFC_COLLECTIVE_REDUCE_SCATTER && how->kind != TFC_COLLECTIVE_ALL_TO_ALL) {
    tfc_tensor_share(all, out);
    return NULL;
  }
  shape.dims[0] /= how->size; // of all tensors, one; of a sum, a piece
  TFC_RETURN_IF_ERROR(tfc_tensor_create(all->dtype, &shape, out));
  if (!out->size) return NULL;
  if (how->kind == TFC_COLLECTIVE_REDUCE_SCATTER) {
    memcpy(out->data, (const char *)all->data + place * out->size, out->size);
    return NULL;
  }
  const size_t row = out->size / (size_t)how->size;
  for (size_t i = 0; i < (size_t)how->size; i++)
    memcpy((char *)out->data + i * row, (const char *)all->data + i * out->size + place * row, row);
  return NULL;
}
