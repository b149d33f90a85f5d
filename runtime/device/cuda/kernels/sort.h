// Sorting pairs of key and value: what rows by index stand on.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_SORT_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_SORT_H

#include "runtime/device/cuda/kernels/types.h"

// Two buffers for each; the result is in those of `current`.
struct tfc_cuda_pairs {
  uint32_t *keys[2];
  int32_t *values[2];
  int current;
};
// Sorts `n` pairs by the lowest `bits` of their keys, equal ones as they were. With scratch NULL only *bytes is set:
// how much of it is needed.
TFC_CUDA_API int tfc_cuda_sort_pairs(struct tfc_cuda_pairs *pairs, int32_t n, int bits, void *scratch, size_t *bytes,
                                     void *stream);

#endif
