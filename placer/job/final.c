// The final run: the answer, what it is compared with and the undivided machine once more, in turns. Nothing that must
// be compared is left out for want of time: each then has fewer steps.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/private.h"
#include "runtime/base/clock.h"

enum { FINALISTS = 3, MOST_FINALISTS = 8, BLOCK = 5, FEWEST_BLOCK = 2 };

double tfc_job_total_seconds(const struct tfc_job *j) {
  return j->o->seconds > 0 ? j->o->seconds : 600;
}
bool tfc_job_can_answer(const struct tfc_job_known *k) {
  return k->solution.device && k->state == TFC_RESULT_OK && isfinite(k->median_us);
}
double tfc_job_final_us(const struct tfc_job_known *k) {
  return isfinite(k->final_us) ? k->final_us : k->median_us;
}

struct finishing {
  struct tfc_job *job;
  uint32_t index[TFC_JOB_MOST_FINALISTS];
};
static tfc_status finished(void *user, const struct tfc_measured *m) {
  struct finishing *f = user;
  struct tfc_job_known *k = &f->job->known.data[f->index[m->entry]];
  if (m->state == TFC_RESULT_CUT && m->step_count == 0) return NULL; // no time was left for it
  TFC_RETURN_IF_ERROR(tfc_job_record(f->job, k, m, "final"));
  tfc_job_say(f->job, false, NULL);
  return NULL;
}

// --- Who takes part --------------------------------------------------------------------------------------------------
static void add_once(uint32_t *list, uint32_t *count, uint32_t index) {
  for (uint32_t i = 0; i < *count; i++)
    if (list[i] == index) return;
  if (*count < TFC_JOB_MOST_FINALISTS) list[(*count)++] = index;
}

// The expert and the user's own placements.
static bool is_rival(const struct tfc_job_known *k) {
  return k->baseline && !k->heuristic && !k->single && !k->whole;
}

// Also what was stopped as hopeless: it may have been disturbed.
static bool is_timed(const struct tfc_job_known *k) {
  return (k->state == TFC_RESULT_OK || k->state == TFC_RESULT_CUT) && isfinite(k->median_us);
}

// The fastest that can be the answer: of one device, or of several but those in `list`; UINT32_MAX: none.
static uint32_t fastest(const struct tfc_job *j, bool single, const uint32_t *list, uint32_t count) {
  uint32_t best = UINT32_MAX;
  for (uint32_t i = 0; i < j->known.count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    bool taken = !tfc_job_can_answer(k) || k->single != single;
    for (uint32_t n = 0; n < count && !taken; n++) taken = list[n] == i || j->known.data[list[n]].digest == k->digest;
    if (!taken && (best == UINT32_MAX || k->level_us < j->known.data[best].level_us)) best = i;
  }
  return best;
}

// What must be compared: the incumbent, the fastest on several devices and on one, the undivided machine, the rivals.
static uint32_t competitors(const struct tfc_job *j, uint32_t *list) {
  uint32_t count = 0, spread = fastest(j, false, NULL, 0), single = fastest(j, true, NULL, 0);
  if (j->best != UINT32_MAX) add_once(list, &count, j->best);
  if (spread != UINT32_MAX) add_once(list, &count, spread);
  if (single != UINT32_MAX) add_once(list, &count, single);
  for (uint32_t i = 0; i < j->known.count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if ((k->whole && k->state == TFC_RESULT_OK) || (is_rival(k) && is_timed(k))) add_once(list, &count, i);
  }
  return count;
}

// What so many timed steps of each take, with those before them by which plans adapt and warm up.
static double seconds_for(const struct tfc_job *j, const uint32_t *list, uint32_t count, uint32_t steps) {
  double us = 0;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_job_known *k = &j->known.data[list[i]];
    us += (steps + 2 + (k->whole ? TFC_ADAPT_STEPS : TFC_ADAPT_ORDER_STEPS)) * k->median_us;
  }
  return 1e-6 * us;
}

