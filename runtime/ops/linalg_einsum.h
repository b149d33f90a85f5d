// An Einsum as matrix products that read the operands in place (without copies), for kernels of devices.
#ifndef TFC_RUNTIME_OPS_LINALG_EINSUM_H
#define TFC_RUNTIME_OPS_LINALG_EINSUM_H

#include "runtime/ops/kernel.h"

enum { OPS_EINSUM_BATCH = 2 * TFC_MAX_RANK };
// For every index of the batch dimensions C [m, n] = A [m, k] B [k, n]. Strides are in elements; element (i, j) of A is
// at i * a_row + j * a_column, and so on. Rows of C are contiguous.
struct ops_einsum_products {
  int64_t m, n, k, a_row, a_column, b_row, b_column, c_row;
  bool swapped; // A is the second operand
  int rank;     // number of batch dimensions
  int64_t dims[OPS_EINSUM_BATCH], a[OPS_EINSUM_BATCH], b[OPS_EINSUM_BATCH], c[OPS_EINSUM_BATCH];
  struct tfc_shape out;
};
// UNIMPLEMENTED: the equation of `node` is no such product: it has one operand, a label is summed in one operand alone
// or repeated in it, or no single stride describes joined dimensions. INVALID_ARGUMENT: it does not fit to the shapes.
TFC_MUST_USE tfc_status ops_einsum_as_products(const struct tfc_graph *graph, const struct tfc_node *node,
                                               const struct tfc_shape *const shapes[2],
                                               struct ops_einsum_products *out);

#endif
