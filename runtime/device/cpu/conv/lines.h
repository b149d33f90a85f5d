// The gradient of a convolution's filter over pictures, by lines of positions: for few filters, where patches cost as
// much to pack as to multiply.
#ifndef TFC_RUNTIME_DEVICE_CPU_CONV_LINES_H
#define TFC_RUNTIME_DEVICE_CPU_CONV_LINES_H

#include "runtime/device/cpu/conv/patches.h"
#include "runtime/ops/kernel.h"

// Does this way pay?
bool tfc_lines_pay(const struct tfc_patches *p, int64_t filters);
// dw [size[0] * size[1] * channels, filters] = patches of x, transposed · dy [positions, filters]. Sums over lines are
// split the same way on any number of cores. RESOURCE_EXHAUSTED.
TFC_MUST_USE tfc_status tfc_lines_filter(struct tfc_kernel_ctx *ctx, const struct tfc_patches *p, const float *dy,
                                         int64_t filters, float *dw);

#endif
