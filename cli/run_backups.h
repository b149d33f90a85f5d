// For tfc-run --replicas N --backup B: who computes, whose gradients a step takes, and whose are dropped. Each replica
// has a thread that runs its part of a step. A step takes the gradients of the first N - B replicas that have computed
// them from the variables as they are in this step. A replica that is late goes on meanwhile; what it has computed in
// the end is of an older step and is dropped, and the replica begins with the current one.
#ifndef TFC_CLI_RUN_BACKUPS_H
#define TFC_CLI_RUN_BACKUPS_H

#include "runtime/base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct run_backups_calls {
  // Computes a replica's gradients and puts them aside. Called by the replica's thread. `cancel` breaks it off.
  tfc_status (*compute)(void *arg, uint32_t replica, const _Atomic bool *cancel);
  // Called by the thread of run_backups_step, for a replica that has computed: its gradients are for the update
  // (the replicas of a step ascend), or are thrown away.
  tfc_status (*accept)(void *arg, uint32_t replica);
  tfc_status (*drop)(void *arg, uint32_t replica);
  // Updates the variables with the accepted gradients.
  tfc_status (*apply)(void *arg);
  void *arg;
  const _Atomic bool *cancel; // breaks a step off; borrowed
};
struct run_backups_counts {
  int64_t applied, dropped; // gradients
};

struct run_backups;
TFC_MUST_USE tfc_status run_backups_start(const struct run_backups_calls *calls, uint32_t replicas, uint32_t backups,
                                          struct run_backups **out);
TFC_MUST_USE tfc_status run_backups_step(struct run_backups *b);
// Waits for the replicas that are late, and drops what they have computed: no step runs any more, and no gradient
// waits.
TFC_MUST_USE tfc_status run_backups_rest(struct run_backups *b);
struct run_backups_counts run_backups_counts(const struct run_backups *b);
void run_backups_end(struct run_backups *b); // breaks off what still runs; NULL is fine

#endif
