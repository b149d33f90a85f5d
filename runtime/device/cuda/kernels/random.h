// Fills tensors from a Philox 4x32-10 stream, like runtime/ops/random_stream.c: the same state of the generator gives
// the same numbers, except for the last bits where logarithms and sines are used.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_RANDOM_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_RANDOM_H

#include "runtime/device/cuda/kernels/types.h"

enum tfc_cuda_random_kind { // has the numbers of enum tfc_random_kind
  TFC_CUDA_RANDOM_UNIFORM,
  TFC_CUDA_RANDOM_NORMAL,
  TFC_CUDA_RANDOM_TRUNCATED_NORMAL,
  TFC_CUDA_RANDOM_UNIFORM_INT,
  TFC_CUDA_RANDOM_FULL_INT,
};
struct tfc_cuda_random {
  uint32_t counter[4], key[2];
  int64_t low;    // UNIFORM_INT
  uint64_t range; // UNIFORM_INT, > 0
};
TFC_CUDA_API int tfc_cuda_random_fill(int kind, int type, const struct tfc_cuda_random *r, void *y, int64_t n,
                                      void *stream);

#endif
