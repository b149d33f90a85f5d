// The algorithm `rl` rolls out the trained policy: first every head once, then weights that are tuned from these heads
// on this problem. Unless the budget is very small, its last part frees units of the best placement and places them
// again, with the best weights. If placements are measured, it first tunes the weights in the simulator. Then, of each
// batch of rollouts, those with the best simulated times are measured, and learning continues from the measured times.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rl/gradient.h"
#include "rl/guidance.h"
#include "rl/rl.h"
#include "rl/tuner.h"

enum { BATCH = 4, SIMULATED = 200, TRIES = 12, MOST = 2000, FEW = 40 };
#define WHOLE 0.6 // share of the budget for rollouts that place all units

static tfc_status take(const struct tfc_tuner *t, const char *name, struct tfc_solution *out) {
  if (!t->elite_count || t->elite[0].score.value == TFC_TIME_MAX)
    return tfc_status_make(TFC_FAILED_PRECONDITION, "%s: none of %llu placements could run", name,
                           (unsigned long long)t->told);
  memcpy(out->device, t->elite[0].device, sizeof *out->device * t->problem->unit_count);
  free(out->rank);
  out->rank = NULL;
  return NULL;
}

static struct tfc_budget limited(const struct tfc_budget *budget) {
  struct tfc_budget own = *budget;
  if (!own.evaluations && own.deadline <= 0) own.evaluations = MOST;
  return own;
}

// Says what the placements of the policy were, simulated and measured.
static void tell_samples(const struct tfc_budget *budget, const struct tfc_tuner *t, const struct tfc_tuner *other) {
  struct tfc_guide_samples all = {0};
  if (!budget->samples) return;
  tfc_tuner_add_samples(t, &all);
  if (other) tfc_tuner_add_samples(other, &all);
  *budget->samples = all;
}

static tfc_status roll(const struct tfc_problem *p, const struct tfc_policy *policy, const char *name,
                       const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct tfc_tuner *t = NULL;
  const struct tfc_budget own = limited(budget);
  struct tfc_score score = TFC_SCORE_NONE;
  uint64_t used = 0;
  TFC_TRY(s, tfc_tuner_create(p, policy, budget->seed, budget->threads, &t));
  do {
    struct tfc_budget part = own;
    const uint64_t before = t->told, left = own.evaluations - used;
    if (own.evaluations) part.evaluations = left > FEW ? (uint64_t)(WHOLE * (double)left) : left;
    if (own.deadline > 0) part.deadline = own.deadline - (1 - WHOLE) * (own.deadline - tfc_now_s());
    TFC_TRY(s, tfc_tuner_run(t, &part));
    used += t->told - before;
    if (!t->elite_count || tfc_score_better(t->elite[0].score, score)) {
      TFC_TRY(s, take(t, name, out));
      score = t->elite[0].score;
    }
    if (own.evaluations && used >= own.evaluations) break;
    part = own, part.evaluations = own.evaluations ? own.evaluations - used : 0;
    TFC_TRY(s, tfc_improve(t, &part, out, &score, &used)); // ends early if it finds no better placement
  } while (!tfc_budget_over(&own) && (!own.evaluations || used < own.evaluations));
  *out_evaluations += used;
  tell_samples(budget, t, NULL);
  TFC_TRY(s, tfc_policy_learn(policy, t));
out:
  tfc_tuner_free(t);
  return s;
}

// --- With measured placements --------------------------------------------------------------------------------------

struct measuring {
  const struct tfc_problem *p;
  struct tfc_evaluator *evaluator;
  struct tfc_rules rules;
  struct tfc_tuner *t;
  struct tfc_gradient gradient; // moves the tuner's centre
  struct tfc_result results[BATCH];
  struct tfc_solution reference; // device NULL: none yet
  double reference_value;
  uint64_t *known; // [known_count] hashes of the placements that were measured
  uint32_t known_count;
};

static uint64_t fingerprint(const struct tfc_problem *p, const tfc_device_id *device) {
  uint64_t x = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    x ^= device[u] + 1u;
    x = tfc_splitmix64(&x);
  }
  return x;
}

static tfc_status know(struct measuring *m, uint64_t x, bool *out_new) {
  for (uint32_t i = 0; i < m->known_count; i++)
    if (m->known[i] == x) return *out_new = false, NULL;
  uint64_t *more = realloc(m->known, (m->known_count + 1u) * sizeof *more);
  if (!more) return tfc_status_no_memory("a policy");
  m->known = more;
  more[m->known_count++] = x;
  *out_new = true;
  return NULL;
}

