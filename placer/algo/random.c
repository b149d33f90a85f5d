// Uniformly random placements; units are moved if memory limits or missing links require it. The answer is the best of
// as many as the budget allows (about 1,000 if it sets no limit). A learned policy must at least be better than random
// search.
#include "placer/search/local.h"

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_solution trial = {0};
  struct tfc_score best = TFC_SCORE_NONE;
  struct tfc_random random;
  struct tfc_meter meter;
  tfc_random_init(&random, budget->seed);
  tfc_meter_init(&meter, budget);
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  TFC_TRY(s, tfc_solution_init(&trial, p));
  bool more = true;
  for (uint32_t i = 0; more; i++) {
    for (uint32_t u = 0; u < p->unit_count; u++) {
      uint32_t d = (uint32_t)tfc_random_below(&random, p->device_count);
      while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count;
      trial.device[u] = (tfc_device_id)d;
    }
    if (p->has_missing_links || p->has_limits) tfc_local_repair(p, &random, trial.device, NULL);
    struct tfc_verdict v = {0};
    int64_t cutoff = best.excess || best.value == TFC_TIME_MAX ? TFC_TIME_MAX : best.value;
    tfc_simulate(sim, trial.device, NULL, cutoff, &v);
    if (i == 0 || (!v.cut && tfc_score_better(tfc_score_of(&v), best))) {
      best = tfc_score_of(&v);
      tfc_budget_found(budget, best);
      TFC_TRY(s, tfc_solution_copy(out, &trial, p));
    }
    more = tfc_meter_spend(&meter, 7);
    if (!budget->evaluations && budget->deadline <= 0 && i >= 1000) more = false;
  }
  *out_evaluations += meter.used;
out:
  tfc_simulator_free(sim);
  tfc_solution_deinit(&trial);
  return s;
}

const struct tfc_algo tfc_algo_random = {
    .name = "random",
    .help = "best of many random placements: the rival that every search must beat at equal evaluations",
    .paper = "Mirhoseini et al. 2017, Device Placement Optimization with Reinforcement Learning, section 4",
    .needs = TFC_NEEDS_BUDGET,
    .propose = propose,
};
