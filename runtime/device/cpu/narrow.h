// Converts 16-bit floats to float32 and back, for kernels that compute in float32.
#ifndef TFC_RUNTIME_DEVICE_CPU_NARROW_H
#define TFC_RUNTIME_DEVICE_CPU_NARROW_H

#include "runtime/ops/kernel.h"

// Returns the operand's elements in float32: the tensor's own memory if it has that type, otherwise a copy in scratch
// memory (*out_held), which the caller releases.
TFC_MUST_USE tfc_status tfc_cpu_widen(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *t,
                                      struct tfc_buffer **out_held, const float **out);
// Rounds n elements of x to `type` and stores them in y, on all cores of the device.
void tfc_cpu_narrow(struct tfc_kernel_ctx *ctx, tfc_dtype type, const float *x, void *y, int64_t n);

#endif
