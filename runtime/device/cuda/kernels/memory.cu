// Copies and fills with zeros on a stream. They are CUDA's own operations and not kernels:
// a copy engine or the driver's kernel moves bytes at the memory's speed, and in a captured graph they are nodes of
// their own kind. They are in a .cu file so that the same rows run on the CPU (host.h), where they are queued like
// kernels.
#include "runtime/device/cuda/kernels/memory.h"

#include "runtime/device/cuda/kernels/device.cuh"

#ifndef __CUDACC__
#include <string.h>
#endif

TFC_CUDA_API int tfc_cuda_copy_bytes(void *to, const void *from, size_t bytes, void *stream) {
  if (!bytes || to == from) return 0;
#ifdef __CUDACC__
  int error = (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, (cudaStream_t)stream);
#else
  int error = tfc::host_enqueue(stream, [=] {
    tfc_host_begin();
    memmove(to, from, bytes);
    tfc_host_end();
  });
#endif
  if (!error) tfc_cuda_count_launch();
  return error;
}

TFC_CUDA_API int tfc_cuda_clear_bytes(void *to, size_t bytes, void *stream) {
  if (!bytes) return 0;
#ifdef __CUDACC__
  int error = (int)cudaMemsetAsync(to, 0, bytes, (cudaStream_t)stream);
#else
  int error = tfc::host_enqueue(stream, [=] {
    tfc_host_begin();
    memset(to, 0, bytes);
    tfc_host_end();
  });
#endif
  if (!error) tfc_cuda_count_launch();
  return error;
}