// Takes the slowest of the user's own placements out, where even the fewest steps of all have no time; or an expert
// that is out of all proportion.
static bool drop_one(const struct tfc_job *j, uint32_t *list, uint32_t *count) {
  uint32_t worst = UINT32_MAX;
  double least_us = INFINITY;
  for (uint32_t i = 0; i < *count; i++) least_us = fmin(least_us, j->known.data[list[i]].median_us);
  for (uint32_t i = 0; i < *count; i++) {
    const struct tfc_job_known *k = &j->known.data[list[i]];
    if (list[i] == j->best || !is_rival(k)) continue;
    if (strcmp(k->name, "expert") == 0 && k->median_us < 5 * least_us) continue;
    if (worst == UINT32_MAX || k->median_us > j->known.data[list[worst]].median_us) worst = i;
  }
  if (worst == UINT32_MAX) return false;
  memmove(list + worst, list + worst + 1, (*count - worst - 1) * sizeof *list);
  --*count;
  return true;
}

uint32_t tfc_job_finalists(const struct tfc_job *j, double left_s, uint32_t *list, uint32_t *out_block) {
  uint32_t count = competitors(j, list), several = 0, block = BLOCK;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_job_known *k = &j->known.data[list[i]];
    several += k->solution.device && !k->single && !is_rival(k);
  }
  // A screening says little of those that are close together: more of them where all have time for every round, also
  // on a machine that has become slower by a third.
  for (; several < MOST_FINALISTS && count < TFC_JOB_MOST_FINALISTS; several++) {
    uint32_t steps = several < FINALISTS ? 2 * BLOCK : TFC_JOB_FINAL_ROUNDS * BLOCK * 4 / 3;
    list[count] = fastest(j, false, list, count);
    if (list[count] == UINT32_MAX || seconds_for(j, list, count + 1, steps) > left_s) break;
    count++;
  }
  while (seconds_for(j, list, count, 2 * FEWEST_BLOCK) > left_s && drop_one(j, list, &count)) {
  }
  while (block > FEWEST_BLOCK && seconds_for(j, list, count, 2 * block) > left_s) block--;
  *out_block = block;
  return count;
}

// --- Time ------------------------------------------------------------------------------------------------------------
static double report_seconds(const struct tfc_job *j) {
  return 0.04 * tfc_job_total_seconds(j) + 1;
}
static const double unordered_share = 0.08, in_flight_share = 0.5;

double tfc_job_final_seconds(const struct tfc_job *j) {
  uint32_t list[TFC_JOB_MOST_FINALISTS], count = competitors(j, list);
  double turns = seconds_for(j, list, count, 2 * (FEWEST_BLOCK + 1)) / (1 - unordered_share);
  if (tfc_job_runs_in_flight(j)) turns /= 1 - in_flight_share;
  return turns + report_seconds(j);
}

// Those of the least loads, and what they are compared with.
static uint32_t by_load(const struct tfc_job *j, uint32_t *list) {
  uint32_t count = 0;
  for (int single = 0; single < 2; single++)
    for (uint32_t round = 0; round < (single ? 1 : FINALISTS); round++) {
      uint32_t best = UINT32_MAX;
      for (uint32_t i = 0; i < j->known.count; i++) {
        const struct tfc_job_known *k = &j->known.data[i];
        bool taken = !tfc_job_can_answer(k) || k->single != (single == 1) || isnan(k->simulated_us);
        for (uint32_t n = 0; n < count && !taken; n++) taken = j->known.data[list[n]].digest == k->digest;
        if (!taken && (best == UINT32_MAX || k->simulated_us < j->known.data[best].simulated_us)) best = i;
      }
      if (best != UINT32_MAX) add_once(list, &count, best);
    }
  for (uint32_t i = 0; i < j->known.count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (k->baseline && !k->heuristic && !k->single && tfc_job_can_answer(k)) add_once(list, &count, i);
  }
  return count;
}

// The answer without its order of operations, which a graph cannot carry: the plan makes its own.
static tfc_status unordered(void *user, const struct tfc_measured *m) {
  struct tfc_job *j = user;
  struct tfc_result r = {0};
  if (m->state != TFC_RESULT_OK) return NULL; // only a note is lost
  TFC_RETURN_IF_ERROR(tfc_result_from_measured(m, j->info->device_count, TFC_LABEL_MEASURED, false, &r));
  if (r.state == TFC_RESULT_OK && r.steps) {
    j->unordered_us = 1e-6 * (double)r.value, j->unordered_steps = r.steps;
    j->unordered_q1 = 1e-6 * (double)r.q1, j->unordered_q3 = 1e-6 * (double)r.q3;
  }
  tfc_result_deinit(&r);
  return NULL;
}

