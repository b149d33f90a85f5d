// Computes the gradient of a 2-D convolution's filter line by line of the output. It is used for few filters, of which
// a product's vectors would be mostly empty.
#ifndef TFC_RUNTIME_DEVICE_CPU_CONV_LINES_H
#define TFC_RUNTIME_DEVICE_CPU_CONV_LINES_H

#include "runtime/device/cpu/conv/patches.h"
#include "runtime/ops/kernel.h"

// Whether tfc_lines_filter is expected to be faster than products over patches.
bool tfc_lines_pay(const struct tfc_patches *p, int64_t filters);
// dw [size[0] * size[1] * channels, filters] = patches of x, transposed · dy [positions, filters]. The result does not
// depend on the number of cores. RESOURCE_EXHAUSTED: no memory for the sums.
TFC_MUST_USE tfc_status tfc_lines_filter(struct tfc_kernel_ctx *ctx, const struct tfc_patches *p, const float *dy,
                                         int64_t filters, float *dw);

#endif
