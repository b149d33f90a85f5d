// Runs numbered pieces of work on several threads, for searching placements and for training policies.
#ifndef TFC_RUNTIME_BASE_PARALLEL_H
#define TFC_RUNTIME_BASE_PARALLEL_H

#include <stdint.h>

// Returns the number of cores that this process may use: those of its affinity, limited by the quota of its control
// group; at least 1.
uint32_t tfc_parallel_cores(void);
// Calls work(user, i) once for each i in [0, count), on up to `threads` threads (the caller is one of them); pieces are
// handed out in order. Returns when all are done. If no threads can be created, the caller does all the work.
void tfc_parallel(uint32_t count, uint32_t threads, void (*work)(void *user, uint32_t i), void *user);
// As tfc_parallel above, but all pieces run on other threads. Meanwhile the caller runs tick(tick_user) about ten times
// a second, and once at the end; tick may be NULL.
void tfc_parallel_watched(uint32_t count, uint32_t threads, void (*work)(void *user, uint32_t i), void *user,
                          void (*tick)(void *user), void *tick_user);

#endif
