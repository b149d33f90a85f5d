// Sweep: replicas simulated for a list of N, in each mode, and the number of backup workers that pays best.
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
  int64_t backup;   // of synchronous replicas with servers; < 0: what pays best
  uint32_t servers; // as struct tfc_replicas
  uint64_t seed;
  const atomic_bool *cancel;                            // may be NULL
  void (*progress)(void *user, uint32_t i, uint32_t n); // may be NULL
  void *user;
};
struct tfc_sweep_row {
  uint32_t count;
  struct tfc_replicas_result result[TFC_REPLICAS_MODES]; // hosts 0: not asked for
  // Backups of synchronous replicas with servers: the given number, or the best; and the gain, which counts the devices
  // of the backups: how much faster a step is, times N / (N + B).
  uint32_t backup;
  struct tfc_replicas_result with_backup;
  double gain; // 1 without backups
};
struct tfc_sweep {
  struct tfc_sweep_row *row; // [row_count]
  uint32_t row_count;
};
// CANCELLED, or as tfc_replicas_simulate.
TFC_MUST_USE tfc_status tfc_sweep_run(const struct tfc_sweep_options *options, struct tfc_sweep *out);
void tfc_sweep_deinit(struct tfc_sweep *sweep);

#endif
