// What is known of placements, and measuring some of them in turns with the incumbent.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/private.h"
#include "runtime/base/units.h"

// --- Budgets ---------------------------------------------------------------------------------------------------------
// A quarter is the final run's and the report's: more of it where there is little or steps are slow, less where there
// is much.
double tfc_job_search_end_s(const struct tfc_job *j) {
  double total = tfc_job_total_seconds(j), held = fmin(fmax(0.25 * total, 0.14 * total + 1), 110);
  held = fmin(fmax(held, tfc_job_final_seconds(j)), 0.5 * total);
  return fmax(total - held, j->search_end_s);
}

uint32_t tfc_job_measurements(const struct tfc_job *j) {
  return j->o->measurements ? j->o->measurements : 200;
}

uint32_t tfc_job_measurements_left(const struct tfc_job *j) {
  return tfc_job_measurements(j) > j->episodes ? tfc_job_measurements(j) - j->episodes : 0;
}

// --- What is known ---------------------------------------------------------------------------------------------------
tfc_status tfc_job_add(struct tfc_job *j, const char *name, const char *algorithm, const char *role,
                       const struct tfc_solution *solution, uint32_t *out_index, bool *out_new) {
  tfc_status s = NULL;
  uint64_t digest = tfc_job_digest(j->problem, solution->device);
  bool rival = strcmp(role, "candidate") != 0;
  for (uint32_t i = 0; i < j->known.count && !rival; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (k->digest != digest || !k->solution.device || isnan(k->median_us)) continue;
    *out_index = i, *out_new = false;
    return NULL;
  }
  struct tfc_job_known k = {.role = strcmp(role, "candidate") == 0   ? "candidate"
                                    : strcmp(role, "heuristic") == 0 ? "heuristic"
                                                                     : "baseline",
                            .baseline = rival,
                            .heuristic = strcmp(role, "heuristic") == 0,
                            .digest = digest,
                            .median_us = (double)NAN,
                            .q1_us = (double)NAN,
                            .q3_us = (double)NAN,
                            .ratio = (double)NAN,
                            .level_us = (double)NAN,
                            .final_us = (double)NAN};
  k.simulated_us = tfc_job_simulate(j, solution);
  k.name = name ? tfc_str_dup(tfc_str_from(name)) : tfc_format("#%zu", j->known.count);
  k.algorithm = algorithm ? tfc_str_dup(tfc_str_from(algorithm)) : NULL;
  if (!k.name || (algorithm && !k.algorithm)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_solution_copy(&k.solution, solution, j->problem));
  if (!tfc_array_push(&j->known, k)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  *out_index = (uint32_t)j->known.count - 1, *out_new = true;
  k = (struct tfc_job_known){0};
out:
  free(k.name);
  free(k.algorithm);
  if (s && k.solution.device) tfc_solution_deinit(&k.solution);
  return s;
}

// --- Orders ----------------------------------------------------------------------------------------------------------
tfc_status tfc_job_assign(const struct tfc_job *j, const struct tfc_job_known *k, uint16_t *placement,
                          uint32_t *sequence, uint32_t *out_count) {
  TFC_RETURN_IF_ERROR(tfc_subject_assign(j->subject, j->problem, &k->solution, placement, sequence, out_count));
  if (k->sequence && k->sequence_count == *out_count) memcpy(sequence, k->sequence, *out_count * sizeof *sequence);
  return NULL;
}

tfc_status tfc_job_keep_sequence(const struct tfc_job *j, struct tfc_job_known *k, const uint32_t *sequence,
                                 uint32_t count) {
  if (!j->problem->has_limits || k->sequence || k->state != TFC_RESULT_OK) return NULL;
  if (!(k->sequence = malloc((count + 1u) * sizeof *k->sequence)))
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  memcpy(k->sequence, sequence, count * sizeof *sequence);
  k->sequence_count = count;
  return NULL;
}

// --- Entries ---------------------------------------------------------------------------------------------------------
tfc_status tfc_job_entries_make(const struct tfc_job *j, const uint32_t *index, uint32_t count, uint32_t last,
                                struct tfc_job_entries *out) {
  const size_t nodes = j->o->graph->node_count, costs = j->subject->cost_count, all = (size_t)count + 1;
  *out = (struct tfc_job_entries){calloc(all, sizeof *out->list), malloc((all * nodes + 1) * sizeof *out->placements),
                                  malloc((all * costs + 1) * sizeof *out->sequences)};
  if (!out->list || !out->placements || !out->sequences)
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < all; i++) {
    const uint32_t at = i < count ? index[i] : last;
    if (at == UINT32_MAX) break;
    struct tfc_measure_entry *e = &out->list[i];
    uint16_t *placement = out->placements + i * nodes;
    uint32_t *sequence = out->sequences + i * costs;
    e->whole = j->known.data[at].whole;
    if (e->whole) continue;
    e->placement = placement, e->sequence = sequence;
    TFC_RETURN_IF_ERROR(tfc_job_assign(j, &j->known.data[at], placement, sequence, &e->sequence_count));
  }
  return NULL;
}

