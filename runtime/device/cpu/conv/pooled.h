// Convolutions of which only the maxima of windows are wanted.
#ifndef TFC_RUNTIME_DEVICE_CPU_CONV_POOLED_H
#define TFC_RUNTIME_DEVICE_CPU_CONV_POOLED_H

#include "runtime/device/cpu/conv_sizes.h"
#include "runtime/host/gemm/products.h"
#include "runtime/ops/nn_pool.h"

// y = the maxima that `pool` describes of a convolution, which is the product `p` [positions, filters], finished as
// ctx->finish says. RESOURCE_EXHAUSTED: no memory for some lines of the convolution.
TFC_MUST_USE tfc_status tfc_pooled_run(struct tfc_kernel_ctx *ctx, const struct tfc_conv_sizes *sizes,
                                       const struct tfc_product *p, const struct tfc_pool *pool, float *y);

#endif
