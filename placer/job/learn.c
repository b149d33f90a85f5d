// Runs the learners: algorithms that propose placements and learn from their measured step times. Each measurement is
// an episode of the run.
#include "placer/job/learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/turns.h"
#include "placer/measure/evaluator.h"

struct learning {
  struct tfc_job_measuring *t;
  struct tfc_job_proposers *proposers;
  const char *algorithm;
  struct tfc_search_account account; // what the policy's own placements were so far
};
// Stores the order of operations that the evaluator ran; it is computed again in the same way.
static tfc_status keep_sequence(struct tfc_job_candidates *c, uint32_t index, const struct tfc_solution *candidate) {
  tfc_status s = NULL;
  const struct tfc_job_model *m = c->model;
  const struct tfc_subject *l = tfc_job_model_search_subject(m);
  uint32_t count = 0;
  if (!m->problem->has_limits || c->list.data[index].state != TFC_RESULT_OK) return NULL;
  uint16_t *placement = malloc((m->o->graph->node_count + 1u) * sizeof *placement);
  uint32_t *sequence = malloc((l->cost_count + 1u) * sizeof *sequence);
  if (!placement || !sequence) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_subject_assign(l, tfc_job_model_search_problem(m), candidate, placement, sequence, &count));
  TFC_TRY(s, tfc_job_candidates_keep_sequence(c, index, sequence, count));
out:
  free(placement);
  free(sequence);
  return s;
}

static tfc_status observed(void *user, uint32_t index, const struct tfc_solution *candidate,
                           const struct tfc_measured *m, const struct tfc_result *result) {
  tfc_status s = NULL;
  struct learning *l = user;
  struct tfc_job_candidates *c = l->t->candidates;
  struct tfc_solution fine = {0};
  uint32_t at;
  bool is_new;
  (void)result;
  if (index == TFC_NONE || (m->state == TFC_RESULT_CUT && m->step_count == 0)) return NULL;
  TFC_TRY(s, tfc_job_model_found(l->t->model, candidate, &fine));
  TFC_TRY(s, tfc_job_candidates_add(c, NULL, l->algorithm, "candidate", &fine, &at, &is_new));
  if (!is_new) TFC_TRY(s, tfc_job_candidates_add_again(c, at, &fine, l->algorithm, &at));
  if (l->account.samples.count) tfc_job_candidates_searched(c, at, &l->account);
  TFC_TRY(s, tfc_job_measuring_take(l->t, at, m, "screen"));
  TFC_TRY(s, tfc_job_measuring_learn(l->t, at, m));
  TFC_TRY(s, tfc_job_proposers_measured(l->proposers, l->algorithm, true, c->list.data[at].predicted_us,
                                        c->list.data[at].median_us));
  TFC_TRY(s, keep_sequence(c, at, candidate));
  tfc_job_candidates_consider(c, at);
  tfc_job_say(l->t->clock, false, NULL);
out:
  if (fine.device) tfc_solution_deinit(&fine);
  return s;
}

tfc_status tfc_job_learn(struct tfc_job_measuring *t, struct tfc_job_proposers *proposers, const struct tfc_algo *algo,
                         double until_s, uint32_t measurements) {
  tfc_status s = NULL;
  struct tfc_evaluator *evaluator = NULL;
  struct tfc_solution found = {0};
  const struct tfc_problem *p = tfc_job_model_search_problem(t->model);
  struct learning l = {t, proposers, algo->name, {.before = TFC_TIME_MAX, .after = TFC_TIME_MAX}};
  const struct tfc_job_options *o = t->model->o;
  uint64_t simulated = 0;
  struct tfc_measure_settings settings = {.warmup = 1,
                                          .block = 5,
                                          .blocks = t->model->trace == TFC_TRACE_MODE_ALTERNATE ? 2 : 1,
                                          .stop_ratio = 0,
                                          .trace = t->model->trace,
                                          .deadline_s = tfc_job_moment(t->clock, tfc_job_turns_search_end_s(t))};
  struct tfc_budget budget = {.deadline = tfc_job_moment(t->clock, until_s),
                              .evaluations = measurements,
                              .seed = (uint64_t)o->execution.seed,
                              .threads = (uint32_t)o->execution.threads ? (uint32_t)o->execution.threads : 1,
                              .cancel = o->cancel,
                              .guide = o->search.guide,
                              .samples = &l.account.samples,
                              .simulated = &simulated};
  uint64_t evaluations = 0;
  const char *winner = NULL;
  if (!tfc_job_proposers_may_search(proposers, o->evaluations, 0, &budget.simulations)) return NULL;
  TFC_TRY(s, tfc_solution_init(&found, p));
  TFC_TRY(s, tfc_evaluator_measured(t->measurer, tfc_job_model_search_subject(t->model), p, &settings, observed, &l,
                                    &evaluator));
  tfc_job_say(t->clock, false, "%s learns from up to %u measurements", algo->name, measurements);
  const uint32_t former = t->candidates->best;
  s = algo->propose(p, evaluator, &budget, &found, &evaluations);
  tfc_job_proposers_simulated(proposers, simulated);
  if (tfc_status_code(s) == TFC_FAILED_PRECONDITION) {
    tfc_job_say(t->clock, true, "%s: %s", algo->name, tfc_status_message(s));
    tfc_status_free(s);
    s = NULL;
  }
  if (!s && tfc_job_cancelled(t->clock)) s = tfc_status_make(TFC_CANCELLED, "interrupted");
  if (!s) s = tfc_job_turns_confirm(t, former, &winner);
  if (winner) tfc_job_proposers_won(proposers, winner);
out:
  tfc_evaluator_free(evaluator);
  tfc_solution_deinit(&found);
  return s;
}
