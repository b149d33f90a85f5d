// REINFORCE: sample a batch from the policy, have it evaluated, move along  sum advantage * grad log p.
//
// The reward is -log(objective): a placement twice as fast counts the same wherever it starts from, and one very slow
// sample does not drown the batch. The baseline is a running mean over batches, the advantage is scaled by a running
// standard deviation (both as in Mirhoseini et al. 2017, section 3.1, which uses a moving average). What does not fit
// is worse than everything that does, by how much it misses (samples are repaired before: rl/repair.h); what is stopped
// as hopeless counts with what it took. Measured samples are rewarded by their ratio to one placement that is measured
// beside each of them, the best of the first batch: a machine that becomes slower for a while is no fault of theirs.
#include "rl/rl.h"

#include <math.h>
#include <stdlib.h>

#include "rl/repair.h"
#include "runtime/base/random.h"

struct learner {
  const struct tfc_problem *problem;
  const struct tfc_reinforce_options *options;
  const struct tfc_budget *budget;
  struct tfc_actors *actors;
  struct tfc_policy *policy;
  struct tfc_repair repair; // where there are limits
  struct tfc_random random;
  uint32_t batch;
  float *log_p, *weight;          // [actors, devices]
  tfc_device_id *choices;         // [batch, actors]
  struct tfc_solution *samples;   // [batch]
  struct tfc_result *results;     // [batch]
  struct tfc_solution reference;  // of measured samples; its device NULL: none yet
  double reference_log;           // logarithm of its time
  double *rewards;                // [batch]
  double baseline, spread, worst; // running
  uint64_t evaluated;
  int64_t best_value;
  uint64_t best_excess;
};

static double entropy(const struct learner *l) {
  double sum = 0;
  size_t n = (size_t)l->actors->actor_count * l->actors->device_count;
  for (size_t i = 0; i < n; i++) sum -= exp((double)l->log_p[i]) * (double)l->log_p[i];
  return sum / l->actors->actor_count;
}

static void draw(struct learner *l, uint32_t sample) {
  uint32_t devices = l->actors->device_count;
  tfc_device_id *choice = l->choices + (size_t)sample * l->actors->actor_count;
  for (uint32_t a = 0; a < l->actors->actor_count; a++) {
    double u = tfc_random_unit(&l->random);
    uint32_t d = 0, last = 0;
    for (; d < devices; d++) {
      double p = exp((double)l->log_p[(size_t)a * devices + d]);
      if (p > 1e-20) last = d;
      if ((u -= p) < 0) break;
    }
    choice[a] = (tfc_device_id)(d < devices ? d : last);
  }
  tfc_actors_apply(l->actors, choice, &l->samples[sample]);
  if (l->problem->has_limits) (void)tfc_repair_fit(&l->repair, l->samples[sample].device);
}

// What does not fit, as a share of the smallest limit.
static double missing(const struct learner *l, const struct tfc_result *r) {
  uint64_t excess = 0, smallest = TFC_NO_LIMIT;
  for (uint32_t d = 0; d < l->problem->device_count; d++) {
    uint64_t limit = l->problem->limit[d];
    if (r->memory && r->memory[d] > limit) excess += r->memory[d] - limit;
    if (limit < smallest) smallest = limit;
  }
  return (double)(r->excess > excess ? r->excess : excess) / fmax(1, (double)smallest);
}

static double reward_of(struct learner *l, const struct tfc_result *r) {
  bool timed = r->value > 0 && r->value < TFC_TIME_MAX;
  double reward = timed ? -log((double)r->value) : l->worst;
  if (timed && l->reference.device && r->ratio > 0 && isfinite(r->ratio)) reward = -log(r->ratio) - l->reference_log;
  if (timed && (r->state == TFC_RESULT_OK || r->state == TFC_RESULT_CUT) && reward < l->worst) l->worst = reward;
  if (r->state == TFC_RESULT_NO_FIT) return fmin(reward, l->worst) - 0.5 - 2 * fmin(missing(l, r), 1);
  if (r->state == TFC_RESULT_ILLEGAL || r->state == TFC_RESULT_FAILED) return l->worst - 2;
  return reward;
}

