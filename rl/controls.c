// Controls that have the policy's actions (a device for each unit in turn) but learn nothing: random choices, and
// simulated annealing on the choices. They show how good these actions are by themselves.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/simulate/delta.h"
#include "rl/rl.h"

enum { MOST = 2000 };

static tfc_status roll_any(const struct tfc_problem *p, struct tfc_random *random, struct tfc_scene **scene,
                           struct tfc_rollout **rollout, tfc_device_id *device) {
  const struct tfc_rollout_options o = {.random = random};
  if (!*scene) TFC_RETURN_IF_ERROR(tfc_scene_create(p, scene));
  if (!*rollout) TFC_RETURN_IF_ERROR(tfc_rollout_create(*scene, rollout));
  tfc_rollout_run(*rollout, NULL, &o, device);
  return NULL;
}

static struct tfc_budget limited(const struct tfc_budget *budget) {
  struct tfc_budget own = *budget;
  if (!own.evaluations && own.deadline <= 0) own.evaluations = MOST;
  return own;
}

static tfc_status propose_random(const struct tfc_problem *p, struct tfc_evaluator *evaluator,
                                 const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  tfc_status s = NULL;
  struct tfc_scene *scene = NULL;
  struct tfc_rollout *rollout = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_solution trial = {0};
  struct tfc_score best = TFC_SCORE_NONE;
  struct tfc_random random;
  struct tfc_meter meter;
  const struct tfc_budget own = limited(budget);
  tfc_random_init(&random, budget->seed);
  tfc_meter_init(&meter, &own);
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  TFC_TRY(s, tfc_solution_init(&trial, p));
  for (bool first = true, more = true; more; first = false) {
    struct tfc_verdict v = {0};
    TFC_TRY(s, roll_any(p, &random, &scene, &rollout, trial.device));
    tfc_simulate(sim, trial.device, NULL, TFC_TIME_MAX, &v);
    if (first || tfc_score_better(tfc_score_of(&v), best)) {
      best = tfc_score_of(&v);
      tfc_budget_found(budget, best);
      TFC_TRY(s, tfc_solution_copy(out, &trial, p));
    }
    more = tfc_meter_spend(&meter, 7);
  }
  *out_evaluations += meter.used;
out:
  tfc_simulator_free(sim);
  tfc_rollout_free(rollout);
  tfc_scene_free(scene);
  tfc_solution_deinit(&trial);
  return s;
}

// Simulated annealing in which each move changes one choice. The temperature falls from a twentieth of the value to a
// five-thousandth of it.
static tfc_status anneal(const struct tfc_problem *p, struct tfc_random *random, const struct tfc_budget *budget,
                         struct tfc_solution *out, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct tfc_delta *delta = NULL;
  struct tfc_verdict v = {0};
  struct tfc_meter meter;
  tfc_meter_init(&meter, budget);
  TFC_TRY(s, tfc_delta_create(p, &delta));
  tfc_delta_reset(delta, out->device, NULL, &v);
  struct tfc_score now = tfc_score_of(&v), best = now;
  while (p->unit_count && tfc_meter_spend(&meter, 15)) {
    const uint32_t u = (uint32_t)tfc_random_below(random, p->unit_count);
    const struct tfc_move move = {u, (tfc_device_id)tfc_random_below(random, p->device_count)};
    if (move.device == tfc_delta_device(delta)[u] || !tfc_problem_allows(p, u, move.device)) continue;
    const double heat = 0.05 * pow(0.0002 / 0.05, tfc_meter_share(&meter));
    const double slack = -log(tfc_random_unit(random) + 1e-300) * heat;
    tfc_delta_try(delta, &move, 1, NULL, 0, TFC_TIME_MAX, &v);
    const struct tfc_score then = tfc_score_of(&v);
    if (then.value == TFC_TIME_MAX) continue;
    const bool warm = then.excess == now.excess && (double)then.value <= (double)now.value * (1 + slack);
    if (!warm && !tfc_score_better(then, now)) continue;
    tfc_delta_commit(delta);
    now = then;
    if (!tfc_score_better(now, best)) continue;
    best = now;
    tfc_budget_found(budget, best);
    memcpy(out->device, tfc_delta_device(delta), sizeof *out->device * p->unit_count);
  }
  *out_evaluations += meter.used;
out:
  tfc_delta_free(delta);
  return s;
}

static tfc_status propose_anneal(const struct tfc_problem *p, struct tfc_evaluator *evaluator,
                                 const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  tfc_status s = NULL;
  struct tfc_scene *scene = NULL;
  struct tfc_rollout *rollout = NULL;
  struct tfc_random random;
  const struct tfc_budget own = limited(budget);
  tfc_random_init(&random, budget->seed);
  TFC_TRY(s, roll_any(p, &random, &scene, &rollout, out->device));
  TFC_TRY(s, anneal(p, &random, &own, out, out_evaluations));
out:
  tfc_rollout_free(rollout);
  tfc_scene_free(scene);
  return s;
}

const struct tfc_algo tfc_algo_policy_random = {
    .name = "policy-random",
    .help = "control: the policy's choices by chance, the best of many",
    .paper = "as rl",
    .needs = TFC_NEEDS_BUDGET,
    .propose = propose_random,
};
const struct tfc_algo tfc_algo_policy_anneal = {
    .name = "policy-anneal",
    .help = "control: simulated annealing on the policy's choices, from choices by chance",
    .paper = "Kirkpatrick, Gelatt, Vecchi 1983, Optimization by Simulated Annealing",
    .needs = TFC_NEEDS_BUDGET,
    .propose = propose_anneal,
};
