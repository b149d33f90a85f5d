// Sorting of pairs (key, value), for updates of rows by index (update_rows.cu) and for TopK (order.cu).
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_SORT_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_SORT_H

#include "runtime/device/cuda/kernels/types.h"

// Keys and values have two buffers each in device memory; the pairs are in keys[current] and values[current].
struct tfc_cuda_pairs {
  int32_t count;
  int current;
  uint32_t *keys[2];
  int32_t *values[2];
  void *scratch;
  size_t scratch_bytes;
};
// tfc_cuda_pairs_bytes: bytes of device memory for `count` pairs and for sorting them. tfc_cuda_pairs_in: divides such
// memory into the buffers of *out.
TFC_CUDA_API int tfc_cuda_pairs_bytes(int32_t count, size_t *out);
TFC_CUDA_API int tfc_cuda_pairs_in(int32_t count, void *memory, struct tfc_cuda_pairs *out);
// Sorts by the lowest `bits` bits of the keys; pairs with equal keys keep their order.
TFC_CUDA_API int tfc_cuda_sort_pairs(struct tfc_cuda_pairs *pairs, int bits, void *stream);

#endif
