#include "runtime/device/cpu/gemm/invariant.h"

#include "runtime/graph/op_def.h"

enum { FARTHEST = 64 };

static bool hands_on(const struct tfc_node *n) {
  return tfc_str_is(n->op, "Identity") || tfc_str_is(n->op, "StopGradient") || tfc_str_is(n->op, "Snapshot");
}
static uint32_t flags_of(const struct tfc_node *n) {
  return n->def ? n->def->flags : 0;
}

// Does `o` come from `merge` unchanged?
static bool returns_to(const struct tfc_graph *g, struct tfc_output o, uint32_t merge) {
  for (int i = 0; i < FARTHEST; i++) {
    const struct tfc_node *n = &g->nodes[o.node];
    if (o.node == merge) return o.index == 0;
    if (!(flags_of(n) & (TFC_OP_SWITCH | TFC_OP_NEXT_ITERATION)) && !hands_on(n)) return false;
    if (!n->input_count) return false;
    o = tfc_node_inputs(g, n)[0];
  }
  return false;
}

// A value read from a variable, outside of all frames: nothing that it needs can be in one.
static bool is_weight(const struct tfc_graph *g, struct tfc_output o) {
  for (int i = 0; i < FARTHEST; i++) {
    const struct tfc_node *n = &g->nodes[o.node];
    if (n->control_count) return false;
    if (flags_of(n) & TFC_OP_VARIABLE) return true;
    if ((!hands_on(n) && !tfc_str_is(n->op, "ReadVariableOp")) || n->input_count != 1) return false;
    o = tfc_node_inputs(g, n)[0];
  }
  return false;
}

// A loop that changes a variable by reference changes what its readers hold.
static bool loops_change_references(const struct tfc_graph *g) {
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    if (!(flags_of(n) & TFC_OP_UPDATE) || !n->input_count) continue;
    struct tfc_output o = tfc_node_inputs(g, n)[0];
    for (int k = 0; k < FARTHEST; k++) {
      const struct tfc_node *from = &g->nodes[o.node];
      if (flags_of(from) & TFC_OP_ENTER) return true;
      if (flags_of(from) & TFC_OP_VARIABLE || !from->input_count) break;
      o = tfc_node_inputs(g, from)[0];
    }
  }
  return false;
}

bool tfc_gemm_operand_is_invariant(const struct tfc_graph *g, const struct tfc_node *node, uint32_t input) {
  if (input >= node->input_count) return false;
  struct tfc_output o = tfc_node_inputs(g, node)[input];
  bool entered = false;
  for (int i = 0; i < FARTHEST; i++) {
    const struct tfc_node *n = &g->nodes[o.node];
    uint32_t f = flags_of(n);
    if (tfc_dtype_is_ref(tfc_output_dtype(g, o))) return false;
    if (entered && is_weight(g, o)) return !loops_change_references(g);
    if (f & TFC_OP_MERGE) {
      struct tfc_output enter = TFC_NO_OUTPUT;
      for (uint32_t k = 0; k < n->input_count; k++) {
        struct tfc_output in = tfc_node_inputs(g, n)[k];
        if (flags_of(&g->nodes[in.node]) & TFC_OP_ENTER)
          enter = in;
        else if (!returns_to(g, in, o.node))
          return false;
      }
      if (enter.node == TFC_NO_NODE || o.index != 0) return false;
      o = enter;
      continue;
    }
    if (!(f & (TFC_OP_ENTER | TFC_OP_SWITCH)) && !hands_on(n)) return false;
    if (!n->input_count) return false;
    entered = entered || f & TFC_OP_ENTER;
    o = tfc_node_inputs(g, n)[0];
  }
  return false;
}
