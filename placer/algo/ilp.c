// The integer program (placer/exact/ilp.h): on the units themselves if there are few, otherwise on clusters of them.
#include "placer/exact/ilp.h"

#include <stdlib.h>

#include "placer/search/local.h"

extern const struct tfc_algo tfc_algo_single;

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_ilp_answer answer;
  struct tfc_random random;
  struct tfc_score score, single_score = TFC_SCORE_NONE;
  uint64_t used = 0;
  struct tfc_solution single = {0};
  uint32_t *cluster = malloc(sizeof *cluster * ((size_t)p->unit_count + 1)), count = p->unit_count;
  tfc_random_init(&random, budget->seed);
  if (!cluster) return tfc_status_no_memory("an integer program");
  if (p->device_count > 16) TFC_FAIL(s, TFC_FAILED_PRECONDITION, "more than 16 devices are too many for the program");
  if (p->node_count > 20000)
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "more than 20,000 nodes are too many for the program");
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  for (uint32_t u = 0; u < p->unit_count; u++) cluster[u] = u;
  if (count > TFC_ILP_UNITS) count = tfc_local_coarsen(p, &random, NULL, 40, cluster);
  if (!count || count > 200) TFC_FAIL(s, TFC_FAILED_PRECONDITION, "%u clusters are too many for the program", count);
  double seconds = 30;
  if (budget->deadline > 0) seconds = budget->deadline - tfc_now_s();
  if (seconds < 0.05) seconds = 0.05;
  // The program must find a better placement than the best single device. Both need evaluations for their orders.
  struct tfc_budget first = *budget;
  if (budget->evaluations) first.evaluations = tfc_budget_left(budget, 2 * TFC_SETTLE_MOST);
  TFC_TRY(s, tfc_solution_init(&single, p));
  if (first.evaluations || !budget->evaluations) {
    TFC_TRY(s, tfc_algo_single.propose(p, evaluator, &first, &single, &used));
    TFC_TRY(s, tfc_local_settle(p, sim, &single, &single_score, &used));
  }
  const bool fits = single_score.value != TFC_TIME_MAX && !single_score.excess;
  // Without a time limit, the number of nodes of the search tree is limited.
  const bool timed = budget->deadline > 0;
  const struct tfc_program_limits limits = {
      .seconds = timed ? seconds : 0, .nodes = timed ? 0 : 200, .cancel = budget->cancel};
  TFC_TRY(s, tfc_ilp_solve(p, cluster, count, &limits, fits ? single.device : NULL, out->device, &answer));
  if (answer.gave_up && !tfc_budget_over(budget))
    TFC_FAIL(s, TFC_FAILED_PRECONDITION,
             "CBC gave up on the integer program: times, bytes and bandwidths that differ by many powers of ten are "
             "beyond its arithmetic (choose another algorithm)");
  if (answer.infeasible)
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "the integer program has no solution: memory or links do not allow one");
  if (!answer.found) TFC_FAIL(s, TFC_DEADLINE_EXCEEDED, "the integer program found no placement in time");
  if (p->has_missing_links || p->has_limits) tfc_local_repair(p, &random, out->device, NULL);
  TFC_TRY(s, tfc_local_settle_within(p, sim, tfc_budget_left(budget, used), out, &score, &used));
  if (tfc_score_better(single_score, score)) TFC_TRY(s, tfc_solution_copy(out, &single, p));
out:
  *out_evaluations += used;
  free(cluster);
  tfc_solution_deinit(&single);
  tfc_simulator_free(sim);
  return s;
}

const struct tfc_algo tfc_algo_ilp = {
    .name = "ilp",
    .help = "integer program by CBC: exact for throughput on up to 64 groups (memory as `memory`, not `live`), coarse "
            "above and for the step",
    .paper = "Tarnawski et al. 2020, Efficient Algorithms for Device Placement of DNN Graph Operators, section 5.2",
    .needs = TFC_NEEDS_SMALL,
    .propose = propose,
};
