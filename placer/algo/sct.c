// m-SCT: small communication times. A linear program gives every operation at most one favourite child, which should
// follow it on the same device (its variable x is near 0: no transfer). Then earliest task first (etf.c) places the
// operations, and prefers to keep favourites with their parents.
#include <math.h>
#include <stdlib.h>

#include "placer/algo/etf.h"
#include "placer/algo/lister.h"
#include "placer/exact/solver.h"

#define LARGEST 2000 // number of nodes; in larger graphs the favourite is the child with the longest remaining path

// Fills favourite[node]: the parent that has the node as its favourite child, by remaining paths.
static void by_path(const struct tfc_problem *p, uint32_t *favourite) {
  const struct tfc_cost_graph *g = p->graph;
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint32_t best = TFC_NONE;
    for (uint32_t c = g->first_consumer[g->first_tensor[n]]; c < g->first_consumer[g->first_tensor[n + 1]]; c++)
      if (best == TFC_NONE || p->remaining[g->consumer[c]] > p->remaining[best]) best = g->consumer[c];
    if (best != TFC_NONE && favourite[best] == TFC_NONE) favourite[best] = n;
  }
}

static tfc_status by_program(const struct tfc_problem *p, const struct tfc_budget *budget, uint32_t *favourite) {
  const struct tfc_cost_graph *g = p->graph;
  tfc_status s = NULL;
  struct tfc_program lp = {0};
  struct tfc_program_answer answer = {0};
  struct tfc_program_limits limits = {0};
  int *start = malloc(sizeof *start * ((size_t)p->node_count + 1));
  int *edge = malloc(sizeof *edge * ((size_t)g->consumer_count + 1));
  uint32_t *owner = malloc(sizeof *owner * ((size_t)g->consumer_count + 1));
  if (!start || !edge || !owner) TFC_TRY(s, tfc_status_no_memory("m-SCT"));
  const double scale = 1000.0 / ((double)p->total_fastest + 1);
  const int span = tfc_program_variable(&lp, 1, 0, INFINITY, false);
  for (uint32_t n = 0; n < p->node_count; n++) start[n] = tfc_program_variable(&lp, 0, 0, INFINITY, false);
  for (uint32_t c = 0; c < g->consumer_count; c++) edge[c] = tfc_program_variable(&lp, 0, 0, 1, false);
  for (uint32_t n = 0; n < p->node_count; n++) {
    const double time = tfc_lister_mean_time(p, n) * scale;
    tfc_program_row(&lp, time, INFINITY); // the operation ends within the span
    tfc_program_term(&lp, span, 1), tfc_program_term(&lp, start[n], -1);
    const uint32_t first = g->first_consumer[g->first_tensor[n]], last = g->first_consumer[g->first_tensor[n + 1]];
    for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++) {
      const double wire = tfc_lister_mean_wire(p, t) * scale;
      for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
        owner[c] = n;
        // a consumer starts after the operation has ended, and after the transfer if x is 1
        tfc_program_row(&lp, time, INFINITY);
        tfc_program_term(&lp, start[g->consumer[c]], 1), tfc_program_term(&lp, start[n], -1);
        tfc_program_term(&lp, edge[c], -wire);
      }
    }
    if (last - first > 1) { // at most one favourite child
      tfc_program_row(&lp, (double)(last - first) - 1, INFINITY);
      for (uint32_t c = first; c < last; c++) tfc_program_term(&lp, edge[c], 1);
    }
  }
  for (uint32_t n = 0; n < p->node_count; n++) { // and every node is the favourite of at most one parent
    if (g->first_input[n + 1] - g->first_input[n] < 2) continue;
    tfc_program_row(&lp, (double)(g->first_input[n + 1] - g->first_input[n]) - 1, INFINITY);
    for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++)
      for (uint32_t c = g->first_consumer[g->input[i]]; c < g->first_consumer[g->input[i] + 1]; c++)
        if (g->consumer[c] == n) tfc_program_term(&lp, edge[c], 1);
  }
  if (budget->deadline > 0) limits.seconds = fmax(0.05, fmin(20, (budget->deadline - tfc_now_s()) / 2));
  limits.cancel = budget->cancel;
  TFC_TRY(s, tfc_program_solve(&lp, &limits, &answer));
  if (answer.gave_up) { // the solver crashed, so the rule for larger graphs is used
    by_path(p, favourite);
    goto out;
  }
  if (!answer.x) TFC_FAIL(s, TFC_DEADLINE_EXCEEDED, "no time left for the linear program of m-SCT");
  // A variable below the threshold is rounded to 0, as Hanen and Munier do.
  for (uint32_t c = 0; c < g->consumer_count; c++)
    if (answer.x[edge[c]] < 0.1) favourite[g->consumer[c]] = owner[c];
out:
  tfc_program_deinit(&lp);
  free(answer.x), free(start), free(edge), free(owner);
  return s;
}

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  tfc_status s = NULL;
  uint32_t *favourite = malloc(sizeof *favourite * ((size_t)p->node_count + 1));
  if (!favourite) return tfc_status_no_memory("m-SCT");
  for (uint32_t n = 0; n < p->node_count; n++) favourite[n] = TFC_NONE;
  if (p->node_count <= LARGEST)
    TFC_TRY(s, by_program(p, budget, favourite));
  else
    by_path(p, favourite);
  TFC_TRY(s, tfc_etf_run(p, budget, favourite, out, out_evaluations));
out:
  free(favourite);
  return s;
}

const struct tfc_algo tfc_algo_sct = {
    .name = "m-sct",
    .help = "earliest task first with favourite children from a linear program: good where transfers are short",
    .paper = "Jeon et al. 2020, Baechi, section 3.3; Hanen and Munier 1995, An Approximation Algorithm for Scheduling "
             "Dependent Tasks on m Processors with Small Communication Delays",
    .propose = propose,
};
