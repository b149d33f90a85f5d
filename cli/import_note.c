#include "cli/import_note.h"

#include <stdlib.h>

#include "runtime/base/units.h"
#include "runtime/graph/op_def.h"

static bool is_variable(const struct tfc_node *n) {
  return n->def && n->def->flags & TFC_OP_VARIABLE && n->def->role != TFC_ROLE_TEMPORARY;
}

void cli_import_describe(const struct tfc_graph *g, struct tfc_text *out) {
  struct tfc_strmap types = {0}, devices = {0}, unknown = {0};
  uint32_t variables = 0, unsized = 0, colocated = 0, loops = 0, branches = 0;
  double bytes = 0;
  char text[32];
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    tfc_strmap_put(&types, n->op, 0, NULL);
    if (n->device.size) tfc_strmap_put(&devices, n->device, 0, NULL);
    if (tfc_node_attr(g, n, "_class")) colocated++;
    uint32_t flags = n->def ? n->def->flags : 0;
    if (flags & TFC_OP_ENTER || tfc_node_role(n) == TFC_ROLE_WHILE) loops++;
    if (flags & TFC_OP_SWITCH || tfc_node_role(n) == TFC_ROLE_IF) branches++;
    if (!n->def && n->function == TFC_NONE) {
      uint64_t *count = tfc_strmap_put(&unknown, n->op, (uint64_t)i << 32, NULL);
      if (count) ++*count;
    }
    if (!is_variable(n)) continue;
    variables++;
    const struct tfc_attr *shape = tfc_node_attr(g, n, "shape");
    int64_t elements = shape && shape->kind == TFC_ATTR_SHAPE ? tfc_shape_elements(shape->shape) : -1;
    if (elements >= 0)
      bytes += (double)elements * (double)tfc_dtype_size(tfc_node_attr_type(g, n, "dtype", TFC_FLOAT));
    else
      unsized++;
  }
  tfc_text_printf(out, "graph: %u nodes of %zu types, %u variables (%s%s)", g->node_count, types.count, variables,
                  tfc_show_bytes(text, bytes), unsized ? " and some of unknown size" : "");
  if (loops + branches == 0)
    tfc_text_printf(out, ", no control flow");
  else
    tfc_text_printf(out, ", control flow (%u nodes of loops, %u of branches)", loops, branches);
  if (g->function_count) tfc_text_printf(out, ", %u functions", g->function_count);
  if (devices.count)
    tfc_text_printf(out, ", %zu device strings", devices.count);
  else
    tfc_text_printf(out, ", no device strings");
  tfc_text_printf(out, ", %u colocated nodes\n", colocated);
  for (size_t i = 0; i < unknown.count; i++) {
    const struct tfc_strmap_entry *e = &unknown.entries[i];
    tfc_text_printf(out, "not supported: %.*s, %u of them, first '%.*s'\n", TFC_STR_ARG(e->key), (uint32_t)e->value,
                    TFC_STR_ARG(g->nodes[e->value >> 32].name));
  }
  tfc_strmap_deinit(&types);
  tfc_strmap_deinit(&devices);
  tfc_strmap_deinit(&unknown);
}
