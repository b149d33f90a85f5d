// Single sparse tensors: they are cut out of the first dimension of a larger one, kept on their own, and put together
// again. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_SPARSE_PARTS_H
#define TFC_RUNTIME_OPS_SPARSE_PARTS_H

#include "runtime/ops/sparse_common.h"

struct ops_sparse_part {
  struct tfc_tensor at, values, dims; // int64 [n, rank], [n], int64 [rank]
};
void ops_sparse_part_release(struct ops_sparse_part *p);
// Takes inputs 0 to 2 as they are: only their ranks are checked.
TFC_MUST_USE tfc_status ops_sparse_part_inputs(struct tfc_kernel_ctx *ctx, struct ops_sparse_part *out);

// Reads inputs 0 to 2, whose first dimension becomes the parts: elements must be in order and inside the shape, none
// may occur twice, and there must be at least two dimensions.
TFC_MUST_USE tfc_status ops_sparse_rows(struct tfc_kernel_ctx *ctx, struct ops_sparse *out);
// Makes a part of the elements of `row`, which begin at `*at`; *at moves behind them.
TFC_MUST_USE tfc_status ops_sparse_row(const struct ops_sparse *x, int64_t row, int64_t *at,
                                       struct ops_sparse_part *out);

// Checks that part `index` is a sparse tensor with values of this type.
TFC_MUST_USE tfc_status ops_sparse_part_check(const struct ops_sparse_part *p, int64_t index, tfc_dtype dtype);
// Sets outputs 0 to 2 to `count` parts (at least one), stacked over the dimensions `outer`, whose product is `count`.
// The result's shape is the smallest that holds all parts.
TFC_MUST_USE tfc_status ops_sparse_stack(struct tfc_kernel_ctx *ctx, const struct ops_sparse_part *parts, int64_t count,
                                         const struct tfc_shape *outer);

#endif
