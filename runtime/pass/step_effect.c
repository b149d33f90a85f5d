// What a node does to the world. Names decide first, so that a graph is understood also where an op has no row here;
// a call has the strongest effect of its function's body.
#include "runtime/pass/step_internal.h"

static bool any_prefix(tfc_str op, const char *const *prefixes) {
  for (; *prefixes; prefixes++)
    if (tfc_str_starts(op, *prefixes)) return true;
  return false;
}
static bool any_name(tfc_str op, const char *const *names) {
  for (; *names; names++)
    if (tfc_str_is(op, *names)) return true;
  return false;
}

bool tfc_node_is_variable(const struct tfc_node *n) {
  return tfc_str_is(n->op, "VariableV2") || tfc_str_is(n->op, "VarHandleOp") || tfc_str_is(n->op, "Variable");
}

static tfc_op_effect op_effect(const struct tfc_node *n) {
  static const char *const updates[] = {
      "Assign",          "Apply",        "ResourceApply",     "SparseApply",       "ResourceSparseApply",
      "ResourceScatter", "QueueEnqueue", "LookupTableInsert", "LookupTableRemove", NULL};
  static const char *const update_names[] = {"ScatterUpdate",
                                             "ScatterAdd",
                                             "ScatterSub",
                                             "ScatterMul",
                                             "ScatterDiv",
                                             "ScatterMin",
                                             "ScatterMax",
                                             "ScatterNdUpdate",
                                             "ScatterNdAdd",
                                             "ScatterNdSub",
                                             "ScatterNdMin",
                                             "ScatterNdMax",
                                             "CountUpTo",
                                             "ResourceCountUpTo",
                                             "StridedSliceAssign",
                                             "ResourceStridedSliceAssign",
                                             "BarrierInsertMany",
                                             "AccumulatorApplyGradient",
                                             "ResourceAccumulatorApplyGradient",
                                             "SparseAccumulatorApplyGradient",
                                             NULL};
  static const char *const tables[] = {"InitializeTable", "LookupTableImport", NULL};
  static const char *const saves[] = {"Save",
                                      "SaveV2",
                                      "SaveSlices",
                                      "MergeV2Checkpoints",
                                      "WriteFile",
                                      "MergeSummary",
                                      "ScalarSummary",
                                      "HistogramSummary",
                                      "ImageSummary",
                                      "AudioSummary",
                                      "AudioSummaryV2",
                                      "TensorSummary",
                                      "TensorSummaryV2",
                                      NULL};
  if (any_name(n->op, saves) || (tfc_str_starts(n->op, "Write") && tfc_str_ends(n->op, "Summary")))
    return TFC_EFFECT_SAVE;
  if (any_prefix(n->op, tables)) return TFC_EFFECT_TABLE;
  if (tfc_str_starts(n->op, "Restore")) return TFC_EFFECT_RESTORE;
  if (any_prefix(n->op, updates) || any_name(n->op, update_names)) return TFC_EFFECT_UPDATE;
  if (n->def && (n->def->flags & TFC_OP_SAVES)) return TFC_EFFECT_SAVE;
  if (n->def && (n->def->flags & TFC_OP_UPDATE)) return TFC_EFFECT_UPDATE;
  return TFC_EFFECT_NONE;
}

enum { MOST_DEPTH = 16 }; // calls within calls; deeper ones count for nothing

static tfc_op_effect function_effect(const struct tfc_graph *library, tfc_str name, int depth);

static tfc_op_effect effect_at(const struct tfc_graph *library, const struct tfc_graph *g, const struct tfc_node *n,
                               int depth) {
  tfc_op_effect effect = op_effect(n);
  if (effect != TFC_EFFECT_NONE || depth >= MOST_DEPTH) return effect;
  if (n->function != TFC_NO_NODE) effect = function_effect(library, n->op, depth + 1);
  for (uint32_t i = 0; i < n->attr_count; i++) {
    const struct tfc_attr *a = &g->attrs[n->attr_begin + i];
    uint32_t count = a->kind == TFC_ATTR_FUNC ? 1 : a->kind == TFC_ATTR_LIST_FUNC ? a->count : 0;
    const struct tfc_func_attr *funcs = a->kind == TFC_ATTR_FUNC ? a->func : a->funcs;
    for (uint32_t k = 0; k < count; k++) {
      tfc_op_effect inner = function_effect(library, funcs[k].name, depth + 1);
      if (inner > effect) effect = inner;
    }
  }
  return effect;
}

static tfc_op_effect function_effect(const struct tfc_graph *library, tfc_str name, int depth) {
  const struct tfc_function *f = tfc_graph_function(library, name);
  tfc_op_effect effect = TFC_EFFECT_NONE;
  if (!f || !f->body || depth >= MOST_DEPTH) return effect;
  for (uint32_t i = 0; i < f->body->node_count && effect != TFC_EFFECT_SAVE; i++) {
    tfc_op_effect inner = effect_at(library, f->body, &f->body->nodes[i], depth);
    if (inner > effect) effect = inner;
  }
  return effect;
}

tfc_op_effect tfc_node_effect(const struct tfc_graph *g, const struct tfc_node *n) {
  return effect_at(g, g, n, 0);
}
