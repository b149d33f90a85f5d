// HEFT: takes operations in descending order of upward rank and puts each on the device where it ends first, into a gap
// if it fits. A unit goes where its first operation goes; memory and links limit the choice.
#include <stdlib.h>

#include "placer/algo/lister.h"

struct ranked {
  double rank;
  uint32_t position, node;
};
static int compare_ranked(const void *a, const void *b) {
  const struct ranked *x = a, *y = b;
  if (x->rank != y->rank) return x->rank > y->rank ? -1 : 1;
  return (x->position > y->position) - (x->position < y->position);
}

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  tfc_status s = NULL;
  struct tfc_lister l = {0};
  double *rank = calloc(p->node_count, sizeof *rank);
  struct ranked *order = malloc(sizeof *order * ((size_t)p->node_count + 1));
  if (!rank || !order) TFC_TRY(s, tfc_status_no_memory("HEFT"));
  TFC_TRY(s, tfc_lister_init(&l, p, true));
  tfc_lister_upward(p, rank);
  for (uint32_t i = 0; i < p->node_count; i++) {
    uint32_t n = p->graph->topological[i];
    order[i] = (struct ranked){rank[n], i, n};
  }
  qsort(order, p->node_count, sizeof *order, compare_ranked);
  for (uint32_t i = 0; i < p->node_count; i++) {
    const uint32_t n = order[i].node;
    uint32_t best = TFC_NONE;
    int64_t soonest = TFC_TIME_MAX;
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (!tfc_lister_can(&l, n, d)) continue;
      int64_t end = tfc_lister_start(&l, n, d) + tfc_problem_time(p, n, d);
      if (end < soonest) soonest = end, best = d;
    }
    if (best == TFC_NONE) best = tfc_lister_last_resort(&l, n);
    if (!tfc_lister_put(&l, n, best)) TFC_TRY(s, tfc_status_no_memory("HEFT"));
    if (i % 256 == 0 && tfc_budget_over(budget)) TFC_FAIL(s, TFC_DEADLINE_EXCEEDED, "no time left for HEFT");
  }
  TFC_TRY(s, tfc_lister_finish(&l, budget, out, out_evaluations));
out:
  free(rank), free(order);
  if (l.problem) tfc_lister_deinit(&l);
  return s;
}

const struct tfc_algo tfc_algo_heft = {
    .name = "heft",
    .help = "list scheduling by upward rank: quick and good where operations are long and links are fast",
    .paper = "Topcuoglu, Hariri, Wu 2002, Performance-Effective and Low-Complexity Task Scheduling, section 4.1",
    .propose = propose,
};
