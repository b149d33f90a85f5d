// An effect is found by the op's name first, so that graphs with ops that have no row here are understood too.
#include "runtime/ops/effect.h"

#include "runtime/base/sandbox.h"

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

tfc_op_effect tfc_op_effect_of(tfc_str op, const struct tfc_op_def *def) {
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
  static const char *const tables[] = {"InitializeTable", "LookupTableImport", "MakeIterator", NULL};
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
  if (any_name(op, saves) || (tfc_str_starts(op, "Write") && tfc_str_ends(op, "Summary"))) return TFC_EFFECT_SAVE;
  if (any_prefix(op, tables)) return TFC_EFFECT_TABLE;
  if (tfc_str_starts(op, "Restore")) return TFC_EFFECT_RESTORE;
  if (any_prefix(op, updates) || any_name(op, update_names)) return TFC_EFFECT_UPDATE;
  if (def && (def->flags & TFC_OP_SAVES)) return TFC_EFFECT_SAVE;
  if (def && (def->flags & TFC_OP_UPDATE)) return TFC_EFFECT_UPDATE;
  return TFC_EFFECT_NONE;
}

bool tfc_op_begins_iterator(tfc_str op) {
  return tfc_str_is(op, "MakeIterator");
}

bool tfc_op_is_placeholder(tfc_str op) {
  return tfc_str_is(op, "Placeholder") || tfc_str_is(op, "PlaceholderV2");
}

bool tfc_op_is_outside(tfc_str op) {
  static const char *const reads[] = {"QueueDequeue", "IteratorGetNext", "ReaderRead", NULL};
  return tfc_op_is_placeholder(op) || tfc_str_is(op, "PlaceholderWithDefault") || any_prefix(op, reads);
}

bool tfc_op_closes_queue(tfc_str op) {
  return tfc_str_starts(op, "QueueClose");
}

bool tfc_op_gives_gradient(tfc_str op) {
  return tfc_str_ends(op, "AccumulatorApplyGradient");
}
bool tfc_op_takes_gradient(tfc_str op) {
  return tfc_str_ends(op, "AccumulatorTakeGradient");
}

tfc_status tfc_node_may_run(const struct tfc_graph *g, const struct tfc_node *n) {
  if (!tfc_untrusted() || !n->def) return NULL;
  const char *named = n->def->file_attr;
  const bool uses = n->def->flags & TFC_OP_FILES || (named && tfc_node_attr_string(g, n, named, "").size);
  if (!uses) return NULL;
  return tfc_status_make(
      TFC_INVALID_ARGUMENT,
      "node '%.*s' (%.*s) uses files, which graphs may not do under --untrusted: leave it out of the "
      "step, or run the graph without that flag where you trust it",
      TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
}
