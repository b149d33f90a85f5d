#include "placer/replicas/sweep.h"

#include <stdlib.h>

static const double least_gain = 1.005; // a smaller one may be chance

static struct tfc_replicas replicas_of(const struct tfc_sweep_options *o, uint32_t count, tfc_replicas_mode mode) {
  return (struct tfc_replicas){.workload = o->workload,
                               .hardware = o->hardware,
                               .times = o->times,
                               .mode = mode,
                               .count = count,
                               .servers = o->servers,
                               .seed = o->seed};
}

static double gain_of(const struct tfc_sweep_row *row, uint32_t backup, const struct tfc_replicas_result *with) {
  const struct tfc_replicas_result *without = &row->result[TFC_REPLICAS_SYNC];
  return with->batches_per_second / without->batches_per_second * row->count / (row->count + backup);
}

// Finds the number of backups with the greatest gain. One more backup is worth its device only if the slowest replica
// is late by more than that device's share of the work, so the best number is small or 0.
static tfc_status find_backups(const struct tfc_sweep_options *o, struct tfc_sweep_row *row) {
  static const uint32_t tried[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64};
  struct tfc_replicas r = replicas_of(o, row->count, TFC_REPLICAS_SYNC);
  struct tfc_replicas_result result;
  row->backup = 0, row->gain = 1;
  row->with_backup = row->result[TFC_REPLICAS_SYNC];
  if (o->backup >= 0) {
    r.backup = (uint32_t)o->backup;
    if (!r.backup) return NULL;
    TFC_RETURN_IF_ERROR(tfc_replicas_simulate(&r, &row->with_backup));
    row->backup = r.backup, row->gain = gain_of(row, r.backup, &row->with_backup);
    return NULL;
  }
  if (row->count < 2 || (o->times.sigma <= 0 && o->times.late_share <= 0)) return NULL;
  for (size_t i = 0, worse = 0; i < sizeof tried / sizeof *tried && worse < 3; i++) {
    uint32_t hosts;
    r.backup = tried[i];
    tfc_status none = tfc_hardware_hosts(o->hardware, row->count + r.backup, &hosts);
    tfc_status_free(none);
    if (none || r.backup > row->count / 4 + 1) break;
    TFC_RETURN_IF_ERROR(tfc_replicas_simulate(&r, &result));
    const double gain = gain_of(row, r.backup, &result);
    worse = gain > row->gain ? 0 : worse + 1;
    if (gain > row->gain && gain > least_gain) row->gain = gain, row->backup = r.backup, row->with_backup = result;
  }
  return NULL;
}

tfc_status tfc_sweep_run(const struct tfc_sweep_options *o, struct tfc_sweep *out) {
  tfc_status s = NULL;
  struct tfc_sweep sweep = {.row = calloc(o->count_count + 1u, sizeof *sweep.row), .row_count = o->count_count};
  if (!sweep.row) TFC_TRY(s, tfc_status_no_memory("replicas"));
  for (uint32_t i = 0; i < o->count_count; i++) {
    struct tfc_sweep_row *row = &sweep.row[i];
    row->count = o->counts[i], row->gain = 1;
    for (int mode = 0; mode < TFC_REPLICAS_MODES; mode++) {
      if (!o->modes[mode]) continue;
      if (o->cancel && atomic_load(o->cancel)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
      const struct tfc_replicas r = replicas_of(o, row->count, (tfc_replicas_mode)mode);
      TFC_TRY(s, tfc_replicas_simulate(&r, &row->result[mode]));
    }
    if (o->modes[TFC_REPLICAS_SYNC]) TFC_TRY(s, find_backups(o, row));
    if (o->progress) o->progress(o->user, i + 1, o->count_count);
  }
  *out = sweep, sweep = (struct tfc_sweep){0};
out:
  tfc_sweep_deinit(&sweep);
  return s;
}

void tfc_sweep_deinit(struct tfc_sweep *sweep) {
  free(sweep->row);
  *sweep = (struct tfc_sweep){0};
}
