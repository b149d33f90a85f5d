// Sorting pairs of key and value: what rows by index and the order of whole rows stand on.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_SORT_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_SORT_H

#include "runtime/device/cuda/kernels/types.h"

// Two buffers for each in device memory; pairs are in those of `current`.
struct tfc_cuda_pairs {
  int32_t count;
  int current;
  uint32_t *keys[2];
  int32_t *values[2];
  void *scratch;
  size_t scratch_bytes;
};
// Device bytes that `count` pairs take, with what sorting needs; and pairs that lie there.
TFC_CUDA_API int tfc_cuda_pairs_bytes(int32_t count, size_t *out);
TFC_CUDA_API int tfc_cuda_pairs_in(int32_t count, void *memory, struct tfc_cuda_pairs *out);
// Sorts by the lowest `bits` of the keys, equal ones as they were.
TFC_CUDA_API int tfc_cuda_sort_pairs(struct tfc_cuda_pairs *pairs, int bits, void *stream);

#endif
