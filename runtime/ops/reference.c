#include "runtime/ops/reference.h"

#include "runtime/graph/op_def.h"

bool tfc_output_may_change(const struct tfc_graph *g, struct tfc_output o) {
  while (o.index >= 0 && !tfc_dtype_is_ref(tfc_output_dtype(g, o))) {
    const struct tfc_node *n = &g->nodes[o.node];
    const tfc_op_role role = tfc_node_role(n);
    const bool hands_on = n->def && (n->def->flags & (TFC_OP_VIEW | TFC_OP_SWITCH | TFC_OP_ENTER | TFC_OP_EXIT) ||
                                     role == TFC_ROLE_IDENTITY || role == TFC_ROLE_PASSES);
    if (!hands_on || !n->input_count) return false;
    o = tfc_node_inputs(g, n)[0];
  }
  return o.index >= 0;
}
