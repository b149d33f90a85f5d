// Memory accounts: how much memory each device took. There is one account for each device that uses the host's memory,
// and one for everything else, the host's own. A thread that works for a device enters its account; what the thread
// allocates is then counted there, in whichever folder the code is. Any thread.
//
//   struct tfc_memory_account *before = tfc_account_enter(device_account);
//   if (!tfc_account_take(tfc_account_current(), bytes)) return tfc_account_exhausted(tfc_account_current(), bytes);
//   ...
//   tfc_account_give(account, bytes);
//   tfc_account_enter(before);
//
// Accounts are never freed, because what was taken may outlive the device (a string that was fetched). A closed account
// is used again for a new device once nothing is left on it.
#ifndef TFC_RUNTIME_BASE_MEMORY_ACCOUNT_H
#define TFC_RUNTIME_BASE_MEMORY_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

// Frees memory that is kept for later until `bytes` can be counted, and counts them; false: they never could be.
typedef bool tfc_account_room(void *keeper, uint64_t bytes);

struct tfc_memory_account {
  char name[64];            // of the device; "" for the host
  uint64_t limit;           // bytes, UINT64_MAX: none
  _Atomic uint64_t taken;   // what counts against the limit: tensors, strings, elements of lists, packed weights
  _Atomic uint64_t scratch; // workspaces of threads: they grow to what kernels need and stay; no limit but the system's
  _Atomic uint64_t peak;    // most of both together since it was opened or restarted
  bool open;                // guarded by the lock of all accounts, as the next two
  tfc_account_room *room;   // NULL: nobody keeps memory on this account for later
  void *keeper;
  struct tfc_memory_account *next;
};

// RESOURCE_EXHAUSTED: no memory for the record.
TFC_MUST_USE tfc_status tfc_account_open(const char *name, uint64_t limit, struct tfc_memory_account **out);
void tfc_account_close(struct tfc_memory_account *a); // NULL is fine
// An allocator that keeps freed blocks on the account: tfc_account_take at the limit asks it for them, until the
// account is closed. `room` is called under the lock of all accounts: it must open and close none.
void tfc_account_keeps(struct tfc_memory_account *a, tfc_account_room *room, void *keeper);

struct tfc_memory_account *tfc_account_current(void); // the host's, if the thread has entered none
// Makes `a` (NULL: the host's) the thread's account; returns the one before it.
struct tfc_memory_account *tfc_account_enter(struct tfc_memory_account *a);

// Counts `bytes` that are about to be allocated. False: the account's limit, or the system, has less left; then nothing
// is counted.
bool tfc_account_take(struct tfc_memory_account *a, size_t bytes);
void tfc_account_give(struct tfc_memory_account *a, size_t bytes);
bool tfc_account_take_scratch(struct tfc_memory_account *a, size_t bytes);
void tfc_account_give_scratch(struct tfc_memory_account *a, size_t bytes);
// The two halves of tfc_account_take, for an allocator that can empty its caches before it gives up: this one checks
// the account's limit, tfc_memory_grant the system's.
bool tfc_account_reserve(struct tfc_memory_account *a, size_t bytes);
void tfc_account_unreserve(struct tfc_memory_account *a, size_t bytes);

// RESOURCE_EXHAUSTED with the bytes that were asked for, the bytes in use, and which limit leaves how much.
tfc_status tfc_account_exhausted(const struct tfc_memory_account *a, size_t bytes);

// Most bytes on the account at one time, since it was opened or since tfc_account_restart (which starts with the bytes
// that are on it then).
uint64_t tfc_account_peak(const struct tfc_memory_account *a);
void tfc_account_restart(struct tfc_memory_account *a);
struct tfc_memory_account *tfc_account_host(void);

#endif
