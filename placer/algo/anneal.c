// Plain simulated annealing from a random start, in one run: the rival that learned policies have to beat.
#include "placer/search/local.h"

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_random random;
  struct tfc_score score;
  struct tfc_budget own = *budget;
  struct tfc_anneal_options options = {.hot = 0.05, .cold = 0.0002, .orders = p->objective == TFC_OBJECTIVE_STEP};
  tfc_random_init(&random, budget->seed);
  if (!own.evaluations && own.deadline <= 0) own.evaluations = 100000;
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  tfc_local_any(p, &random, out->device);
  TFC_TRY(s, tfc_local_anneal(p, &own, &options, out, &score, out_evaluations));
  TFC_TRY(s, tfc_local_settle(p, sim, out, &score, out_evaluations));
out:
  tfc_simulator_free(sim);
  return s;
}

const struct tfc_algo tfc_algo_anneal = {
    .name = "anneal",
    .help = "simulated annealing on device and order: slow and steady, good with many evaluations",
    .paper = "Kirkpatrick, Gelatt, Vecchi 1983, Optimization by Simulated Annealing",
    .needs = TFC_NEEDS_BUDGET,
    .propose = propose,
};
