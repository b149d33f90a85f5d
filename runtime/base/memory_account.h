// Who took how much memory. There is one account for each device whose memory is the host's, and one for everything
// else, the host's own. A thread that works for a device says so once; what it takes is then counted there, whichever
// folder's code it is in. Any thread.
//
//   struct tfc_memory_account *before = tfc_account_enter(device_account);
//   if (!tfc_account_take(tfc_account_current(), bytes)) return tfc_account_exhausted(tfc_account_current(), bytes);
//   ...
//   tfc_account_give(account, bytes);
//   tfc_account_enter(before);
//
// Accounts are never freed, since what was taken may outlive the device (a string that was fetched). One that was
// closed is opened again for the next device once nothing is left on it.
#ifndef TFC_RUNTIME_BASE_MEMORY_ACCOUNT_H
#define TFC_RUNTIME_BASE_MEMORY_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

struct tfc_memory_account {
  char name[64];            // of the device; "" for the host
  uint64_t limit;           // bytes, UINT64_MAX: none
  _Atomic uint64_t taken;   // what counts against the limit: tensors, strings, elements of lists, packed weights
  _Atomic uint64_t scratch; // workspaces of threads: they grow to what kernels need and stay; no limit but the system's
  _Atomic uint64_t peak;    // of both together, since it was opened or restarted
  bool open;                // under the lock of all accounts
  struct tfc_memory_account *next;
};

// RESOURCE_EXHAUSTED: no memory for the record.
TFC_MUST_USE tfc_status tfc_account_open(const char *name, uint64_t limit, struct tfc_memory_account **out);
void tfc_account_close(struct tfc_memory_account *a); // NULL is fine

struct tfc_memory_account *tfc_account_current(void); // the host's where the thread has entered none
// Makes `a` (NULL: the host's) the thread's account; the one that it had.
struct tfc_memory_account *tfc_account_enter(struct tfc_memory_account *a);

// Counts `bytes` that are about to be allocated. False: they are more than the account's limit leaves, or than the
// system does; nothing is counted then.
bool tfc_account_take(struct tfc_memory_account *a, size_t bytes);
void tfc_account_give(struct tfc_memory_account *a, size_t bytes);
bool tfc_account_take_scratch(struct tfc_memory_account *a, size_t bytes);
void tfc_account_give_scratch(struct tfc_memory_account *a, size_t bytes);
// The two halves of taking, for an allocator that has caches to empty before it gives up: the account's limit here,
// tfc_memory_grant for the system's.
bool tfc_account_reserve(struct tfc_memory_account *a, size_t bytes);
void tfc_account_unreserve(struct tfc_memory_account *a, size_t bytes);

// RESOURCE_EXHAUSTED: what was asked for, what is in use, and which limit leaves how much.
tfc_status tfc_account_exhausted(const struct tfc_memory_account *a, size_t bytes);

// The most that was on the account at one time since it was opened or `tfc_account_restart`, which begins with what is
// on it now.
uint64_t tfc_account_peak(const struct tfc_memory_account *a);
void tfc_account_restart(struct tfc_memory_account *a);
struct tfc_memory_account *tfc_account_host(void);

#endif