// Chooses the best trials by simulation, among those that were not measured before.
static tfc_status choose(struct measuring *m, uint32_t most, uint32_t *chosen, uint32_t *out_count) {
  *out_count = 0;
  for (uint32_t i = 0; i < m->t->trial_count; i++) m->t->trial[i].ignored = true;
  bool seen[TFC_TUNER_TRIALS] = {0};
  while (*out_count < most) {
    uint32_t best = TFC_NONE;
    bool is_new;
    for (uint32_t i = 0; i < m->t->trial_count; i++)
      if (!seen[i] && (best == TFC_NONE || tfc_score_better(m->t->trial[i].score, m->t->trial[best].score))) best = i;
    if (best == TFC_NONE) break;
    seen[best] = true;
    TFC_RETURN_IF_ERROR(know(m, fingerprint(m->p, m->t->trial[best].device), &is_new));
    if (is_new) chosen[(*out_count)++] = best;
  }
  return NULL;
}

static tfc_status keep_reference(struct measuring *m, const struct tfc_solution *batch, uint32_t count) {
  uint32_t best = TFC_NONE;
  for (uint32_t i = 0; i < count; i++)
    if (m->results[i].state == TFC_RESULT_OK && (best == TFC_NONE || m->results[i].value < m->results[best].value))
      best = i;
  if (best == TFC_NONE || m->reference.device) return NULL;
  m->reference_value = (double)m->results[best].value;
  return tfc_solution_copy(&m->reference, &batch[best], m->p);
}

// Moves the centre by the trials that were drawn around it and ran in this batch, which is one interleaved block.
static void learn_from_block(struct measuring *m, const uint32_t *chosen, uint32_t count) {
  const float *weights[BATCH];
  double times[BATCH];
  uint32_t central = 0;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_trial *x = &m->t->trial[chosen[i]];
    const struct tfc_result *r = &m->results[i];
    if (!x->central) continue;
    weights[central] = x->weights;
    times[central++] = r->state == TFC_RESULT_OK && !r->excess && r->value < TFC_TIME_MAX ? (double)r->value : NAN;
  }
  tfc_gradient_step(&m->gradient, weights, times, central);
}

// Runs one batch: rolls out as many trials as the tuner takes at a time, and measures the best `most` of them.
static tfc_status measure_batch(struct measuring *m, uint32_t most, uint32_t *out_count) {
  struct tfc_solution batch[BATCH] = {0};
  uint32_t chosen[BATCH];
  TFC_RETURN_IF_ERROR(tfc_tuner_ask(m->t, TFC_TUNER_TRIALS));
  TFC_RETURN_IF_ERROR(choose(m, most, chosen, out_count));
  if (!*out_count) return NULL;
  for (uint32_t i = 0; i < *out_count; i++) batch[i].device = m->t->trial[chosen[i]].device;
  struct tfc_rules rules = m->rules;
  if (m->reference.device) rules.reference = &m->reference;
  TFC_RETURN_IF_ERROR(tfc_evaluate(m->evaluator, batch, *out_count, &rules, m->results));
  for (uint32_t i = 0; i < *out_count; i++) {
    struct tfc_trial *x = &m->t->trial[chosen[i]];
    const struct tfc_result *r = &m->results[i];
    double value = (double)r->value;
    // The value is relative to one placement that is measured with each batch; so a machine that becomes slower does
    // not change it.
    if (m->reference.device && r->ratio > 0 && isfinite(r->ratio)) value = r->ratio * m->reference_value;
    const bool timed = r->value > 0 && r->value < TFC_TIME_MAX && value < 9e18 && r->state != TFC_RESULT_FAILED &&
                       r->state != TFC_RESULT_ILLEGAL;
    x->ignored = false;
    x->score = timed ? (struct tfc_score){r->excess, (int64_t)value} : TFC_SCORE_NONE;
    if (timed && r->state == TFC_RESULT_NO_FIT && !r->excess) x->score.excess = 1;
  }
  TFC_RETURN_IF_ERROR(keep_reference(m, batch, *out_count));
  learn_from_block(m, chosen, *out_count);
  tfc_tuner_tell(m->t);
  return NULL;
}

