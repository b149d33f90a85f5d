// Puts everything on one device, as far as that is allowed: a unit that cannot run there goes to the next device that
// can run it. The answer is the fastest such placement that fits into memory.
#include "placer/search/local.h"

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_solution trial = {0};
  struct tfc_score best = TFC_SCORE_NONE, score;
  struct tfc_random random;
  bool any = false;
  tfc_random_init(&random, budget->seed);
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  TFC_TRY(s, tfc_solution_init(&trial, p));
  for (uint32_t home = 0; home < p->device_count; home++) {
    if (p->twin[home] != home) continue; // an interchangeable device was tried already
    if (any && budget->evaluations && *out_evaluations >= budget->evaluations) break;
    bool whole = true;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      uint32_t d = home;
      while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count, whole = false;
      trial.device[u] = (tfc_device_id)d;
    }
    if (!whole) tfc_local_repair(p, &random, trial.device, NULL);
    struct tfc_verdict v = {0};
    tfc_simulate(sim, trial.device, NULL, TFC_TIME_MAX, &v);
    ++*out_evaluations;
    score = tfc_score_of(&v);
    if (any && !tfc_score_better(score, best)) continue;
    best = score, any = true;
    TFC_TRY(s, tfc_solution_copy(out, &trial, p));
  }
out:
  tfc_simulator_free(sim);
  tfc_solution_deinit(&trial);
  return s;
}

const struct tfc_algo tfc_algo_single = {
    .name = "single",
    .help = "the best single device: what every other placement has to beat",
    .paper = "-",
    .propose = propose,
};
