// Large-neighbourhood search from the best quick heuristic: frees the units of a neighbourhood, puts them back one by
// one, each on the device that makes the complete placement best, and keeps the result unless it is worse. See
// placer/search/lns.c.
#include "placer/search/lns.h"
#include "placer/search/local.h"

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_solution trial = {0};
  struct tfc_score best = TFC_SCORE_NONE, score;
  struct tfc_budget own = *budget;
  struct tfc_random random;
  extern const struct tfc_algo tfc_algo_heft, tfc_algo_split, tfc_algo_single, tfc_algo_etf;
  const struct tfc_algo *const starts[] = {&tfc_algo_single, &tfc_algo_split, &tfc_algo_etf, &tfc_algo_heft};
  uint64_t spent = 0;
  if (!own.evaluations && own.deadline <= 0) own.evaluations = 20000;
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
    struct tfc_budget part = own;
    const uint64_t left = tfc_budget_left(&own, spent);
    uint64_t used = 0;
    if (left <= TFC_SETTLE_MOST) break;
    if (own.evaluations) part.evaluations = left - TFC_SETTLE_MOST;
    TFC_TRY(s, tfc_solution_init(&trial, p));
    s = starts[i]->propose(p, evaluator, &part, &trial, &used);
    spent += used;
    if (s && i) { // the first heuristic always works, so its failure is an error
      tfc_status_free(s);
      s = NULL;
      tfc_solution_deinit(&trial);
      continue;
    }
    if (s) goto out;
    TFC_TRY(s, tfc_local_settle(p, sim, &trial, &score, &spent));
    if (i == 0 || tfc_score_better(score, best)) {
      best = score;
      TFC_TRY(s, tfc_solution_copy(out, &trial, p));
    }
    tfc_solution_deinit(&trial);
  }
  if (!spent) { // the budget is too small for any heuristic
    tfc_random_init(&random, budget->seed);
    tfc_local_any(p, &random, out->device);
    TFC_TRY(s, tfc_local_settle_within(p, sim, own.evaluations, out, &best, &spent));
  }
  const uint64_t left = tfc_budget_left(&own, spent);
  if (own.evaluations) own.evaluations = left;
  if (left) TFC_TRY(s, tfc_local_lns(p, &own, out, &best, &spent));
out:
  *out_evaluations += spent;
  tfc_solution_deinit(&trial);
  tfc_simulator_free(sim);
  return s;
}

const struct tfc_algo tfc_algo_lns = {
    .name = "lns",
    .help = "large-neighbourhood search: repairs good placements, strong for the step objective",
    .paper = "Shaw 1998, Using Constraint Programming and Local Search Methods to Solve Vehicle Routing Problems",
    .needs = TFC_NEEDS_BUDGET,
    .propose = propose,
};
