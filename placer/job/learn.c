// Learners: algorithms that propose from measured step times, each measurement an episode of the run.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/private.h"
#include "runtime/base/clock.h"

struct learning {
  struct tfc_job *job;
  const char *algorithm;
};
// The order that the evaluator worked out for it, worked out again.
static tfc_status keep_sequence(struct tfc_job *j, struct tfc_job_known *k, const struct tfc_solution *candidate) {
  tfc_status s = NULL;
  const struct tfc_subject *l = tfc_job_search_subject(j);
  uint32_t count = 0;
  if (!j->problem->has_limits || k->state != TFC_RESULT_OK) return NULL;
  uint16_t *placement = malloc((j->o->graph->node_count + 1u) * sizeof *placement);
  uint32_t *sequence = malloc((l->cost_count + 1u) * sizeof *sequence);
  if (!placement || !sequence) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_subject_assign(l, tfc_job_search_problem(j), candidate, placement, sequence, &count));
  TFC_TRY(s, tfc_job_keep_sequence(j, k, sequence, count));
out:
  free(placement);
  free(sequence);
  return s;
}

static tfc_status observed(void *user, uint32_t index, const struct tfc_solution *candidate,
                           const struct tfc_measured *m, const struct tfc_result *result) {
  struct learning *l = user;
  struct tfc_job *j = l->job;
  uint32_t at;
  bool is_new;
  (void)result;
  if (index == UINT32_MAX || (m->state == TFC_RESULT_CUT && m->step_count == 0)) return NULL;
  tfc_status s = NULL;
  struct tfc_solution fine = {0};
  TFC_TRY(s, tfc_job_found(j, candidate, &fine));
  TFC_TRY(s, tfc_job_add(j, NULL, l->algorithm, "candidate", &fine, &at, &is_new));
  struct tfc_job_known *k = &j->known.data[at];
  if (!is_new) { // measured again: an episode of its own
    struct tfc_job_known again = *k;
    again.name = tfc_format("#%zu", j->known.count);
    again.algorithm = tfc_str_dup(tfc_str_from(l->algorithm));
    again.solution = (struct tfc_solution){0};
    again.sequence = NULL, again.sequence_count = 0;
    again.peak = NULL, again.busy_us = again.share = NULL, again.note = NULL;
    again.role = "candidate", again.baseline = again.heuristic = again.single = again.raw = false;
    again.key = 0, again.next_step = 0, again.median_us = (double)NAN, again.final_us = (double)NAN;
    again.final_steps = 0, again.final_step_us.data = NULL, again.final_block_of.data = NULL;
    again.final_step_us.count = again.final_step_us.capacity = 0;
    again.final_block_of.count = again.final_block_of.capacity = 0;
    again.in_flight = (struct tfc_job_samples){0};
    if (!again.name || !again.algorithm || !tfc_array_push(&j->known, again))
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    at = (uint32_t)j->known.count - 1;
    TFC_TRY(s, tfc_solution_copy(&j->known.data[at].solution, &fine, j->problem));
    k = &j->known.data[at];
  }
  TFC_TRY(s, tfc_job_record(j, k, m, "screen"));
  TFC_TRY(s, keep_sequence(j, k, candidate));
  tfc_job_consider(j, at);
  tfc_job_say(j, false, NULL);
out:
  if (fine.device) tfc_solution_deinit(&fine);
  return s;
}

tfc_status tfc_job_learn(struct tfc_job *j, const struct tfc_algo *algo, double until_s, uint32_t measurements) {
  tfc_status s = NULL;
  struct tfc_evaluator *evaluator = NULL;
  struct tfc_solution found = {0};
  const struct tfc_problem *p = tfc_job_search_problem(j);
  struct learning l = {j, algo->name};
  double begin = 1e-9 * (double)j->begin_ns - j->before_s;
  struct tfc_measure_settings settings = {.warmup = 1,
                                          .block = 5,
                                          .blocks = j->trace == TFC_TRACE_MODE_ALTERNATE ? 2 : 1,
                                          .stop_ratio = 0,
                                          .trace = j->trace,
                                          .deadline_s = begin + tfc_job_search_end_s(j)};
  struct tfc_budget budget = {.deadline = begin + until_s,
                              .evaluations = measurements,
                              .seed = (uint64_t)j->o->execution.seed,
                              .threads = (uint32_t)j->o->execution.threads ? (uint32_t)j->o->execution.threads : 1,
                              .cancel = j->o->cancel,
                              .guide = j->o->guide};
  uint64_t evaluations = 0;
  TFC_TRY(s, tfc_solution_init(&found, p));
  TFC_TRY(s, tfc_evaluator_measured(j->measurer, tfc_job_search_subject(j), p, &settings, observed, &l, &evaluator));
  tfc_job_say(j, false, "%s learns from up to %u measurements", algo->name, measurements);
  s = algo->propose(p, evaluator, &budget, &found, &evaluations);
  if (tfc_status_code(s) == TFC_FAILED_PRECONDITION) {
    tfc_job_say(j, true, "%s: %s", algo->name, tfc_status_message(s));
    tfc_status_free(s);
    s = NULL;
  }
  if (!s && tfc_job_cancelled(j)) s = tfc_status_make(TFC_CANCELLED, "interrupted");
out:
  tfc_evaluator_free(evaluator);
  tfc_solution_deinit(&found);
  return s;
}
