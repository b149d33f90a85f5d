#include "placer/job/turns.h"

#include <math.h>

#include "placer/job/entries.h"
#include "placer/job/finalists.h"

double tfc_job_turns_search_end_s(const struct tfc_job_measuring *t) {
  return tfc_job_search_end_s(t->schedule, tfc_job_final_s(t->candidates, t->schedule));
}

struct measuring {
  struct tfc_job_measuring *t;
  const uint32_t *index; // [entry] its candidate; the last entry is the reference
  const struct tfc_measure_entry *entries;
  uint32_t count;
  double reference_us; // level of the reference; NaN: there is no reference
};
static tfc_status measured(void *user, const struct tfc_measured *m) {
  struct measuring *b = user;
  struct tfc_job_candidates *c = b->t->candidates;
  if (m->entry >= b->count) return NULL; // this is the reference
  const uint32_t index = b->index[m->entry];
  if (m->state == TFC_RESULT_CUT && m->step_count == 0) return NULL; // there was no time to measure it
  TFC_RETURN_IF_ERROR(tfc_job_measuring_take(b->t, index, m, "screen"));
  tfc_job_candidates_level(c, index, b->reference_us);
  TFC_RETURN_IF_ERROR(tfc_job_measuring_learn(b->t, index, m));
  const struct tfc_measure_entry *e = &b->entries[m->entry];
  TFC_RETURN_IF_ERROR(tfc_job_candidates_keep_sequence(c, index, e->sequence, e->sequence_count));
  const struct tfc_job_candidate *k = &c->list.data[index];
  if (m->state == TFC_RESULT_FAILED)
    tfc_job_say(b->t->clock, true, "%s: %s", k->name, m->message ? m->message : "failed");
  if (!k->baseline || !k->heuristic) tfc_job_candidates_consider(c, index);
  tfc_job_say(b->t->clock, false, NULL);
  return NULL;
}

// Whether there is time for the incumbent's blocks and one more measurement. If not, reduces `count` to the number of
// candidates that there is time for, with two steps each, but to at least one.
static bool time_for_reference(double step_us, double left_s, uint32_t *count) {
  enum { BEFORE = TFC_ADAPT_ORDER_STEPS + 1, BLOCK = 5, LATE = 2 };
  double step_s = 1e-6 * step_us;
  if ((2 * (BEFORE + BLOCK) + BLOCK) * step_s <= left_s) return true;
  double fit = left_s / ((BEFORE + LATE) * step_s);
  if (fit < *count) *count = fit > 1 ? (uint32_t)fit : 1;
  return false;
}

tfc_status tfc_job_turns_measure(struct tfc_job_measuring *t, const uint32_t *index, uint32_t count, bool thorough) {
  tfc_status s = NULL;
  const struct tfc_job_options *o = t->model->o;
  const struct tfc_job_candidates *c = t->candidates;
  struct measuring b = {.t = t, .index = index};
  struct tfc_job_entries entries = {0};
  const struct tfc_job_candidate *incumbent = tfc_job_candidates_best(c);
  double best = (double)NAN, end = tfc_job_turns_search_end_s(t);
  if (t->schedule->batch_until_s > 0) end = fmin(end, t->schedule->batch_until_s);
  bool reference = incumbent && time_for_reference(incumbent->median_us, end - tfc_job_seconds(t->clock), &count);
  // For throughput a placement with a long step may be good, because its load may be small.
  const bool loads = o->request.objective == TFC_OBJECTIVE_THROUGHPUT;
  TFC_TRY(s, tfc_job_entries_make(c, index, count, reference ? c->best : TFC_NONE, &entries));
  // "Far too slow" is relative to the best candidate, even if that is on a single device.
  for (uint32_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    if (tfc_job_can_answer(k) && (isnan(best) || k->median_us < best)) best = k->median_us;
  }
  struct tfc_measure_batch batch = {.entries = entries.list,
                                    .count = count + reference,
                                    .reference = reference ? count : TFC_NONE,
                                    .warmup = 1,
                                    .block = 5,
                                    .blocks = thorough                                      ? 4
                                              : t->model->trace == TFC_TRACE_MODE_ALTERNATE ? 2
                                                                                            : 1,
                                    .stop_ratio = o->no_early_stop || thorough || loads ? 0 : 1.5,
                                    .best_us = best,
                                    .trace = t->model->trace,
                                    .deadline_s = tfc_job_moment(t->clock, end)};
  b.entries = entries.list, b.count = count;
  b.reference_us = reference ? incumbent->level_us : (double)NAN;
  TFC_TRY(s, tfc_measurer_run(t->measurer, &batch, measured, &b));
out:
  tfc_job_entries_deinit(&entries);
  return s;
}

// --- Confirming ------------------------------------------------------------------------------------------------------
enum { CONFIRM_BLOCKS = 3, CONFIRM_BLOCK = 5 };

static tfc_status confirmed(void *user, const struct tfc_measured *m) {
  double *ratio = user;
  if (m->entry == 0 && m->state == TFC_RESULT_OK) *ratio = m->ratio;
  return NULL;
}

tfc_status tfc_job_turns_confirm(struct tfc_job_measuring *t, uint32_t former, const char **out_winner) {
  tfc_status s = NULL;
  struct tfc_job_candidates *c = t->candidates;
  const struct tfc_job_candidate *now = tfc_job_candidates_best(c);
  struct tfc_job_entries entries = {0};
  double ratio = (double)NAN;
  *out_winner = NULL;
  if (!now || former == TFC_NONE || former == c->best || !c->list.data[former].solution.device) return NULL;
  const double left = tfc_job_turns_search_end_s(t) - tfc_job_seconds(t->clock);
  const double steps = (2 * CONFIRM_BLOCKS + 1) * CONFIRM_BLOCK + 2 * (TFC_ADAPT_ORDER_STEPS + 1);
  if (1e-6 * steps * now->median_us > tfc_job_shares.confirm * left) return NULL;
  TFC_TRY(s, tfc_job_entries_make(c, &c->best, 1, former, &entries));
  struct tfc_measure_batch batch = {.entries = entries.list,
                                    .count = 2,
                                    .reference = 1,
                                    .warmup = 1,
                                    .block = CONFIRM_BLOCK,
                                    .blocks = CONFIRM_BLOCKS,
                                    .best_us = (double)NAN,
                                    .trace = tfc_job_model_least_trace(t->model),
                                    .deadline_s = tfc_job_moment(t->clock, tfc_job_turns_search_end_s(t))};
  TFC_TRY(s, tfc_measurer_run(t->measurer, &batch, confirmed, &ratio));
  if (!isfinite(ratio)) goto out;
  if (ratio < 1) *out_winner = now->algorithm;
  tfc_job_candidates_confirm(c, former, ratio);
out:
  tfc_job_entries_deinit(&entries);
  return s;
}
