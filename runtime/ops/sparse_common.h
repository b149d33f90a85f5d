// Sparse tensors as three tensors: indices [n, rank] int64, values [n], dense_shape [rank].
// Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_SPARSE_COMMON_H
#define TFC_RUNTIME_OPS_SPARSE_COMMON_H

#include "runtime/ops/row.h"

struct ops_sparse {
  const int64_t *at; // [count, rank]
  int64_t count;
  int rank;
  const struct tfc_tensor *values;
  const int64_t *dims; // [rank]
};
// Reads inputs `indices`, `values` (TFC_NONE: none) and `shape` and checks them against each other. `inside`: every
// index must be within the shape.
TFC_MUST_USE tfc_status ops_sparse_input(struct tfc_kernel_ctx *ctx, uint32_t indices, uint32_t values, uint32_t shape,
                                         bool inside, struct ops_sparse *out);
// Compares index vectors in row-major order: negative, 0 or positive.
int ops_sparse_compare(const int64_t *a, const int64_t *b, int rank);
// order[i] becomes the element that is i-th in row-major order; equal ones keep their order.
void ops_sparse_order(const int64_t *at, int64_t count, int rank, int64_t *order);
// Makes outputs `first` (indices [count, rank]) and `first + 1` (values).
TFC_MUST_USE tfc_status ops_sparse_output(struct tfc_kernel_ctx *ctx, uint32_t first, int64_t count, int rank,
                                          tfc_dtype dtype, int64_t **out_at, struct tfc_tensor **out_values);
TFC_MUST_USE tfc_status ops_sparse_shape_output(struct tfc_kernel_ctx *ctx, uint32_t i, const int64_t *dims, int rank);

// For shape functions: outputs are indices [?, rank], values [?] and, if `with_shape`, a shape [rank]. The rank is the
// number of elements in input `i`, which is a shape.
TFC_MUST_USE tfc_status ops_shape_sparse(struct tfc_shape_ctx *ctx, uint32_t first, uint32_t i, bool with_shape);

#endif
