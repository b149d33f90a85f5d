// Dynamic level scheduling: schedules next the pair of a ready operation and a device with the highest dynamic level.
// That level is the operation's remaining path without transfers, minus its earliest start on the device, plus the time
// by which the device is faster than the mean of the devices.
#include <stdlib.h>

#include "placer/algo/lister.h"

#define WINDOW 64 // if more operations are ready, only so many with the longest remaining paths are considered

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  tfc_status s = NULL;
  struct tfc_lister l = {0};
  const struct tfc_cost_graph *g = p->graph;
  double *level = calloc(p->node_count, sizeof *level), *mean = calloc(p->node_count, sizeof *mean);
  uint32_t *ready = malloc(sizeof *ready * ((size_t)p->node_count + 1)), count = 0, seen = 0;
  if (!level || !mean || !ready) TFC_TRY(s, tfc_status_no_memory("dynamic levels"));
  TFC_TRY(s, tfc_lister_init(&l, p, false));
  for (size_t i = p->node_count; i-- > 0;) {
    const uint32_t n = g->topological[i];
    double longest = 0;
    for (uint32_t c = g->first_consumer[g->first_tensor[n]]; c < g->first_consumer[g->first_tensor[n + 1]]; c++)
      if (level[g->consumer[c]] > longest) longest = level[g->consumer[c]];
    mean[n] = tfc_lister_mean_time(p, n);
    level[n] = mean[n] + longest;
  }
  for (uint32_t done = 0; done < p->node_count; done++) {
    for (; seen < l.ready_count; seen++) { // by rising level
      const uint32_t n = l.ready[seen];
      uint32_t i = count++;
      for (; i && level[ready[i - 1]] > level[n]; i--) ready[i] = ready[i - 1];
      ready[i] = n;
    }
    uint32_t best = TFC_NONE, where = TFC_NONE;
    double highest = 0;
    for (uint32_t k = count; k-- > (count > WINDOW ? count - WINDOW : 0);)
      for (uint32_t d = 0; d < p->device_count; d++) {
        const uint32_t n = ready[k];
        if (!tfc_lister_can(&l, n, d)) continue;
        const double dynamic =
            level[n] - (double)tfc_lister_start(&l, n, d) + mean[n] - (double)tfc_problem_time(p, n, d);
        if (best == TFC_NONE || dynamic > highest) highest = dynamic, best = k, where = d;
      }
    if (best == TFC_NONE) best = count - 1, where = tfc_lister_last_resort(&l, ready[best]);
    const uint32_t n = ready[best];
    for (count--; best < count; best++) ready[best] = ready[best + 1];
    if (!tfc_lister_put(&l, n, where)) TFC_TRY(s, tfc_status_no_memory("dynamic levels"));
    if (done % 256 == 0 && tfc_budget_over(budget))
      TFC_FAIL(s, TFC_DEADLINE_EXCEEDED, "no time left for dynamic levels");
  }
  TFC_TRY(s, tfc_lister_finish(&l, budget, out, out_evaluations));
out:
  free(level), free(mean), free(ready);
  if (l.problem) tfc_lister_deinit(&l);
  return s;
}

const struct tfc_algo tfc_algo_dls = {
    .name = "dls",
    .help = "list scheduling by remaining path and start together: good where wide layers meet large transfers",
    .paper = "Sih and Lee 1993, A Compile-Time Scheduling Heuristic for Interconnection-Constrained Heterogeneous "
             "Processor Architectures, section III",
    .propose = propose,
};
