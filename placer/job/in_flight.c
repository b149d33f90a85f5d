// Measures throughput. Steps that do not update variables may overlap; then the time between their ends counts. Several
// steps in flight are copies of one plan, each with memory of its own, so a device that waits in one step works on
// another. The measurement shows whether that is faster than one step after another.
#include "placer/job/in_flight.h"

#include <math.h>
#include <stdlib.h>

#include "placer/job/entries.h"

enum { BLOCK = 4, BLOCKS = 6 };

// Whether everything is on one device. A device runs one operation at a time, so its steps cannot overlap.
static bool on_one_device(const struct tfc_problem *p, const struct tfc_job_candidate *k) {
  for (uint32_t u = 1; u < p->unit_count; u++)
    if (k->solution.device[u] != k->solution.device[0]) return false;
  return true;
}

struct measuring {
  struct tfc_job_candidates *candidates;
  struct tfc_job_journal *journal;
  const uint32_t *index; // [entry] its candidate
  const struct tfc_measure_entry *entries;
};
static tfc_status measured(void *user, const struct tfc_measured *m) {
  struct measuring *b = user;
  const uint32_t index = b->index[m->entry], at_once = b->entries[m->entry].in_flight;
  struct tfc_job_candidates *c = b->candidates;
  if (m->state != TFC_RESULT_OK)
    tfc_job_say(c->clock, true, "%s with several steps in flight: %s", c->list.data[index].name,
                m->message ? m->message : "failed");
  TFC_RETURN_IF_ERROR(tfc_job_journal_in_flight(b->journal, c, index, m, at_once));
  TFC_RETURN_IF_ERROR(tfc_job_candidates_take_in_flight(c, index, m, at_once));
  tfc_job_say(c->clock, false, NULL);
  return NULL;
}

tfc_status tfc_job_measure_in_flight(struct tfc_job_candidates *c, struct tfc_job_journal *journal,
                                     struct tfc_measurer *measurer, const uint32_t *index, uint32_t count,
                                     double until_s) {
  tfc_status s = NULL;
  if (!count || !tfc_job_model_runs_in_flight(c->model)) return NULL;
  struct tfc_job_entries alone = {0};
  // more steps in flight would not keep devices busier
  uint32_t in_flight = c->model->info->device_count / 2 + 1, entries = 0;
  struct tfc_measure_entry *entry = calloc(2 * (size_t)count + 1, sizeof *entry);
  uint32_t *of = calloc(2 * (size_t)count + 1, sizeof *of);
  if (!entry || !of) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_job_entries_make(c, index, count, TFC_NONE, &alone));
  for (uint32_t i = 0; i < count; i++) {
    of[entries] = index[i], entry[entries] = alone.list[i];
    entry[entries++].in_flight = 1;
    if (alone.list[i].whole || on_one_device(c->model->problem, &c->list.data[index[i]])) continue;
    of[entries] = index[i], entry[entries] = alone.list[i];
    entry[entries++].in_flight = in_flight;
  }
  tfc_job_say(c->clock, false, "%u placements in turns, one step by one and with %u in flight", count, in_flight);
  struct tfc_measure_batch batch = {.entries = entry,
                                    .count = entries,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = BLOCK,
                                    .blocks = BLOCKS,
                                    .best_us = (double)NAN,
                                    .trace = TFC_TRACE_MODE_NONE,
                                    .deadline_s = tfc_job_moment(c->clock, until_s)};
  struct measuring b = {c, journal, of, entry};
  TFC_TRY(s, tfc_measurer_run(measurer, &batch, measured, &b));
out:
  free(entry);
  free(of);
  tfc_job_entries_deinit(&alone);
  return s;
}
