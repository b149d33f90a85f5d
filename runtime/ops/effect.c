#include "runtime/ops/effect.h"

#include "runtime/base/sandbox.h"

// Returns the effect of an op that has no row, by its name: graphs with ops that tfc cannot run are understood, too.
static tfc_op_effect effect_by_name(tfc_str op) {
  static const struct {
    const char *begins, *ends;
    tfc_op_effect effect;
  } names[] = {
      {"Write", "Summary", TFC_EFFECT_SAVE},
      {"InitializeTable", "", TFC_EFFECT_TABLE},
      {"LookupTableImport", "", TFC_EFFECT_TABLE},
      {"Restore", "", TFC_EFFECT_RESTORE},
      {"Assign", "", TFC_EFFECT_UPDATE},
      {"Apply", "", TFC_EFFECT_UPDATE},
      {"ResourceApply", "", TFC_EFFECT_UPDATE},
      {"SparseApply", "", TFC_EFFECT_UPDATE},
      {"ResourceSparseApply", "", TFC_EFFECT_UPDATE},
      {"ResourceScatter", "", TFC_EFFECT_UPDATE},
      {"QueueEnqueue", "", TFC_EFFECT_UPDATE},
      {"LookupTableInsert", "", TFC_EFFECT_UPDATE},
      {"LookupTableRemove", "", TFC_EFFECT_UPDATE},
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (tfc_str_starts(op, names[i].begins) && tfc_str_ends(op, names[i].ends)) return names[i].effect;
  return TFC_EFFECT_NONE;
}

tfc_op_effect tfc_node_effect(const struct tfc_node *n) {
  if (!n->def) return effect_by_name(n->op);
  if (n->def->effect != TFC_EFFECT_NONE) return n->def->effect;
  if (n->def->flags & TFC_OP_SAVES) return TFC_EFFECT_SAVE;
  return n->def->flags & TFC_OP_UPDATE ? TFC_EFFECT_UPDATE : TFC_EFFECT_NONE;
}

bool tfc_node_is_placeholder(const struct tfc_node *n) {
  return n->def ? n->def->flags & TFC_OP_PLACEHOLDER : tfc_str_is(n->op, "PlaceholderV2");
}

bool tfc_node_is_outside(const struct tfc_node *n) {
  return n->def ? n->def->flags & TFC_OP_READS_OUTSIDE : tfc_node_is_placeholder(n);
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
