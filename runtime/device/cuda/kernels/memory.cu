#include "runtime/device/cuda/kernels/memory.h"

#include "runtime/device/cuda/kernels/device.cuh"

#ifndef __CUDACC__
#include <string.h>
#endif

TFC_CUDA_API int tfc_cuda_copy_bytes(void *to, const void *from, size_t bytes, void *stream) {
  if (!bytes || to == from) return 0;
#ifdef __CUDACC__
  return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, (cudaStream_t)stream);
#else
  return tfc::host_enqueue(stream, [=] {
    tfc_host_begin();
    memmove(to, from, bytes);
    tfc_host_end();
  });
#endif
}

TFC_CUDA_API int tfc_cuda_clear_bytes(void *to, size_t bytes, void *stream) {
  if (!bytes) return 0;
#ifdef __CUDACC__
  return (int)cudaMemsetAsync(to, 0, bytes, (cudaStream_t)stream);
#else
  return tfc::host_enqueue(stream, [=] {
    tfc_host_begin();
    memset(to, 0, bytes);
    tfc_host_end();
  });
#endif
}
