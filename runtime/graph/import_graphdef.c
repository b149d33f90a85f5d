// GraphDef: nodes into growing arrays in one pass, then names, edges and types all at once.
#include <stdlib.h>

#include "runtime/graph/import_internal.h"

static tfc_status out_of_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory: reading a graph");
}

// Where the node's fields lie, one pass over its bytes; values of attributes are read behind it.
static tfc_status read_fields(struct tfc_node_reader *r, tfc_str bytes, struct tfc_node *n) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f)) {
    if (f.number > 5) continue; // experimental_debug_info, experimental_type, whatever comes
    if (f.type != TFC_WIRE_BYTES)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "field %u has the wrong wire type", f.number);
    switch (f.number) {
    case 1: n->name = f.bytes; break;
    case 2: n->op = f.bytes; break;
    case 3:
      if (f.bytes.size && f.bytes.data[0] == '^') {
        n->control_count++;
      } else if (n->control_count) {
        return tfc_status_make(TFC_INVALID_ARGUMENT, "data input '%.*s' comes after a control input",
                               TFC_STR_ARG(f.bytes));
      } else {
        n->input_count++;
      }
      if (!tfc_array_push(&r->inputs, f.bytes)) return out_of_memory();
      break;
    case 4: n->device = f.bytes; break;
    case 5: {
      struct tfc_attr attr = {0};
      tfc_str value;
      tfc_status s = tfc_read_entry(f.bytes, &attr.name, &value);
      if (!s) s = tfc_read_attr_value(&r->attr_reader, value, &attr);
      if (s) return tfc_status_annotate(s, "attribute '%.*s'", TFC_STR_ARG(attr.name));
      if (!tfc_array_push(&r->attrs, attr)) return out_of_memory();
      n->attr_count++;
      break;
    }
    default: break;
    }
  }
  if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s (field %u)", w.error, f.number);
  return NULL;
}

tfc_status tfc_read_node(struct tfc_node_reader *r, tfc_str bytes) {
  struct tfc_node n = {.name = TFC_STR(""),
                       .op = TFC_STR(""),
                       .device = TFC_STR(""),
                       .function = TFC_NO_NODE,
                       .input_begin = (uint32_t)r->inputs.count,
                       .attr_begin = (uint32_t)r->attrs.count,
                       .raw = bytes};
  tfc_status s = read_fields(r, bytes, &n);
  if (s)
    return tfc_status_annotate(s, "node %zu '%.*s' (%.*s)", r->nodes.count, TFC_STR_ARG(n.name), TFC_STR_ARG(n.op));
  if (r->nodes.count >= UINT32_MAX / 4 || r->inputs.count >= UINT32_MAX / 4 || r->attrs.count >= UINT32_MAX / 4)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the graph is too large");
  return tfc_array_push(&r->nodes, n) ? NULL : out_of_memory();
}

void tfc_node_reader_deinit(struct tfc_node_reader *r) {
  tfc_array_free(&r->nodes);
  tfc_array_free(&r->attrs);
  tfc_array_free(&r->inputs);
}

// Empty lists say nothing of their kind in the file: the op's definition does.
static void name_empty_lists(struct tfc_graph *g) {
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    for (uint32_t k = n->attr_begin; k < n->attr_begin + n->attr_count; k++) {
      struct tfc_attr *a = &g->attrs[k];
      if (a->kind != TFC_ATTR_LIST_INT || a->count) continue;
      const struct tfc_op_def *def = n->def ? n->def : tfc_op_find(n->op);
      const struct tfc_op_signature *sig = def ? tfc_op_signature(def) : NULL;
      for (uint32_t j = 0; sig && j < sig->attr_count; j++)
        if (tfc_str_equal(sig->attrs[j].name, a->name) && sig->attrs[j].kind >= TFC_ATTR_LIST_INT)
          a->kind = sig->attrs[j].kind;
    }
  }
}

tfc_status tfc_node_reader_hand_over(struct tfc_node_reader *r, struct tfc_graph *g) {
  g->node_count = (uint32_t)r->nodes.count;
  g->edge_count = (uint32_t)r->inputs.count;
  g->inputs = tfc_arena_array(&g->arena, (size_t)g->edge_count + 1, sizeof *g->inputs);
  g->nodes = r->nodes.data;
  g->attrs = r->attrs.data;
  r->nodes.data = NULL;
  r->attrs.data = NULL;
  bool nodes = tfc_graph_own(g, g->nodes), attrs = tfc_graph_own(g, g->attrs);
  if (nodes && attrs && g->inputs) {
    name_empty_lists(g);
    return NULL;
  }
  g->node_count = g->edge_count = 0;
  g->nodes = NULL;
  g->attrs = NULL;
  return out_of_memory();
}

tfc_status tfc_read_graph_def(struct tfc_graph *g, tfc_str bytes) {
  tfc_status s = NULL;
  struct tfc_node_reader r = {.attr_reader = {.graph = g}};
  TFC_ARRAY(tfc_str) libraries = {0};
  struct tfc_wire w = tfc_wire_of(bytes), v;
  struct tfc_field f, e;
  // A guess that spares most of the growing: nodes are rarely shorter.
  if (!tfc_array_reserve(&r.nodes, bytes.size / 400 + 16) || !tfc_array_reserve(&r.attrs, bytes.size / 60 + 64) ||
      !tfc_array_reserve(&r.inputs, bytes.size / 200 + 32))
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory: reading a graph");
  while (tfc_wire_next(&w, &f)) {
    if (f.type != TFC_WIRE_BYTES) continue;
    if (f.number == 1) {
      TFC_TRY(s, tfc_read_node(&r, f.bytes));
    } else if (f.number == 2) {
      if (!tfc_array_push(&libraries, f.bytes)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory: reading a graph");
    } else if (f.number == 4) {
      v = tfc_wire_of(f.bytes);
      while (tfc_wire_next(&v, &e))
        if (e.number == 1 && e.type == TFC_WIRE_VARINT) g->producer_version = (int32_t)(e.value & INT32_MAX);
    }
  }
  if (w.error)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "after %zu nodes: %s (field %u of the graph, at byte %zu)", r.nodes.count,
             w.error, f.number, (size_t)(f.start - (const uint8_t *)bytes.data));
  TFC_TRY(s, tfc_node_reader_hand_over(&r, g));
  TFC_TRY(s, tfc_read_library(g, libraries.data, libraries.count));
  TFC_TRY(s, tfc_graph_resolve_nodes(g));
  TFC_TRY(s, tfc_graph_resolve_edges(g, r.inputs.data));
  TFC_TRY(s, tfc_graph_finish(g));
out:
  tfc_array_free(&libraries);
  tfc_node_reader_deinit(&r);
  return s;
}
