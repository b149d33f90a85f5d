#include "placer/job/final.h"

#include <math.h>
#include <stdlib.h>

#include "placer/job/entries.h"
#include "placer/job/finalists.h"
#include "placer/job/in_flight.h"
#include "runtime/base/units.h"

static const double told_from = 1.05; // a message explains why, if the answer is slower than was reported by more than
                                      // this factor

struct finishing {
  struct tfc_job_measuring *t;
  uint32_t index[TFC_JOB_MOST_FINALISTS];
};
static tfc_status finished(void *user, const struct tfc_measured *m) {
  struct finishing *f = user;
  if (m->state == TFC_RESULT_CUT && m->step_count == 0) return NULL; // there was no time to measure it
  TFC_RETURN_IF_ERROR(tfc_job_measuring_take(f->t, f->index[m->entry], m, "final"));
  tfc_job_say(f->t->clock, false, NULL);
  return NULL;
}

// Stores the measurement of the answer without its order of operations. A graph file cannot contain that order, so a
// plan that is made from it has an order of its own.
static tfc_status unordered(void *user, const struct tfc_measured *m) {
  if (m->state != TFC_RESULT_OK) return NULL; // the answer's document then lacks the time without this order
  return tfc_job_candidates_take_unordered(user, m);
}

static tfc_status measure_unordered(struct tfc_job_measuring *t, double deadline_s) {
  tfc_status s = NULL;
  const struct tfc_job_candidate *best = tfc_job_candidates_best(t->candidates);
  struct tfc_job_entries entries = {0};
  if (!best || !tfc_job_can_answer(best)) return NULL;
  // Even if it is late, a warm-up and two steps are measured, but not if the whole job would then take far too long.
  const double end = tfc_job_until(t->schedule, tfc_job_shares.late) + 1;
  if (tfc_job_seconds(t->clock) + 4e-6 * best->median_us > end) return NULL;
  TFC_TRY(s, tfc_job_entries_make(t->candidates, &t->candidates->best, 1, TFC_NONE, &entries));
  entries.list[0].sequence = NULL, entries.list[0].sequence_count = 0;
  struct tfc_measure_batch batch = {.entries = entries.list,
                                    .count = 1,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = TFC_JOB_FINAL_BLOCK,
                                    .blocks = 2,
                                    .best_us = (double)NAN,
                                    .trace = tfc_job_model_least_trace(t->model),
                                    .ignore_limits = true,
                                    .deadline_s = deadline_s};
  TFC_TRY(s, tfc_measurer_run(t->measurer, &batch, unordered, t->candidates));
out:
  tfc_job_entries_deinit(&entries);
  return s;
}

// Explains why the placement that was reported as the best so far is not the answer, or why the answer takes longer
// now.
static void explain_seen(const struct tfc_job_measuring *t) {
  const struct tfc_job_candidates *c = t->candidates;
  char a[32], b[32], d[32];
  if (c->seen == TFC_NONE) return;
  const struct tfc_job_candidate *k = &c->list.data[c->seen];
  const char *by = k->algorithm ? k->algorithm : k->name;
  const bool measures = isfinite(k->final_us);
  const double us = measures ? k->final_us : tfc_job_choose_us(k);
  if (c->seen == c->best && !(us > told_from * c->best_seen_us)) return;
  if (isfinite(us) && !measures && c->best != TFC_NONE && isfinite(tfc_job_choose_us(&c->list.data[c->best])))
    tfc_job_say(t->clock, false, "the best so far, %s by %s, took %s in the turns that chose the answer, which took %s",
                tfc_show_us(a, c->best_seen_us), by, tfc_show_us(b, us),
                tfc_show_us(d, tfc_job_choose_us(&c->list.data[c->best])));
  else if (isfinite(us))
    tfc_job_say(t->clock, false, "the best so far, %s by %s, took %s in the final turns",
                tfc_show_us(a, c->best_seen_us), by, tfc_show_us(b, us));
  else
    tfc_job_say(t->clock, false, "the best so far, %s by %s, was not measured in the final turns: %s",
                tfc_show_us(a, c->best_seen_us), by, k->note ? k->note : "there was no time left");
}

tfc_status tfc_job_final(struct tfc_job_measuring *t) {
  tfc_status s = NULL;
  struct finishing f = {.t = t};
  struct tfc_job_candidates *c = t->candidates;
  struct tfc_job_entries entries = {0};
  uint32_t block;
  const double total = t->schedule->total_s, report = tfc_job_report_s(t->schedule), end = total - report;
  const double left = fmax(0, end - tfc_job_seconds(t->clock));
  double reserve = report;
  // keeps time for measuring several steps in flight
  if (tfc_job_model_runs_in_flight(t->model)) reserve += tfc_job_shares.in_flight * left;
  reserve += tfc_job_shares.unordered * fmax(0, total - reserve - tfc_job_seconds(t->clock));
  if (t->model->o->request.objective == TFC_OBJECTIVE_THROUGHPUT) tfc_job_candidates_simulate(c);
  uint32_t count = tfc_job_finalists(c, total - reserve - tfc_job_seconds(t->clock), f.index, &block);
  TFC_TRY(s, tfc_job_entries_make(c, f.index, count, TFC_NONE, &entries));
  uint32_t answers = 0;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[f.index[i]];
    entries.list[i].answers = tfc_job_can_answer(k), entries.list[i].stays = tfc_job_stays(c, f.index[i]);
    answers += tfc_job_can_answer(k);
  }
  tfc_job_candidates_begin_final(c, answers > 1 ? TFC_JOB_CHOOSE_ROUNDS : 1);
  const double now = tfc_job_seconds(t->clock);
  tfc_job_say(t->clock, false, "final run: %u placements in turns", count);
  struct tfc_measure_batch batch = {
      .entries = entries.list,
      .count = count,
      .reference = TFC_NONE,
      .warmup = 1,
      .block = block,
      .blocks = TFC_JOB_FINAL_ROUNDS,
      .choose = c->final_from,
      .choose_until_s = tfc_job_moment(t->clock, now + tfc_job_shares.choosing * (total - reserve - now)),
      .best_us = (double)NAN,
      .trace = t->model->trace,
      .deadline_s = tfc_job_moment(t->clock, total - reserve)};
  if (count) TFC_TRY(s, tfc_measurer_run(t->measurer, &batch, finished, &f));
  tfc_job_candidates_choose_finalist(c, f.index, count);
  explain_seen(t);
  count = tfc_job_finalists_by_load(c, f.index);
  TFC_TRY(s, tfc_job_measure_in_flight(c, t->journal, t->measurer, f.index, count, end));
  // Where loads decide, the incumbent, which has the shortest step, gives way to the answer.
  uint32_t single;
  if (t->model->o->request.objective == TFC_OBJECTIVE_THROUGHPUT) tfc_job_candidates_choose_by_load(c, &single);
  TFC_TRY(s, measure_unordered(t, tfc_job_moment(t->clock, end)));
out:
  tfc_job_entries_deinit(&entries);
  return s;
}
