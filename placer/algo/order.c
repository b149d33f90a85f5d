#include "placer/algo/order.h"

#include <stdlib.h>

tfc_status tfc_order_units(const struct tfc_problem *p, bool depth_first, uint32_t *out) {
  const struct tfc_cost_graph *g = p->graph;
  bool *seen = calloc((size_t)p->unit_count + 1, sizeof *seen);
  uint32_t *waiting = calloc((size_t)p->node_count + 1, sizeof *waiting);
  uint32_t *stack = calloc((size_t)p->node_count + 1, sizeof *stack), depth = 0, count = 0;
  tfc_status s = NULL;
  if (!seen || !waiting || !stack) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for an order of units");
  if (!depth_first) {
    for (uint32_t i = 0; i < p->node_count; i++) {
      uint32_t u = p->unit[g->topological[i]];
      if (!seen[u]) seen[u] = true, out[count++] = u;
    }
    goto out;
  }
  for (uint32_t i = p->node_count; i-- > 0;) {
    uint32_t n = g->topological[i];
    waiting[n] = g->first_input[n + 1] - g->first_input[n];
    if (!waiting[n]) stack[depth++] = n;
  }
  while (depth) {
    uint32_t n = stack[--depth], u = p->unit[n];
    if (!seen[u]) seen[u] = true, out[count++] = u;
    for (uint32_t c = g->first_consumer[g->first_tensor[n]]; c < g->first_consumer[g->first_tensor[n + 1]]; c++)
      if (--waiting[g->consumer[c]] == 0) stack[depth++] = g->consumer[c];
  }
out:
  free(seen), free(waiting), free(stack);
  return s;
}
