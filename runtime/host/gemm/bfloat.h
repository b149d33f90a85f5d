// Matrix products of bfloat16 with the processor's dot products of pairs (VDPBF16PS). Each element of C is one chain
// over ascending pairs of k, starting from zero, in float32, and is rounded once, at its end: the same bits however the
// product is split. Subnormal numbers count as zero.
#ifndef TFC_RUNTIME_HOST_GEMM_BFLOAT_H
#define TFC_RUNTIME_HOST_GEMM_BFLOAT_H

#include "runtime/ops/kernel.h"

// Whether this process may use the instructions, and the processor has them.
bool tfc_bfloat_available(void);

// A matrix in memory by strides in elements: element (i, j) is data[i * row + j * column].
struct tfc_bfloat_matrix {
  const uint16_t *data;
  int64_t row, column;
};
struct tfc_bfloat_product { // C [m, n], `c_row` elements from row to row, = A [m, k] times B [k, n]
  struct tfc_bfloat_matrix a, b;
  int64_t m, k, n;
  uint16_t *c;
  int64_t c_row;
};
// Computes the product on all cores of the device; ctx NULL: on the calling thread. RESOURCE_EXHAUSTED: no memory to
// pack an operand. Only where tfc_bfloat_available.
TFC_MUST_USE tfc_status tfc_bfloat_run(struct tfc_kernel_ctx *ctx, const struct tfc_bfloat_product *product);
// Computes `count` products of the same size: at least as many as the device has cores, each on one core; fewer, one
// after the other on all cores. `at` gives product i. Errors as tfc_bfloat_run.
TFC_MUST_USE tfc_status tfc_bfloat_run_all(struct tfc_kernel_ctx *ctx, int64_t count,
                                           struct tfc_bfloat_product (*at)(const void *batch, int64_t i),
                                           const void *batch);

#endif
