// Graphs with frames, dynamic shapes in control flow, queues or function calls: not run yet; said by node.
#include "runtime/exec/plan_internal.h"

tfc_status tfc_plan_make_dynamic(struct tfc_build *b, struct tfc_plan *plan) {
  (void)plan;
  for (uint32_t i = 0; i < b->graph->node_count; i++) {
    const struct tfc_node *n = &b->graph->nodes[i];
    const uint32_t flags = TFC_OP_SWITCH | TFC_OP_MERGE | TFC_OP_ENTER | TFC_OP_ASYNC | TFC_OP_FUNCTIONAL;
    if (b->needed[i] && (n->function != TFC_NO_NODE || (n->def && n->def->flags & flags)))
      return tfc_status_make(TFC_UNIMPLEMENTED, "node '%.*s' (%.*s): control flow is not supported yet",
                             TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
  }
  return tfc_status_make(TFC_UNIMPLEMENTED, "running in ready order is not supported yet");
}
tfc_status tfc_plan_run_dynamic(struct tfc_plan *plan, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                const struct tfc_run_options *options) {
  (void)plan, (void)feeds, (void)fetches, (void)options;
  return tfc_status_make(TFC_UNIMPLEMENTED, "running in ready order is not supported yet");
}
void tfc_plan_dynamic_deinit(struct tfc_plan *plan) {
  (void)plan;
}
