// Makes the folded order: a unit that has only nodes of the backward pass moves to the weighted mean position of the
// units with which it exchanges bytes. This is repeated SWEEPS times; all other units keep the position of their first
// node.
#include "placer/algo/fold.h"

#include <stdlib.h>

#include "placer/algo/order.h"

struct place {
  double at;
  uint32_t unit;
};
static int compare_places(const void *a, const void *b) {
  const struct place *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return (x->unit > y->unit) - (x->unit < y->unit);
}

// Finds the backward pass: the nodes after an edge that leads to a unit earlier in `at`. only_back[unit]: all its nodes
// are in the backward pass.
static bool find_return(const struct tfc_problem *p, const struct place *at, bool *back, bool *only_back) {
  const struct tfc_cost_graph *g = p->graph;
  bool any = false;
  for (uint32_t u = 0; u < p->unit_count; u++) only_back[u] = true;
  for (uint32_t i = 0; i < p->node_count; i++) {
    const uint32_t n = g->topological[i];
    for (uint32_t k = g->first_input[n]; k < g->first_input[n + 1] && !back[n]; k++) {
      const uint32_t m = g->producer[g->input[k]];
      back[n] = back[m] || at[p->unit[m]].at > at[p->unit[n]].at;
    }
    only_back[p->unit[n]] &= back[n];
    any |= back[n];
  }
  return any;
}

tfc_status tfc_order_folded(const struct tfc_problem *p, bool *out_folded, uint32_t *order) {
  enum { SWEEPS = 20 };
  const uint32_t units = p->unit_count;
  tfc_status s = NULL;
  struct place *place = calloc((size_t)units + 1, sizeof *place);
  double *sum = calloc((size_t)units + 1, sizeof *sum), *weight = calloc((size_t)units + 1, sizeof *weight);
  bool *back = calloc((size_t)p->node_count + 1, sizeof *back), *only = calloc((size_t)units + 1, sizeof *only);
  if (!place || !sum || !weight || !back || !only) TFC_TRY(s, tfc_status_no_memory("an order of units"));
  TFC_TRY(s, tfc_order_units(p, false, order));
  for (uint32_t i = 0; i < units; i++) place[order[i]] = (struct place){i, order[i]};
  *out_folded = find_return(p, place, back, only);
  for (int sweep = 0; *out_folded && sweep < SWEEPS; sweep++) { // move the units of the backward pass
    for (uint32_t u = 0; u < units; u++) sum[u] = weight[u] = 0;
    for (uint32_t i = 0; i < p->net_count; i++) {
      const uint32_t u = p->unit[p->graph->producer[p->net_tensor[i]]], fan = p->net_first[i + 1] - p->net_first[i];
      const double w = (double)(p->graph->bytes[p->net_tensor[i]] + 1) / fan;
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
        const uint32_t v = p->net_unit[j];
        if (sweep || !only[v]) sum[u] += w * place[v].at, weight[u] += w;
        if (sweep || !only[u]) sum[v] += w * place[u].at, weight[v] += w;
      }
    }
    for (uint32_t u = 0; u < units; u++)
      if (only[u] && weight[u] > 0) place[u].at = sum[u] / weight[u];
  }
  qsort(place, units, sizeof *place, compare_places);
  for (uint32_t i = 0; i < units; i++) order[i] = place[i].unit;
out:
  free(place), free(sum), free(weight), free(back), free(only);
  return s;
}