static bool better(const struct learner *l, const struct tfc_result *r, uint64_t *out_excess) {
  if (r->state == TFC_RESULT_OK)
    *out_excess = 0;
  else if (r->state == TFC_RESULT_NO_FIT)
    *out_excess = r->excess;
  else
    return false;
  return *out_excess < l->best_excess || (*out_excess == l->best_excess && r->value < l->best_value);
}

// The best of a measured batch is what the next ones are measured beside.
static tfc_status choose_reference(struct learner *l, uint32_t count) {
  uint32_t best = count;
  for (uint32_t i = 0; i < count; i++)
    if (l->results[i].state == TFC_RESULT_OK && l->results[i].steps &&
        (best == count || l->results[i].value < l->results[best].value))
      best = i;
  if (best == count || l->reference.device) return NULL;
  TFC_RETURN_IF_ERROR(tfc_solution_init(&l->reference, l->problem));
  l->reference_log = log((double)l->results[best].value);
  return tfc_solution_copy(&l->reference, &l->samples[best], l->problem);
}

static tfc_status learn_batch(struct learner *l, struct tfc_evaluator *evaluator, uint32_t count, double progress,
                              struct tfc_solution *out) {
  uint32_t actors = l->actors->actor_count, devices = l->actors->device_count;
  TFC_RETURN_IF_ERROR(tfc_policy_evaluate(l->policy, l->log_p));
  for (uint32_t i = 0; i < count; i++) draw(l, i);
  struct tfc_rules rules = l->options->rules;
  if (l->reference.device) rules.reference = &l->reference;
  TFC_RETURN_IF_ERROR(tfc_evaluate(evaluator, l->samples, count, &rules, l->results));
  double mean = 0, square = 0, spread_of_policy = entropy(l);
  for (uint32_t i = 0; i < count; i++) {
    l->rewards[i] = reward_of(l, &l->results[i]);
    mean += l->rewards[i] / count;
    if (l->problem->has_limits && l->results[i].memory)
      tfc_repair_observe(&l->repair, l->samples[i].device, l->results[i].memory);
  }
  for (uint32_t i = 0; i < count; i++) square += (l->rewards[i] - mean) * (l->rewards[i] - mean) / count;
  double baseline = l->evaluated == 0 ? mean : 0.5 * (l->baseline + mean);
  l->spread = l->evaluated == 0 ? sqrt(square) : 0.7 * l->spread + 0.3 * sqrt(square);
  memset(l->weight, 0, (size_t)actors * devices * sizeof *l->weight);
  for (uint32_t i = 0; i < count; i++) {
    uint64_t excess = 0;
    if (better(l, &l->results[i], &excess)) {
      l->best_value = l->results[i].value, l->best_excess = excess;
      TFC_RETURN_IF_ERROR(tfc_solution_copy(out, &l->samples[i], l->problem));
    }
    if (l->options->watch)
      l->options->watch(l->options->user, &(struct tfc_sample){l->evaluated + i, &l->samples[i], &l->results[i],
                                                               l->rewards[i], baseline, spread_of_policy});
    double advantage = (l->rewards[i] - baseline) / (l->spread + 1e-6);
    advantage = fmax(-3, fmin(3, advantage));
    const tfc_device_id *choice = l->choices + (size_t)i * actors;
    for (uint32_t a = 0; a < actors; a++) l->weight[(size_t)a * devices + choice[a]] += (float)(advantage / count);
  }
  TFC_RETURN_IF_ERROR(choose_reference(l, count));
  l->baseline = baseline;
  l->evaluated += count;
  double bonus = l->options->entropy_bonus < 0 ? 0.1 : l->options->entropy_bonus;
  return tfc_policy_update(l->policy, l->weight, bonus * (1 - progress));
}

