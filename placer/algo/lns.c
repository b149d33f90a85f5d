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
  extern const struct tfc_algo tfc_algo_heft, tfc_algo_split, tfc_algo_single, tfc_algo_etf;
  const struct tfc_algo *const starts[] = {&tfc_algo_single, &tfc_algo_split, &tfc_algo_etf, &tfc_algo_heft};
  if (!own.evaluations && own.deadline <= 0) own.evaluations = 20000;
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
    TFC_TRY(s, tfc_solution_init(&trial, p));
    s = starts[i]->propose(p, evaluator, budget, &trial, out_evaluations);
    if (s && i) { // the first heuristic always works, so its failure is an error
      tfc_status_free(s);
      s = NULL;
      tfc_solution_deinit(&trial);
      continue;
    }
    if (s) goto out;
    TFC_TRY(s, tfc_local_settle(p, sim, &trial, &score, out_evaluations));
    if (i == 0 || tfc_score_better(score, best)) {
      best = score;
      TFC_TRY(s, tfc_solution_copy(out, &trial, p));
    }
    tfc_solution_deinit(&trial);
  }
  if (own.evaluations) own.evaluations = own.evaluations > *out_evaluations ? own.evaluations - *out_evaluations : 1;
  TFC_TRY(s, tfc_local_lns(p, &own, out, &best, out_evaluations));
out:
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
