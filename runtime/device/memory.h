// Memory of a host-backed device, counted against a limit. Freed blocks are cached by size, so that steps with dynamic
// shapes need no system calls after the first few. Any thread may call the functions.
//
// The limit applies to the bytes taken from the system for data, including cached blocks. It is never exceeded. Before
// a request is refused, the cache is freed.
#ifndef TFC_RUNTIME_DEVICE_MEMORY_H
#define TFC_RUNTIME_DEVICE_MEMORY_H

#include <pthread.h>

#include "runtime/base/memory_account.h"
#include "runtime/device/size_class.h"
#include "runtime/graph/tensor.h"

struct tfc_memory_block;
// Cached blocks. A thread puts blocks that it frees on a shelf of its own, where it finds them again in the cache of
// its core, and takes from the others' shelves only what its own does not have.
enum { TFC_MEMORY_SHELVES = 8 };
struct tfc_memory_shelf {
  _Alignas(128) pthread_mutex_t lock;
  _Atomic uint64_t held; // bytes of the blocks of live buffers; taken here and freed elsewhere, it is only right in sum
  struct tfc_memory_block *free_lists[TFC_SIZE_CLASSES];
  // For each class, the block that was freed last. Threads exchange it atomically, without the lock.
  _Atomic(struct tfc_memory_block *) last[TFC_SIZE_CLASSES];
};
struct tfc_memory {
  uint64_t offset;                    // added to the addresses in buffers, as another address space (runner.h); 0: none
  struct tfc_memory_account *account; // counts live and cached blocks, and other memory of the device
  struct tfc_memory_shelf *shelves;   // [TFC_MEMORY_SHELVES]; a thread's own is that of its number
};
// RESOURCE_EXHAUSTED: there is no memory for the account.
TFC_MUST_USE tfc_status tfc_memory_init(struct tfc_memory *m, const char *device, uint64_t limit, uint64_t offset);
void tfc_memory_deinit(struct tfc_memory *m); // all buffers must have been released; a zeroed struct is fine
// The memory is aligned to 64 bytes; blocks of 2 MiB and more use huge pages if the system has them. RESOURCE_EXHAUSTED
// names request, bytes in use, limit and what is left; also if the machine or the control group has no such memory
// left.
TFC_MUST_USE tfc_status tfc_memory_allocate(struct tfc_memory *m, size_t bytes, struct tfc_buffer **out);
uint64_t tfc_memory_held(const struct tfc_memory *m); // bytes of the blocks of live buffers
// Returns the most bytes on the device's account at one time; `restart`: from now on, the peak is counted anew.
uint64_t tfc_memory_peak(struct tfc_memory *m, bool restart);

#endif