static tfc_status measure(const struct tfc_problem *p, const struct tfc_policy *policy, struct tfc_evaluator *evaluator,
                          const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct tfc_policy *tuned = NULL;
  struct tfc_tuner *simulated = NULL;
  struct measuring m = {.p = p, .evaluator = evaluator};
  const struct tfc_budget own = limited(budget);
  struct tfc_budget before = own;
  m.rules = (struct tfc_rules){.cutoff = TFC_TIME_MAX, .warmup = 1, .steps = 5, .detail = p->has_limits};
  before.evaluations = budget->simulations && budget->simulations < SIMULATED ? budget->simulations : SIMULATED;
  before.found = NULL;
  TFC_TRY(s, tfc_tuner_create(p, policy, budget->seed, budget->threads, &simulated));
  TFC_TRY(s, tfc_tuner_run(simulated, &before));
  TFC_TRY(s, tfc_policy_create(simulated->elite_count ? simulated->elite_count : 1, &tuned));
  memcpy(tuned->spread, policy->spread, sizeof tuned->spread);
  for (uint32_t i = 0; i < simulated->elite_count; i++)
    memcpy(tuned->head[i], simulated->elite[i].weights, sizeof tuned->head[i]);
  TFC_TRY(s, tfc_tuner_create(p, tuned, budget->seed + 1, budget->threads, &m.t));
  for (int i = 0; i < TFC_WEIGHTS; i++) m.gradient.mean[i] = (double)tuned->head[0][i];
  m.t->centre = m.gradient.mean;
  for (uint32_t idle = 0; idle < TRIES && !tfc_budget_over(&own);) {
    uint64_t most = BATCH;
    uint32_t count;
    if (own.evaluations && own.evaluations - m.t->told < most) most = own.evaluations - m.t->told;
    if (!most) break;
    if (budget->simulations && simulated->told + m.t->asked + TFC_TUNER_TRIALS > budget->simulations) break;
    tell_samples(budget, m.t, simulated);
    TFC_TRY(s, measure_batch(&m, (uint32_t)most, &count));
    idle = count ? 0 : idle + 1; // the policy proposes nothing new
  }
  *out_evaluations += m.t->told;
  tell_samples(budget, m.t, simulated);
  TFC_TRY(s, take(m.t->told ? m.t : simulated, "rl", out));
  TFC_TRY(s, tfc_policy_learn(policy, m.t));
out:
  if (budget->simulated) *budget->simulated += (simulated ? simulated->told : 0) + (m.t ? m.t->asked : 0);
  for (int i = 0; i < BATCH; i++) tfc_result_deinit(&m.results[i]);
  if (m.reference.device) tfc_solution_deinit(&m.reference);
  free(m.known);
  tfc_tuner_free(m.t);
  tfc_tuner_free(simulated);
  tfc_policy_free(tuned);
  return s;
}

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  const struct tfc_policy *policy = tfc_policy_of(budget->guide);
  if (!policy) return tfc_status_make(TFC_FAILED_PRECONDITION, "rl: there is no policy");
  if (evaluator && strcmp(evaluator->vtable->name, "simulated") != 0)
    return measure(p, policy, evaluator, budget, out, out_evaluations);
  return roll(p, policy, "rl", budget, out, out_evaluations);
}

const struct tfc_algo tfc_algo_rl = {
    .name = "rl",
    .help = "the trained policy: places unit by unit, then learns on this problem what it can within its budget",
    .paper = "rl/README.md; tuning: Rubinstein and Kroese 2004, The Cross-Entropy Method, chapter 2",
    .needs = TFC_NEEDS_EVALUATOR | TFC_NEEDS_BUDGET,
    .propose = propose,
};

static tfc_status propose_untrained(const struct tfc_problem *p, struct tfc_evaluator *evaluator,
                                    const struct tfc_budget *budget, struct tfc_solution *out,
                                    uint64_t *out_evaluations) {
  struct tfc_policy *policy = NULL;
  (void)evaluator;
  TFC_RETURN_IF_ERROR(tfc_policy_untrained(budget->seed, &policy));
  tfc_status s = roll(p, policy, "policy-untrained", budget, out, out_evaluations);
  tfc_policy_free(policy);
  return s;
}

const struct tfc_algo tfc_algo_policy_untrained = {
    .name = "policy-untrained",
    .help = "control: rl with random weights in place of trained ones, tuned in the same way",
    .paper = "as rl",
    .needs = TFC_NEEDS_BUDGET,
    .propose = propose_untrained,
};

const struct tfc_algo *const *tfc_rl_algos(void) {
  static const struct tfc_algo *const algos[] = {&tfc_algo_rl, &tfc_algo_policy_random, &tfc_algo_policy_anneal,
                                                 &tfc_algo_policy_untrained, NULL};
  return algos;
}
