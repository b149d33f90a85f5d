#include <stdlib.h>

#include "runtime/pass/pass.h"

struct walk {
  const struct tfc_graph *graph;
  bool *fed; // [output]
  bool *needed;
  uint32_t *stack;
  uint32_t depth;
};

static void visit(struct walk *w, uint32_t node) {
  if (w->needed[node]) return;
  w->needed[node] = true;
  w->stack[w->depth++] = node;
}

// Everything that this node reads that is not fed.
static void expand(struct walk *w, uint32_t id) {
  const struct tfc_graph *g = w->graph;
  const struct tfc_node *n = &g->nodes[id];
  bool all_fed = n->output_count > 0;
  for (uint32_t i = 0; i < n->output_count; i++) all_fed &= w->fed[n->output_begin + i];
  if (all_fed) return;
  const struct tfc_output *in = tfc_node_inputs(g, n);
  for (uint32_t i = 0; i < n->input_count + n->control_count; i++) {
    if (in[i].index >= 0 && w->fed[g->nodes[in[i].node].output_begin + (uint32_t)in[i].index]) continue;
    visit(w, in[i].node);
  }
}

tfc_status tfc_prune(const struct tfc_graph *g, const struct tfc_output *feeds, uint32_t feed_count,
                     const struct tfc_output *fetches, uint32_t fetch_count, const uint32_t *targets,
                     uint32_t target_count, bool *out_needed) {
  tfc_status s = NULL;
  struct walk w = {.graph = g, .needed = out_needed};
  w.fed = calloc(g->output_total + 1u, sizeof *w.fed);
  w.stack = calloc(g->node_count + 1u, sizeof *w.stack);
  if (!w.fed || !w.stack) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  memset(out_needed, 0, g->node_count * sizeof *out_needed);
  for (uint32_t i = 0; i < feed_count; i++)
    if (feeds[i].index >= 0) w.fed[g->nodes[feeds[i].node].output_begin + (uint32_t)feeds[i].index] = true;
  for (uint32_t i = 0; i < target_count; i++) visit(&w, targets[i]);
  for (uint32_t i = 0; i < fetch_count; i++) {
    struct tfc_output o = fetches[i];
    if (o.index >= 0 && w.fed[g->nodes[o.node].output_begin + (uint32_t)o.index]) continue;
    visit(&w, o.node);
  }
  while (w.depth) expand(&w, w.stack[--w.depth]);
out:
  free(w.fed);
  free(w.stack);
  return s;
}
