// Device memory that is host memory: counted against a limit, with a cache of freed blocks by size, so that steps of
// dynamic shapes settle into no system calls. Any thread.
//
// What counts is what was asked of the system for the data, blocks that are kept for later included: a limit is never
// exceeded, and the cache goes back before anything is refused.
#ifndef TFC_RUNTIME_DEVICE_MEMORY_H
#define TFC_RUNTIME_DEVICE_MEMORY_H

#include <pthread.h>

#include "runtime/base/memory_account.h"
#include "runtime/device/size_class.h"
#include "runtime/graph/tensor.h"

struct tfc_memory_block;
struct tfc_memory {
  uint64_t offset;                    // added to the addresses that buffers carry (another address space); 0: none
  _Atomic uint64_t held;              // bytes of the blocks of live buffers
  struct tfc_memory_account *account; // they, those that are kept, and what else is taken for the device
  pthread_mutex_t lock;
  struct tfc_memory_block *free_lists[TFC_SIZE_CLASSES];
  // Of each class the block that came back last, without the lock.
  _Atomic(struct tfc_memory_block *) last[TFC_SIZE_CLASSES];
};
// RESOURCE_EXHAUSTED: no memory for the account.
TFC_MUST_USE tfc_status tfc_memory_init(struct tfc_memory *m, const char *device, uint64_t limit, uint64_t offset);
void tfc_memory_deinit(struct tfc_memory *m); // every buffer has been released; zeroed is fine
// 64-byte aligned; blocks of 2 MiB and more come in huge pages where the system has them. RESOURCE_EXHAUSTED names
// request, in use, limit and what is left; also where the machine, or the cgroup, has no such memory left.
TFC_MUST_USE tfc_status tfc_memory_allocate(struct tfc_memory *m, size_t bytes, struct tfc_buffer **out);
void tfc_memory_trim(struct tfc_memory *m); // gives the cache back to the system

#endif
