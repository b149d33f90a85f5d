// Throughput as it is measured: steps that do not update variables may be under way side by side, and what counts is
// how far apart they end. Several at once are copies of one plan, each with memory of its own; a device that waits in
// one step goes on with another. Whether that is faster than one step after another is measured.
#include <math.h>
#include <stdlib.h>

#include "placer/job/private.h"
#include "runtime/graph/op_def.h"

enum { BLOCK = 4, BLOCKS = 6 };

bool tfc_job_runs_in_flight(const struct tfc_job *j) {
  const struct tfc_graph *g = j->o->graph;
  for (uint32_t i = 0; i < g->node_count; i++)
    if (j->subject->needed[i] && g->nodes[i].def && (g->nodes[i].def->flags & TFC_OP_UPDATE)) return false;
  return j->o->objective == TFC_OBJECTIVE_THROUGHPUT;
}

// Everything on one device, which does one thing at a time: there steps follow one another, in the device's own order.
static bool on_one_device(const struct tfc_job *j, const struct tfc_job_known *k) {
  for (uint32_t u = 1; u < j->problem->unit_count; u++)
    if (k->solution.device[u] != k->solution.device[0]) return false;
  return true;
}

struct measuring {
  struct tfc_job *job;
  const uint32_t *index; // [entry] of known
  const struct tfc_measure_entry *entries;
};
static tfc_status measured(void *user, const struct tfc_measured *m) {
  struct measuring *b = user;
  struct tfc_job_known *k = &b->job->known.data[b->index[m->entry]];
  if (m->state != TFC_RESULT_OK)
    tfc_job_say(b->job, true, "%s with several steps in flight: %s", k->name, m->message ? m->message : "failed");
  TFC_RETURN_IF_ERROR(tfc_job_record_in_flight(b->job, k, m, b->entries[m->entry].in_flight));
  tfc_job_say(b->job, false, NULL);
  return NULL;
}

tfc_status tfc_job_measure_in_flight(struct tfc_job *j, const uint32_t *index, uint32_t count, double until_s) {
  tfc_status s = NULL;
  if (!count || !tfc_job_runs_in_flight(j)) return NULL;
  struct tfc_job_entries alone = {0};
  uint32_t in_flight = j->info->device_count / 2 + 1, entries = 0; // more of them keep devices no busier
  struct tfc_measure_entry *entry = calloc(2 * (size_t)count + 1, sizeof *entry);
  uint32_t *of = calloc(2 * (size_t)count + 1, sizeof *of);
  if (!entry || !of) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_job_entries_make(j, index, count, UINT32_MAX, &alone));
  for (uint32_t i = 0; i < count; i++) {
    of[entries] = index[i], entry[entries] = alone.list[i];
    entry[entries++].in_flight = 1;
    if (alone.list[i].whole || on_one_device(j, &j->known.data[index[i]])) continue;
    of[entries] = index[i], entry[entries] = alone.list[i];
    entry[entries++].in_flight = in_flight;
  }
  tfc_job_say(j, false, "%u placements in turns, one step by one and with %u in flight", count, in_flight);
  struct tfc_measure_batch batch = {.entries = entry,
                                    .count = entries,
                                    .reference = UINT32_MAX,
                                    .warmup = 1,
                                    .block = BLOCK,
                                    .blocks = BLOCKS,
                                    .best_us = (double)NAN,
                                    .trace = TFC_TRACE_MODE_NONE,
                                    .deadline_s = 1e-9 * (double)j->begin_ns - j->before_s + until_s};
  struct measuring b = {j, of, entry};
  TFC_TRY(s, tfc_measurer_run(j->measurer, &batch, measured, &b));
out:
  free(entry);
  free(of);
  tfc_job_entries_deinit(&alone);
  return s;
}