void tfc_job_entries_deinit(struct tfc_job_entries *e) {
  free(e->list);
  free(e->placements);
  free(e->sequences);
}

// --- Measuring -------------------------------------------------------------------------------------------------------
void tfc_job_consider(struct tfc_job *j, uint32_t index) {
  const struct tfc_job_known *k = &j->known.data[index];
  if (k->state != TFC_RESULT_OK || !k->solution.device || isnan(k->median_us)) return;
  if (j->best != UINT32_MAX && !(k->level_us < j->known.data[j->best].level_us)) return;
  j->best = index;
  char text[32];
  if (k->median_us >= j->best_seen_us) return; // better than its reference, but the machine was slower then
  j->best_seen_us = k->median_us;
  tfc_job_say(j, false, "best so far: %s a step, by %s", tfc_show_us(text, k->median_us),
              k->algorithm ? k->algorithm : k->name);
}

struct measuring {
  struct tfc_job *job;
  const uint32_t *index; // [entry] of known; the reference is last
  const struct tfc_measure_entry *entries;
  uint32_t count;
  double reference_us; // level of the reference, NaN: none
  const char *phase;
};
static tfc_status measured(void *user, const struct tfc_measured *m) {
  struct measuring *b = user;
  struct tfc_job *j = b->job;
  if (m->entry >= b->count) return NULL; // the reference again
  struct tfc_job_known *k = &j->known.data[b->index[m->entry]];
  if (m->state == TFC_RESULT_CUT && m->step_count == 0) return NULL; // no time was left for it
  TFC_RETURN_IF_ERROR(tfc_job_record(j, k, m, b->phase));
  k->level_us = isfinite(k->ratio * b->reference_us) ? k->ratio * b->reference_us : k->median_us;
  const struct tfc_measure_entry *e = &b->entries[m->entry];
  TFC_RETURN_IF_ERROR(tfc_job_keep_sequence(j, k, e->sequence, e->sequence_count));
  if (m->state == TFC_RESULT_FAILED) tfc_job_say(j, true, "%s: %s", k->name, m->message ? m->message : "failed");
  if (!k->baseline || !k->heuristic) tfc_job_consider(j, b->index[m->entry]);
  tfc_job_say(j, false, NULL);
  return NULL;
}

// Whether there is time for the incumbent's blocks and one measurement beside them. Where there is not, `count` comes
// down to what there is time for: two steps of each, one at least.
static bool time_for_reference(const struct tfc_job *j, double left_s, uint32_t *count) {
  enum { BEFORE = TFC_ADAPT_ORDER_STEPS + 1, BLOCK = 5, LATE = 2 };
  double step_s = 1e-6 * j->known.data[j->best].median_us;
  if ((2 * (BEFORE + BLOCK) + BLOCK) * step_s <= left_s) return true;
  double fit = left_s / ((BEFORE + LATE) * step_s);
  if (fit < *count) *count = fit > 1 ? (uint32_t)fit : 1;
  return false;
}

tfc_status tfc_job_measure(struct tfc_job *j, const uint32_t *index, uint32_t count, const char *phase) {
  tfc_status s = NULL;
  struct measuring b = {.job = j, .index = index, .phase = phase};
  struct tfc_job_entries entries = {0};
  double best = (double)NAN, end = tfc_job_search_end_s(j);
  if (j->batch_end_s > 0) end = fmin(end, j->batch_end_s);
  bool reference = j->best != UINT32_MAX && time_for_reference(j, end - tfc_job_seconds(j), &count);
  const bool loads = j->o->objective == TFC_OBJECTIVE_THROUGHPUT; // a long step may be a small load
  TFC_TRY(s, tfc_job_entries_make(j, index, count, reference ? j->best : UINT32_MAX, &entries));
  for (uint32_t i = 0; i < j->known.count; i++) { // hopeless is measured by the best there is, one device included
    const struct tfc_job_known *k = &j->known.data[i];
    if (k->state == TFC_RESULT_OK && k->solution.device && isfinite(k->median_us) &&
        (isnan(best) || k->median_us < best))
      best = k->median_us;
  }
  struct tfc_measure_batch batch = {.entries = entries.list,
                                    .count = count + reference,
                                    .reference = reference ? count : UINT32_MAX,
                                    .warmup = 1,
                                    .block = 5,
                                    .blocks = j->o->evaluate                         ? 4
                                              : j->trace == TFC_TRACE_MODE_ALTERNATE ? 2
                                                                                     : 1,
                                    .stop_ratio = j->o->no_early_stop || j->o->evaluate || loads ? 0 : 1.5,
                                    .best_us = best,
                                    .trace = j->trace,
                                    .deadline_s = 1e-9 * (double)j->begin_ns - j->before_s + end};
  b.entries = entries.list, b.count = count;
  b.reference_us = reference ? j->known.data[j->best].level_us : (double)NAN;
  TFC_TRY(s, tfc_measurer_run(j->measurer, &batch, measured, &b));
out:
  tfc_job_entries_deinit(&entries);
  return s;
}
