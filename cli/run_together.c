// Whether a step is synchronous can be seen in the graph: it gives gradients to accumulators, and the number of them
// after which an average is taken is a constant.
#include "cli/run_together.h"

#include <stdlib.h>

#include "runtime/pass/fold.h"

// Whether an average is taken from the accumulator when it has one gradient of each client.
static bool takes_one_of_each(const struct tfc_graph *g, uint32_t accumulator, uint32_t clients) {
  bool any = false;
  for (uint32_t c = g->consumer_begin[accumulator]; c < g->consumer_begin[accumulator + 1]; c++) {
    const struct tfc_node *n = &g->nodes[g->consumers[c].node];
    if (tfc_node_role(n) != TFC_ROLE_TAKES_GRADIENT || g->consumers[c].input != 0) continue;
    const struct tfc_tensor *required = tfc_const_value(g, &g->nodes[tfc_node_inputs(g, n)[1].node]);
    if (!required || required->dtype != TFC_INT32 || tfc_tensor_elements(required) != 1) return false;
    if (*(const int32_t *)required->data != (int64_t)clients) return false;
    any = true;
  }
  return any;
}

tfc_status run_together_can(const struct run_setup *setup, const struct tfc_step_spec *step,
                            const struct tfc_output *feeds, uint32_t clients, bool *out) {
  const struct tfc_graph *g = setup->graph;
  tfc_status s = NULL;
  bool any = false, all = true, *needed = calloc(g->node_count + 1u, sizeof *needed);
  if (!needed) return tfc_status_no_memory("training");
  TFC_TRY(s, tfc_prune(g, feeds, step->feed_count, step->fetches, step->fetch_count, step->targets, step->target_count,
                       needed));
  for (uint32_t i = 0; i < g->node_count; i++) {
    if (!needed[i] || tfc_node_role(&g->nodes[i]) != TFC_ROLE_GIVES_GRADIENT) continue;
    any = true;
    all = all && takes_one_of_each(g, tfc_node_inputs(g, &g->nodes[i])[0].node, clients);
  }
  *out = any && all;
out:
  free(needed);
  return s;
}
