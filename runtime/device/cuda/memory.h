// Device memory: plain cudaMalloc, counted against a limit, with a cache of freed blocks by size, so that steps of
// dynamic shapes settle into no calls. Any thread.
//
// What counts is what CUDA was asked for, blocks that are kept for later included: the limit is never exceeded, and the
// cache goes back before anything is refused.
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
  _Atomic uint64_t held; // bytes of the blocks of live buffers
  pthread_mutex_t lock;  // guards all below
  uint64_t taken;        // bytes that CUDA was asked for: those of live buffers and those that are kept
  uint64_t peak;         // of `taken`
  uint64_t calls;        // of cudaMalloc so far
  bool frozen;
  struct tfc_cuda_block *free_lists[TFC_SIZE_CLASSES];
  struct tfc_cuda_block *waiting;    // released while frozen
  struct tfc_cuda_memory *neighbour; // the next one of the process
};
void tfc_cuda_memory_init(struct tfc_cuda_memory *m, const struct tfc_cuda_api *api, const char *device, int ordinal,
                          uint64_t limit);
void tfc_cuda_memory_deinit(struct tfc_cuda_memory *m); // every buffer has been released
// 256-byte aligned. RESOURCE_EXHAUSTED names request, in use, limit and the largest block that could be had;
// UNAVAILABLE a device that stopped working.
TFC_MUST_USE tfc_status tfc_cuda_memory_allocate(struct tfc_cuda_memory *m, size_t bytes, struct tfc_buffer **out);
void tfc_cuda_memory_trim(struct tfc_cuda_memory *m); // gives the cache back to CUDA (which waits for the device)
// While a segment is captured and until it was launched: what is released in between may be in the capture, so nobody
// gets it, and nothing goes back to CUDA, which would wait for the device.
// (And while any segment is captured no other thread asks CUDA for memory or gives some back, of any device.)
void tfc_cuda_memory_freeze(struct tfc_cuda_memory *m);
void tfc_cuda_memory_thaw(struct tfc_cuda_memory *m);
// A thread that captures keeps all others from calling CUDA for memory until it ends the capture. Whoever makes such a
// call is between enter and leave, which do not nest and come before every lock of this file.
void tfc_cuda_memory_capture_begin(void);
void tfc_cuda_memory_capture_end(void);
void tfc_cuda_memory_enter(void);
void tfc_cuda_memory_leave(void);

#endif
