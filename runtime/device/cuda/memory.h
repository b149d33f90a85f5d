// Device memory from cudaMalloc, counted against a limit. Freed blocks are cached by size, so that steps with dynamic
// shapes make no CUDA calls for memory after the first few. Any thread may call the functions.
//
// The limit applies to the bytes that were requested from CUDA, including cached blocks. It is never exceeded. Before a
// request is refused, the cache is given back to CUDA.
//
// A block may be freed on the host while the compute stream still reads it. Its next user must use it on the same
// stream, or wait for that stream first (copy.c).
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
  uint64_t taken;        // bytes requested from CUDA: the blocks of live buffers and the cached ones
  uint64_t peak;         // of `taken`
  uint64_t calls;        // of cudaMalloc so far
  bool frozen;
  struct tfc_cuda_block *free_lists[TFC_SIZE_CLASSES];
  struct tfc_cuda_block *waiting;    // blocks that were released while the memory is frozen
  struct tfc_cuda_memory *neighbour; // the next memory in the list of all memories of the process
};
void tfc_cuda_memory_init(struct tfc_cuda_memory *m, const struct tfc_cuda_api *api, const char *device, int ordinal,
                          uint64_t limit);
void tfc_cuda_memory_deinit(struct tfc_cuda_memory *m); // every buffer has been released
// The memory is aligned to 256 bytes. RESOURCE_EXHAUSTED names the request, the bytes in use, the limit and the largest
// block that is available; UNAVAILABLE names a device that stopped working.
TFC_MUST_USE tfc_status tfc_cuda_memory_allocate(struct tfc_cuda_memory *m, size_t bytes, struct tfc_buffer **out);
void tfc_cuda_memory_trim(struct tfc_cuda_memory *m); // gives the cache back to CUDA (which waits for the device)
// The memory is frozen from the beginning of a segment's capture until the graph was launched. The graph may use blocks
// that are released in this time, so they are not reused until `thaw`. Nothing is given back to CUDA either, because
// that would wait for the device.
void tfc_cuda_memory_freeze(struct tfc_cuda_memory *m);
void tfc_cuda_memory_thaw(struct tfc_cuda_memory *m);
// While a thread captures, no other thread may allocate or free memory through CUDA, on any device, or make or destroy
// the handle of a library, which takes memory and waits for the whole device. So every such call is made between enter
// and leave, which wait for the capture to end. They do not nest; call enter before taking any lock of memory.c.
void tfc_cuda_memory_capture_begin(void);
void tfc_cuda_memory_capture_end(void);
void tfc_cuda_memory_enter(void);
void tfc_cuda_memory_leave(void);

#endif
