// Strided slices as StridedSlice describes them: begin, end, strides and five masks, made into a block of the input.
// Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_ARRAY_SLICE_H
#define TFC_RUNTIME_OPS_ARRAY_SLICE_H

#include "runtime/ops/kernel.h"

struct ops_slice_masks {
  int64_t begin, end, ellipsis, new_axis, shrink_axis;
};
struct ops_slice {
  struct tfc_shape shape;      // of the result, with new axes and without the shrunk ones
  struct tfc_shape processing; // of the block: one size for each dimension of the input
  int64_t begin[TFC_MAX_RANK], stride[TFC_MAX_RANK];
};
struct ops_slice_masks ops_slice_masks_of(const struct tfc_graph *graph, const struct tfc_node *node);
// begin, end and strides hold `count` values each; begin and end may be NULL (nothing known), then sizes that depend on
// them are unknown, as are those of unknown dimensions of the input. INVALID_ARGUMENT as TensorFlow.
TFC_MUST_USE tfc_status ops_slice_resolve(const struct tfc_shape *input, int count, const int64_t *begin,
                                          const int64_t *end, const int64_t *strides,
                                          const struct ops_slice_masks *masks, struct ops_slice *out);
// The same from tensors.
TFC_MUST_USE tfc_status ops_slice_of_tensors(const struct tfc_shape *input, const struct tfc_tensor *begin,
                                             const struct tfc_tensor *end, const struct tfc_tensor *strides,
                                             const struct ops_slice_masks *masks, struct ops_slice *out);
// Writes `value`, broadcast to the slice's shape, into the slice of `target` [of the input's shape].
TFC_MUST_USE tfc_status ops_slice_assign(struct tfc_kernel_ctx *ctx, struct tfc_tensor *target,
                                         const struct ops_slice *slice, const struct tfc_tensor *value);

#endif
