// The k largest elements of each row.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_ORDER_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_ORDER_H

#include "runtime/device/cuda/kernels/types.h"

// Writes values and indices [rows, k] of x [rows, n], the largest first, equal values by position (also if no order is
// required); rows with NaN are ordered as the op's reference kernel does it. n is below 2^31; indices are int32 or
// int64. The first function returns the bytes of scratch memory.
TFC_CUDA_API int tfc_cuda_top_k_scratch(int type, int64_t rows, int64_t n, int64_t k, size_t *out);
TFC_CUDA_API int tfc_cuda_top_k(int type, int index_type, int64_t rows, int64_t n, int64_t k, bool sorted,
                                const void *x, void *values, void *indices, void *scratch, void *stream);

#endif
