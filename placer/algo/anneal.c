// Simulated annealing, tuned as the literature recommends. Learned policies are compared with it. It starts from the
// best of the quick heuristics. The first temperature fits the problem: it is chosen so that the median of sampled
// changes for the worse is accepted with probability INITIAL_CHANCE (Johnson et al. 1989, section 3.2, sample in the
// same way). The temperature falls geometrically (Kirkpatrick et al. 1983) until hardly any such change is accepted.
// There are ROUNDS rounds; each starts from the best placement so far, at a lower temperature than the round before.
// Moves: one unit, a unit with its neighbours, an exchange of two units (placer/search/anneal.c). Every simulation
// counts as an evaluation, also those of heuristics and of sampled changes; so does a move that is dropped without a
// simulation because a unit may not run on that device or nothing would change.
#include <math.h>
#include <stdlib.h>

#include "placer/search/anneal.h"
#include "placer/search/local.h"

enum { ROUNDS = 6 };
#define INITIAL_CHANCE 0.01
#define COLDEST 0.01 // last temperature of a round, as a fraction of the first
#define REHEAT 0.5   // first temperature of a round, as a fraction of the previous round's

extern const struct tfc_algo tfc_algo_single, tfc_algo_split, tfc_algo_pack, tfc_algo_metis, tfc_algo_scotch,
    tfc_algo_topo, tfc_algo_etf, tfc_algo_heft;
static const struct tfc_algo *const starts[] = {&tfc_algo_single, &tfc_algo_split, &tfc_algo_pack, &tfc_algo_metis,
                                                &tfc_algo_scotch, &tfc_algo_topo,  &tfc_algo_etf,  &tfc_algo_heft};

// Returns a budget with `share` of the evaluations and of the time that are left.
static struct tfc_budget part_of(const struct tfc_budget *budget, uint64_t used, double share) {
  struct tfc_budget part = *budget;
  if (budget->evaluations) {
    double left = budget->evaluations > used ? (double)(budget->evaluations - used) : 1;
    part.evaluations = (uint64_t)fmax(1, left * share);
  }
  if (budget->deadline > 0) {
    double now = tfc_now_s();
    part.deadline = now + fmax(0, budget->deadline - now) * share;
  }
  return part;
}

static bool is_spent(const struct tfc_budget *budget, uint64_t used) {
  return tfc_budget_over(budget) || (budget->evaluations && used >= budget->evaluations);
}

// Starts from the best of the quick heuristics, or from any placement if none of them finds a legal one.
static tfc_status begin(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                        struct tfc_random *random, struct tfc_simulator *sim, struct tfc_solution *out,
                        struct tfc_score *score, uint64_t *used) {
  tfc_status s = NULL;
  struct tfc_solution trial = {0};
  *score = TFC_SCORE_NONE;
  for (size_t i = 0; i < sizeof starts / sizeof *starts && !is_spent(budget, *used); i++) {
    struct tfc_score found;
    const uint64_t left = tfc_budget_left(budget, *used), most = left - TFC_SETTLE_MOST;
    if (left <= TFC_SETTLE_MOST) break;
    struct tfc_budget part = part_of(budget, *used, i == 0 ? 1 : 0.1); // `single` tries every device once
    if (part.evaluations > most) part.evaluations = most;
    uint64_t own = 0;
    TFC_TRY(s, tfc_solution_init(&trial, p));
    s = starts[i]->propose(p, evaluator, &part, &trial, &own);
    *used += own;
    if (!s) TFC_TRY(s, tfc_local_settle(p, sim, &trial, &found, used));
    if (!s && tfc_score_better(found, *score)) {
      *score = found;
      tfc_budget_found(budget, found);
      TFC_TRY(s, tfc_solution_copy(out, &trial, p));
    }
    tfc_status_free(s); // the heuristic is not for this problem
    s = NULL;
    tfc_solution_deinit(&trial);
  }
  if (score->value == TFC_TIME_MAX) {
    tfc_local_any(p, random, out->device);
    TFC_TRY(s, tfc_local_settle_within(p, sim, tfc_budget_left(budget, *used), out, score, used));
  }
out:
  tfc_solution_deinit(&trial);
  return s;
}

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_random random;
  struct tfc_score score;
  struct tfc_budget own = *budget;
  double hot = -0.01 / log(INITIAL_CHANCE); // for a norm of the loads, which a move of one unit changes only a little
  uint64_t used = 0;
  tfc_random_init(&random, budget->seed);
  if (!own.evaluations && own.deadline <= 0) own.evaluations = 100000;
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  TFC_TRY(s, begin(p, evaluator, &own, &random, sim, out, &score, &used));
  if (p->objective == TFC_OBJECTIVE_STEP && score.value != TFC_TIME_MAX)
    TFC_TRY(s, tfc_local_temperature(p, &own, out, INITIAL_CHANCE, &random, &hot, &used));
  for (int round = 0; round < ROUNDS && !is_spent(&own, used); round++, hot *= REHEAT) {
    struct tfc_budget part = part_of(&own, used, 1.0 / (ROUNDS - round));
    part.seed = budget->seed + (uint64_t)round;
    struct tfc_anneal_options options = {
        .hot = hot, .cold = hot * COLDEST, .orders = p->objective == TFC_OBJECTIVE_STEP};
    TFC_TRY(s, tfc_local_anneal(p, &part, &options, out, &score, &used));
  }
out:
  *out_evaluations += used;
  tfc_simulator_free(sim);
  return s;
}

const struct tfc_algo tfc_algo_anneal = {
    .name = "anneal",
    .help = "simulated annealing on device and order from the best heuristic: steady, good with many evaluations",
    .paper = "Kirkpatrick, Gelatt, Vecchi 1983, Optimization by Simulated Annealing; Johnson et al. 1989, section 3",
    .needs = TFC_NEEDS_BUDGET,
    .propose = propose,
};
