// Makes orders of units. A node hangs if it has no inputs, or a single input that hangs, and at least one consumer:
// parameters, their reads, and casts or reshapes of them. Hanging nodes are not part of the traversal; each is emitted
// with the first node that needs it.
#include "placer/algo/order.h"

#include <stdlib.h>

struct walker {
  const struct tfc_problem *p;
  bool *hangs, *out_already, *seen; // [node], [node], [unit]
  uint32_t *waiting, *stack, *pull; // [node]
  uint32_t count, *order;
};

static void find_hanging(struct walker *w) {
  const struct tfc_cost_graph *g = w->p->graph;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const uint32_t n = g->topological[i], inputs = g->first_input[n + 1] - g->first_input[n];
    w->hangs[n] = !inputs || (inputs == 1 && w->hangs[g->producer[g->input[g->first_input[n]]]]);
  }
  for (uint32_t n = 0; n < g->node_count; n++) // a node without consumers is never hanging
    if (g->first_consumer[g->first_tensor[n]] == g->first_consumer[g->first_tensor[n + 1]]) w->hangs[n] = false;
}

static void emit(struct walker *w, uint32_t n) {
  const uint32_t u = w->p->unit[n];
  w->out_already[n] = true;
  if (!w->seen[u]) w->seen[u] = true, w->order[w->count++] = u;
}

// Emits the node, after all hanging nodes that it needs.
static void emit_with_inputs(struct walker *w, uint32_t n) {
  const struct tfc_cost_graph *g = w->p->graph;
  for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++) {
    uint32_t m = g->producer[g->input[i]], depth = 0;
    while (w->hangs[m] && !w->out_already[m]) { // goes up the chain of hanging nodes, then emits the chain from the top
      w->pull[depth++] = m;
      if (g->first_input[m] == g->first_input[m + 1]) break;
      m = g->producer[g->input[g->first_input[m]]];
    }
    while (depth) emit(w, w->pull[--depth]);
  }
  emit(w, n);
}

static void depth_first(struct walker *w) {
  const struct tfc_cost_graph *g = w->p->graph;
  uint32_t depth = 0;
  for (uint32_t i = g->node_count; i-- > 0;) {
    const uint32_t n = g->topological[i];
    for (uint32_t k = g->first_input[n]; k < g->first_input[n + 1]; k++)
      w->waiting[n] += !w->hangs[g->producer[g->input[k]]];
    if (!w->hangs[n] && !w->waiting[n]) w->stack[depth++] = n;
  }
  while (depth) {
    const uint32_t n = w->stack[--depth];
    emit_with_inputs(w, n);
    for (uint32_t c = g->first_consumer[g->first_tensor[n]]; c < g->first_consumer[g->first_tensor[n + 1]]; c++)
      if (--w->waiting[g->consumer[c]] == 0) w->stack[depth++] = g->consumer[c];
  }
}

tfc_status tfc_order_units(const struct tfc_problem *p, bool depth, uint32_t *out) {
  const size_t nodes = (size_t)p->node_count + 1;
  tfc_status s = NULL;
  struct walker w = {.p = p, .order = out};
  w.hangs = calloc(nodes, sizeof *w.hangs);
  w.out_already = calloc(nodes, sizeof *w.out_already);
  w.seen = calloc((size_t)p->unit_count + 1, sizeof *w.seen);
  w.waiting = calloc(nodes, sizeof *w.waiting);
  w.stack = calloc(nodes, sizeof *w.stack);
  w.pull = calloc(nodes, sizeof *w.pull);
  if (!w.hangs || !w.out_already || !w.seen || !w.waiting || !w.stack || !w.pull)
    TFC_TRY(s, tfc_status_no_memory("an order of units"));
  find_hanging(&w);
  if (depth) {
    depth_first(&w);
  } else {
    for (uint32_t i = 0; i < p->node_count; i++)
      if (!w.hangs[p->graph->topological[i]]) emit_with_inputs(&w, p->graph->topological[i]);
  }
out:
  free(w.hangs), free(w.out_already), free(w.seen), free(w.waiting), free(w.stack), free(w.pull);
  return s;
}
