// Sweep: simulates replicas for a list of numbers N, in each mode, and finds the number of backup workers that gains
// most.
//
//   struct tfc_sweep sweep = {0};
//   TFC_TRY(s, tfc_sweep_run(&options, &sweep));
//   ... sweep.row[i].result[mode] ...
//   tfc_sweep_deinit(&sweep);
#ifndef TFC_PLACER_REPLICAS_SWEEP_H
#define TFC_PLACER_REPLICAS_SWEEP_H

#include <stdatomic.h>

#include "placer/replicas/simulate.h"

enum { TFC_REPLICAS_MODES = 3, TFC_REPLICAS_MOST = 4096 };

struct tfc_sweep_options {
  const struct tfc_workload *workload;
  const struct tfc_hardware *hardware;
  struct tfc_step_times times;
  const uint32_t *counts; // [count_count] of replicas
  uint32_t count_count;
  bool modes[TFC_REPLICAS_MODES];
  int64_t backup;   // for synchronous replicas with servers; < 0: the number that gains most
  uint32_t servers; // as struct tfc_replicas
  uint64_t seed;
  const atomic_bool *cancel;                            // may be NULL
  void (*progress)(void *user, uint32_t i, uint32_t n); // may be NULL
  void *user;
};
struct tfc_sweep_row {
  uint32_t count;
  struct tfc_replicas_result result[TFC_REPLICAS_MODES]; // hosts 0: this mode was not asked for
  // Backups of synchronous replicas with servers: the given number, or the best one. gain: how much faster a step is,
  // times N / (N + B), because the backups need devices, too.
  uint32_t backup;
  struct tfc_replicas_result with_backup;
  double gain; // 1 without backups
};
struct tfc_sweep {
  struct tfc_sweep_row *row; // [row_count]
  uint32_t row_count;
};
// CANCELLED: the sweep was interrupted. Otherwise, the errors are those of tfc_replicas_simulate.
TFC_MUST_USE tfc_status tfc_sweep_run(const struct tfc_sweep_options *options, struct tfc_sweep *out);
void tfc_sweep_deinit(struct tfc_sweep *sweep);

#endif