static tfc_status prepare(struct learner *l) {
  const struct tfc_reinforce_options *o = l->options;
  l->batch = o->batch ? o->batch : 4;
  TFC_RETURN_IF_ERROR(tfc_actors_create(l->problem, o->facts, o->max_actors ? o->max_actors : 20, &l->actors));
  struct tfc_policy_options policy = {.learning_rate = o->learning_rate > 0 ? o->learning_rate : 0.4,
                                      .seed = l->budget->seed};
  TFC_RETURN_IF_ERROR(tfc_policy_create(l->actors, &policy, &l->policy));
  if (l->problem->has_limits) TFC_RETURN_IF_ERROR(tfc_repair_init(&l->repair, l->problem, l->actors));
  tfc_random_init(&l->random, l->budget->seed ^ 0x7265696e666f7263u);
  size_t table = (size_t)l->actors->actor_count * l->actors->device_count;
  l->log_p = calloc(table, sizeof *l->log_p);
  l->weight = calloc(table, sizeof *l->weight);
  l->choices = calloc((size_t)l->batch * l->actors->actor_count, sizeof *l->choices);
  l->samples = calloc(l->batch, sizeof *l->samples);
  l->results = calloc(l->batch, sizeof *l->results);
  l->rewards = calloc(l->batch, sizeof *l->rewards);
  if (!l->log_p || !l->weight || !l->choices || !l->samples || !l->results || !l->rewards)
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < l->batch; i++) TFC_RETURN_IF_ERROR(tfc_solution_init(&l->samples[i], l->problem));
  l->best_value = TFC_TIME_MAX;
  l->worst = -log(fmax(1, (double)l->problem->total_fastest)); // one device after the other, until slower is seen
  l->best_excess = UINT64_MAX;
  return NULL;
}

static void cleanup(struct learner *l) {
  for (uint32_t i = 0; i < l->batch; i++) {
    if (l->samples) tfc_solution_deinit(&l->samples[i]);
    if (l->results) tfc_result_deinit(&l->results[i]);
  }
  free(l->log_p), free(l->weight), free(l->choices), free(l->samples), free(l->results), free(l->rewards);
  if (l->reference.device) tfc_solution_deinit(&l->reference);
  tfc_repair_deinit(&l->repair);
  tfc_policy_free(l->policy);
  tfc_actors_free(l->actors);
}

tfc_status tfc_reinforce(const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                         const struct tfc_budget *budget, const struct tfc_reinforce_options *options,
                         struct tfc_solution *out, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct learner l = {.problem = problem, .options = options, .budget = budget};
  TFC_TRY(s, prepare(&l));
  uint64_t limit = budget->evaluations ? budget->evaluations : 2000;
  while (l.evaluated < limit && !tfc_budget_over(budget)) {
    uint32_t count = limit - l.evaluated < l.batch ? (uint32_t)(limit - l.evaluated) : l.batch;
    TFC_TRY(s, learn_batch(&l, evaluator, count, (double)l.evaluated / (double)limit, out));
  }
  if (l.best_value == TFC_TIME_MAX)
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "rl: none of %llu samples could run", (unsigned long long)l.evaluated);
  *out_evaluations = l.evaluated;
out:
  cleanup(&l);
  return s;
}

static tfc_status propose(const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                          const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations) {
  struct tfc_reinforce_options options = {
      .rules = {.cutoff = TFC_TIME_MAX, .warmup = 1, .steps = 5, .stop_ratio = 0, .detail = problem->has_limits},
      .entropy_bonus = -1};
  return tfc_reinforce(problem, evaluator, budget, &options, out, out_evaluations);
}

const struct tfc_algo tfc_algo_rl = {
    .name = "rl",
    .help = "learned policy (graph network, REINFORCE): learns from what is measured, not from the model",
    .paper = "Williams 1992, section 4; Mirhoseini et al. 2017, section 3.1",
    .needs = TFC_NEEDS_EVALUATOR | TFC_NEEDS_BUDGET,
    .propose = propose,
};
