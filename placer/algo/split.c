// Contiguous split: cuts the units in topological order into as many runs as there are devices, so that all devices
// take the same time for their runs. It tries a depth-first and a breadth-first order, and keeps the better result.
#include "placer/algo/split.h"

#include <stdlib.h>

#include "placer/algo/order.h"

// Gives each device consecutive units of the order up to `target` ps; the last device gets the rest.
static void fill(const struct tfc_problem *p, const uint32_t *order, double target, tfc_device_id *device) {
  uint32_t at = 0;
  double load = 0;
  uint64_t memory = 0;
  for (uint32_t i = 0; i < p->unit_count; i++) {
    uint32_t u = order[i], d = at;
    if (!tfc_problem_allows(p, u, d)) {
      while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count;
      device[u] = (tfc_device_id)d;
      continue;
    }
    double time = (double)tfc_problem_unit_time(p, u, d);
    if (at + 1 < p->device_count && (load + time / 2 > target || memory + p->unit_memory[u] > p->limit[at])) {
      at++, load = 0, memory = 0, d = at;
      while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count;
      time = (double)tfc_problem_unit_time(p, u, d);
    }
    load += time, memory += p->unit_memory[u];
    device[u] = (tfc_device_id)d;
  }
}

void tfc_split_order(const struct tfc_problem *p, struct tfc_random *random, const uint32_t *order,
                     tfc_device_id *device) {
  // Bisection: finds the smallest target at which the last device does not get more than the others.
  double low = 0, high = (double)p->total_fastest * 1.01 + 1;
  for (int k = 0; k < 10; k++) {
    double target = (low + high) / 2, last = 0;
    fill(p, order, target, device);
    for (uint32_t u = 0; u < p->unit_count; u++)
      if (device[u] == p->device_count - 1) last += (double)tfc_problem_unit_time(p, u, device[u]);
    if (last > target)
      low = target;
    else
      high = target;
  }
  fill(p, order, high, device);
  if (p->has_missing_links || p->has_limits) tfc_local_repair(p, random, device, NULL);
}

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_solution trial = {0};
  struct tfc_score best = TFC_SCORE_NONE;
  struct tfc_random random;
  bool any = false;
  uint32_t *order = malloc(sizeof *order * ((size_t)p->unit_count + 1));
  tfc_random_init(&random, budget->seed);
  if (!order) TFC_TRY(s, tfc_status_no_memory("a split"));
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  TFC_TRY(s, tfc_solution_init(&trial, p));
  for (int depth_first = 1; depth_first >= 0; depth_first--) {
    TFC_TRY(s, tfc_order_units(p, depth_first, order));
    tfc_split_order(p, &random, order, trial.device);
    struct tfc_verdict v = {0};
    tfc_simulate(sim, trial.device, NULL, TFC_TIME_MAX, &v);
    ++*out_evaluations;
    if (any && !tfc_score_better(tfc_score_of(&v), best)) continue;
    any = true, best = tfc_score_of(&v);
    TFC_TRY(s, tfc_solution_copy(out, &trial, p));
    if (budget->evaluations && *out_evaluations >= budget->evaluations) break;
  }
out:
  free(order);
  tfc_simulator_free(sim);
  tfc_solution_deinit(&trial);
  return s;
}

const struct tfc_algo tfc_algo_split = {
    .name = "split",
    .help = "runs of the topological order, equal work each: good for chains of layers, few transfers",
    .paper = "Huang et al. 2019, GPipe, section 2 (equal contiguous cells)",
    .propose = propose,
};
