// Memory accounts: how much memory each device took. There is one account for each device that uses the host's memory,
// and one for everything else, the host's own. A thread that works for a device enters its account; all that the thread
// allocates is then counted there, also by code of other folders. Any thread may call these functions.
//
//   struct tfc_memory_account *before = tfc_account_enter(device_account);
//   if (!tfc_account_take(tfc_account_current(), bytes)) return tfc_account_exhausted(tfc_account_current(), bytes);
//   ...
//   tfc_account_give(account, bytes);
//   tfc_account_enter(before);
//
// Accounts are never freed, because what was taken may outlive the device (a string that was fetched). A closed account
// is used again for a new device when nothing is counted on it any more.
#ifndef TFC_RUNTIME_BASE_MEMORY_ACCOUNT_H
#define TFC_RUNTIME_BASE_MEMORY_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

// Frees memory that is kept for later use until `bytes` can be counted, and counts them; false: there is not enough.
typedef bool tfc_account_room(void *keeper, uint64_t bytes);

struct tfc_memory_account {
  char name[64];          // the device's name; "" for the host
  uint64_t limit;         // bytes, UINT64_MAX: none
  _Atomic uint64_t taken; // counts against the limit: tensors, strings, elements of lists, packed weights
  // Workspaces of threads. They grow to the size that kernels need and are then kept; only the system limits them.
  _Atomic uint64_t scratch;
  _Atomic uint64_t peak;  // the largest sum of both since the account was opened or restarted
  bool open;              // this field and the next two are guarded by the lock of all accounts
  tfc_account_room *room; // what to call to empty caches on this account; NULL: there are no caches
  void *keeper;
  struct tfc_memory_account *next;
};

// Opens an account for a device. RESOURCE_EXHAUSTED: no memory for the record.
TFC_MUST_USE tfc_status tfc_account_open(const char *name, uint64_t limit, struct tfc_memory_account **out);
void tfc_account_close(struct tfc_memory_account *a); // NULL is fine
// Called by an allocator that keeps freed blocks on the account: until the account is closed, tfc_account_take calls
// `room` when the limit is reached, to get them back. `room` runs under the lock of all accounts, so it must not open
// or close any.
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

// RESOURCE_EXHAUSTED with the bytes that were requested, the bytes in use, and the limit that is closest.
tfc_status tfc_account_exhausted(const struct tfc_memory_account *a, size_t bytes);

// Returns the most bytes on the account at one time, since it was opened or since tfc_account_restart (which begins
// with the bytes that are on it then).
uint64_t tfc_account_peak(const struct tfc_memory_account *a);
void tfc_account_restart(struct tfc_memory_account *a);
struct tfc_memory_account *tfc_account_host(void);

#endif
