// Strided slices as StridedSlice describes them, by begin, end, strides and five masks, turned into a block of the
// input.
// Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_ARRAY_SLICE_H
#define TFC_RUNTIME_OPS_ARRAY_SLICE_H

#include "runtime/ops/kernel.h"

struct ops_slice_masks {
  int64_t begin, end, ellipsis, new_axis, shrink_axis;
};
struct ops_slice {
  struct tfc_shape shape;      // shape of the result, with new axes and without the shrunk ones
  struct tfc_shape processing; // shape of the block: one size for each dimension of the input
  int64_t begin[TFC_MAX_RANK], stride[TFC_MAX_RANK];
};
struct ops_slice_masks ops_slice_masks_of(const struct tfc_graph *graph, const struct tfc_node *node);
// Computes the slice of `input` that begin, end and strides describe. Where the input's size is unknown, the slice's
// size may be unknown too. Fails with INVALID_ARGUMENT for what TensorFlow rejects.
TFC_MUST_USE tfc_status ops_slice_of_tensors(const struct tfc_shape *input, const struct tfc_tensor *begin,
                                             const struct tfc_tensor *end, const struct tfc_tensor *strides,
                                             const struct ops_slice_masks *masks, struct ops_slice *out);

#endif
