// Device memory: plain cudaMalloc, counted against a limit, with a cache of freed blocks by size, so that steps of
// dynamic shapes settle into no calls. Any thread.
//
// A block is given back on the host while the compute stream may still read it. Whoever gets it next uses it on the
// same stream, or waits for that stream first (copy.c).
#ifndef TFC_RUNTIME_DEVICE_CUDA_MEMORY_H
#define TFC_RUNTIME_DEVICE_CUDA_MEMORY_H

#include <pthread.h>

#include "runtime/device/cuda/api.h"
#include "runtime/device/size_class.h"
#include "runtime/graph/tensor.h"

struct tfc_cuda_block;
struct tfc_cuda_memory {
  const struct tfc_cuda_api *api;
  const char *device; // for messages
  int ordinal;
  uint64_t limit;        // bytes, UINT64_MAX: none
  _Atomic uint64_t held; // bytes of live buffers
  _Atomic uint64_t peak;
  uint64_t cached; // bytes in the free lists
  uint64_t calls;  // of cudaMalloc so far
  pthread_mutex_t lock;
  struct tfc_cuda_block *free_lists[TFC_SIZE_CLASSES];
};
void tfc_cuda_memory_init(struct tfc_cuda_memory *m, const struct tfc_cuda_api *api, const char *device, int ordinal,
                          uint64_t limit);
void tfc_cuda_memory_deinit(struct tfc_cuda_memory *m); // every buffer has been released
// 256-byte aligned. RESOURCE_EXHAUSTED names request, in use, limit and the largest block that could be had;
// UNAVAILABLE a device that stopped working.
TFC_MUST_USE tfc_status tfc_cuda_memory_allocate(struct tfc_cuda_memory *m, size_t bytes, struct tfc_buffer **out);
void tfc_cuda_memory_trim(struct tfc_cuda_memory *m); // gives the cache back to CUDA (which waits for the device)

#endif
