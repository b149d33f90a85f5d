// Running numbered pieces of work on several threads. Internal to the placer.
#ifndef TFC_RUNTIME_BASE_PARALLEL_H
#define TFC_RUNTIME_BASE_PARALLEL_H

#include <stdint.h>

// Cores that this process may use: its affinity, at most the quota of its cgroup; at least 1.
uint32_t tfc_parallel_cores(void);
// Calls work(user, i) for i in [0, count), each once, on up to `threads` threads (the caller is one of them); pieces
// are handed out in order. Returns when all are done. Where threads cannot be made, the caller does the work.
void tfc_parallel(uint32_t count, uint32_t threads, void (*work)(void *user, uint32_t i), void *user);
// The same on threads of their own, while the caller runs tick(tick_user) every tenth of a second or so (and once at
// the end); tick may be NULL.
void tfc_parallel_watched(uint32_t count, uint32_t threads, void (*work)(void *user, uint32_t i), void *user,
                          void (*tick)(void *user), void *tick_user);

#endif
