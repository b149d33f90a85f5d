// Pruning: finds the nodes that fetches and targets need, backwards from these to the feeds.
#include <stdlib.h>

#include "runtime/base/no_memory.h"
#include "runtime/pass/pass.h"

tfc_status tfc_prune(const struct tfc_graph *g, const struct tfc_output *feeds, uint32_t feed_count,
                     const struct tfc_output *fetches, uint32_t fetch_count, const uint32_t *targets,
                     uint32_t target_count, bool *out_needed) {
  tfc_status s = NULL;
  struct tfc_intmap fed = {0};
  uint32_t *stack = malloc(((size_t)g->node_count + 1) * sizeof *stack), depth = 0;
  if (!stack) return tfc_status_no_memory_for("pruning %u nodes", g->node_count);
  memset(out_needed, 0, g->node_count * sizeof *out_needed);
  for (uint32_t i = 0; i < feed_count; i++)
    if (!tfc_intmap_put(&fed, (uint64_t)feeds[i].node << 32 | (uint32_t)feeds[i].index, 1, NULL))
      TFC_TRY(s, tfc_status_no_memory_for("pruning %u nodes", g->node_count));
  for (uint32_t i = 0; i < fetch_count + target_count; i++) {
    struct tfc_output o = i < fetch_count ? fetches[i] : (struct tfc_output){targets[i - fetch_count], TFC_CONTROL};
    if (o.node >= g->node_count) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "node %u is not in the graph", o.node);
    if (out_needed[o.node] || tfc_intmap_get(&fed, (uint64_t)o.node << 32 | (uint32_t)o.index)) continue;
    out_needed[o.node] = true;
    stack[depth++] = o.node;
  }
  while (depth) {
    const struct tfc_node *n = &g->nodes[stack[--depth]];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++) {
      if (out_needed[in[k].node]) continue;
      if (fed.count && tfc_intmap_get(&fed, (uint64_t)in[k].node << 32 | (uint32_t)in[k].index)) continue;
      out_needed[in[k].node] = true;
      stack[depth++] = in[k].node;
    }
  }
out:
  tfc_intmap_deinit(&fed);
  free(stack);
  return s;
}
