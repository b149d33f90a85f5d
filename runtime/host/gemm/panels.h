// Products whose right side is packed where it is used: one panel at a time, by the thread that multiplies by it.
#ifndef TFC_RUNTIME_HOST_GEMM_PANELS_H
#define TFC_RUNTIME_HOST_GEMM_PANELS_H

#include "runtime/host/gemm/products.h"

// Whether tfc_panels_run is faster for A [m, k] B [k, n] on so many threads, if B is not packed yet. `transposed`: B is
// stored transposed (its columns are contiguous).
bool tfc_panels_pay(int64_t threads, int64_t m, int64_t k, int64_t n, bool transposed);
// Computes C [m, n] = A B. `ctx` NULL: only on this thread.
TFC_MUST_USE tfc_status tfc_panels_run(struct tfc_kernel_ctx *ctx, const struct tfc_product *p, int64_t m, int64_t n,
                                       float *c);

#endif
