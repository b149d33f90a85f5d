// The code that lowers and the code that builds gradients use each other: the gradient of a call is the gradient of the
// lowered call, and a SymbolicGradient is lowered to a gradient. To avoid files that depend on each other in a circle,
// callers pass the gradients' function to the lowering as an argument, here and in gradients.c.
#include "runtime/pass/functions.h"

tfc_status tfc_lower_functions(const struct tfc_graph *g, struct tfc_graph **out, uint32_t **out_origin) {
  return tfc_lower_all(g, tfc_builder_gradients, out, out_origin);
}

tfc_status tfc_lower_loaded(struct tfc_graph **graph) {
  struct tfc_graph *lowered = NULL;
  bool calls = false;
  for (uint32_t i = 0; i < (*graph)->node_count && !calls; i++) {
    const struct tfc_node *n = &(*graph)->nodes[i];
    calls = n->def ? (n->def->flags & TFC_OP_FUNCTIONAL) != 0 : n->function != TFC_NONE;
  }
  if (!calls) return NULL;
  tfc_status s = tfc_lower_functions(*graph, &lowered, NULL);
  if (tfc_status_code(s) == TFC_INVALID_ARGUMENT || tfc_status_code(s) == TFC_UNIMPLEMENTED) {
    tfc_status_free(s); // a broken call, which perhaps no step needs: it is an error only when it runs
    return NULL;
  }
  if (s) return s;
  tfc_graph_release(*graph);
  *graph = lowered;
  return NULL;
}
