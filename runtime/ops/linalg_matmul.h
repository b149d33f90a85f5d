// Matrix products of any numeric type, for the ops that consist of them. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_LINALG_MATMUL_H
#define TFC_RUNTIME_OPS_LINALG_MATMUL_H

#include "runtime/ops/kernel.h"

// out [m, n] = op(a) op(b), where op(a) [m, k] is a as stored, transposed, or transposed and conjugated. All matrices
// are row-major and dense. Work is split by shape alone, so results do not depend on the number of cores.
enum ops_transpose { OPS_PLAIN, OPS_TRANSPOSED, OPS_ADJOINT };
struct ops_matmul {
  tfc_dtype a_type, out_type; // b has a's type; out_type differs from it only for products of int8 or uint8 in int32
  int64_t m, n, k;
  enum ops_transpose a, b;
};
// Computes `count` products. Pair i multiplies matrix a_index[i] of a by matrix b_index[i] of b; NULL stands for 0, 1,
// 2, ...
TFC_MUST_USE tfc_status ops_matmul_batch(struct tfc_kernel_ctx *ctx, const struct ops_matmul *mm, const void *a,
                                         const void *b, void *out, int64_t count, const int64_t *a_index,
                                         const int64_t *b_index);

#endif