static tfc_status measure_unordered(struct tfc_job *j, double deadline_s) {
  tfc_status s = NULL;
  if (j->best == UINT32_MAX || !tfc_job_can_answer(&j->known.data[j->best])) return NULL;
  // A warm-up and two steps, however late it is: not where the whole job would take much longer by that.
  if (tfc_job_seconds(j) + 4e-6 * j->known.data[j->best].median_us > 1.05 * tfc_job_total_seconds(j) + 1) return NULL;
  uint16_t *placement = malloc((j->o->graph->node_count + 1u) * sizeof *placement);
  uint32_t *sequence = malloc((j->subject->cost_count + 1u) * sizeof *sequence), ignored;
  if (!placement || !sequence) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_job_assign(j, &j->known.data[j->best], placement, sequence, &ignored));
  struct tfc_measure_entry entry = {.placement = placement};
  struct tfc_measure_batch batch = {.entries = &entry,
                                    .count = 1,
                                    .reference = UINT32_MAX,
                                    .warmup = 1,
                                    .block = BLOCK,
                                    .blocks = 2,
                                    .best_us = (double)NAN,
                                    .trace = TFC_TRACE_MODE_NONE,
                                    .ignore_limits = true,
                                    .deadline_s = deadline_s};
  TFC_TRY(s, tfc_measurer_run(j->measurer, &batch, unordered, j));
out:
  free(placement);
  free(sequence);
  return s;
}

tfc_status tfc_job_final(struct tfc_job *j) {
  tfc_status s = NULL;
  struct finishing f = {.job = j};
  uint32_t block;
  double reserve = report_seconds(j);
  const double end = tfc_job_total_seconds(j) - reserve;
  if (tfc_job_runs_in_flight(j)) reserve += in_flight_share * fmax(0, end - tfc_job_seconds(j)); // several at once
  reserve += unordered_share * fmax(0, tfc_job_total_seconds(j) - reserve - tfc_job_seconds(j));
  uint32_t count = tfc_job_finalists(j, tfc_job_total_seconds(j) - reserve - tfc_job_seconds(j), f.index, &block);
  struct tfc_job_entries entries = {0};
  TFC_TRY(s, tfc_job_entries_make(j, f.index, count, UINT32_MAX, &entries));
  tfc_job_say(j, false, "final run: %u placements in turns", count);
  struct tfc_measure_batch batch = {.entries = entries.list,
                                    .count = count,
                                    .reference = UINT32_MAX,
                                    .warmup = 1,
                                    .block = block,
                                    .blocks = TFC_JOB_FINAL_ROUNDS,
                                    .best_us = (double)NAN,
                                    .trace = j->trace,
                                    .deadline_s =
                                        1e-9 * (double)j->begin_ns - j->before_s + tfc_job_total_seconds(j) - reserve};
  if (count) TFC_TRY(s, tfc_measurer_run(j->measurer, &batch, finished, &f));
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_job_known *k = &j->known.data[f.index[i]];
    if (tfc_job_can_answer(k) && isfinite(k->final_us) &&
        (j->best == UINT32_MAX || k->final_us < tfc_job_final_us(&j->known.data[j->best]) ||
         j->known.data[j->best].state != TFC_RESULT_OK))
      j->best = f.index[i];
  }
  TFC_TRY(s, measure_unordered(j, 1e-9 * (double)j->begin_ns - j->before_s + end));
  count = by_load(j, f.index);
  for (uint32_t i = 0; i < j->known.count; i++)
    if (j->known.data[i].whole && j->known.data[i].state == TFC_RESULT_OK) add_once(f.index, &count, i);
  TFC_TRY(s, tfc_job_measure_in_flight(j, f.index, count, end));
out:
  tfc_job_entries_deinit(&entries);
  return s;
}
