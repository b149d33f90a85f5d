// Packs the constant right operands of matrix products when a plan is made.
#ifndef TFC_RUNTIME_DEVICE_CPU_CONSTANTS_H
#define TFC_RUNTIME_DEVICE_CPU_CONSTANTS_H

#include "runtime/device/driver.h"
#include "runtime/host/gemm/gemm.h"

// Packs B [k, n]; in each step `rows` rows are multiplied by it. The caller frees the result. Returns NULL if products
// with so few rows or columns read B where it is, if the device has a memory limit, which a second copy of B would use
// up, or if the allocation fails.
float *tfc_cpu_pack_constant(const struct tfc_device *device, struct tfc_matrix b, int64_t rows, int64_t k, int64_t n);

#endif
