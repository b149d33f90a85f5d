// Reads a GraphDef: one pass puts the nodes into growing arrays, then all names, edges and types are resolved at once.
#include <stdlib.h>

#include "runtime/base/interrupt.h"
#include "runtime/base/sandbox.h"
#include "runtime/graph/import_internal.h"

// Sets the kind of an empty list. The file does not say the kind, but the op's definition does.
static void name_empty_lists(const struct tfc_node *n, struct tfc_attr *attrs) {
  const struct tfc_op_def *def = tfc_op_find(n->op);
  const struct tfc_op_signature *sig = def ? tfc_op_signature(def) : NULL;
  for (uint32_t k = 0; sig && k < n->attr_count; k++)
    for (uint32_t j = 0; attrs[k].kind == TFC_ATTR_LIST_INT && !attrs[k].count && j < sig->attr_count; j++)
      if (tfc_str_equal(sig->attrs[j].name, attrs[k].name) && sig->attrs[j].kind >= TFC_ATTR_LIST_INT)
        attrs[k].kind = sig->attrs[j].kind;
}

static struct tfc_known_attrs *known_attrs(struct tfc_node_reader *r, const struct tfc_node *n, tfc_str bytes) {
  return &r->known[(tfc_hash_bytes(n->op.data, n->op.size) + bytes.size) % TFC_KNOWN_ATTRS];
}

// Finds the node's fields in one pass over its bytes. Attributes come last, in `rest` with the fields that are not
// read. A node whose `rest` equals that of an earlier node shares its attributes.
static tfc_status read_fields(struct tfc_node_reader *r, tfc_str bytes, struct tfc_node *n) {
  enum { LARGE = 4096 }; // bytes; larger attributes (of constants, mostly) are not compared
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  tfc_str rest = {0};
  r->attr_reader.empty_list = false;
  while (tfc_wire_next(&w, &f)) {
    if (f.number > 5) continue; // experimental_debug_info, experimental_type and later fields are not read
    if (f.type != TFC_WIRE_BYTES)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "field %u has the wrong wire type", f.number);
    if (f.number != 5) rest.size = 0;
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
      if (!tfc_array_push(&r->inputs, f.bytes)) return tfc_status_no_memory("reading a graph");
      break;
    case 4: n->device = f.bytes; break;
    case 5: {
      if (!n->attr_count) {
        rest = (tfc_str){(const char *)f.start, (size_t)(w.end - f.start)};
        const struct tfc_known_attrs *known = known_attrs(r, n, rest);
        if (tfc_str_equal(known->bytes, rest)) {
          n->attr_begin = known->begin, n->attr_count = known->count;
          return NULL;
        }
      }
      if (!tfc_array_reserve(&r->attrs, r->attrs.count + 1)) return tfc_status_no_memory("reading a graph");
      TFC_RETURN_IF_ERROR(tfc_read_attr(&r->attr_reader, f.bytes, &r->attrs.data[r->attrs.count++]));
      n->attr_count++;
      break;
    }
    default: break;
    }
  }
  if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s (field %u)", w.error, f.number);
  if (r->attr_reader.empty_list)
    name_empty_lists(n, r->attrs.data + n->attr_begin);
  else if (rest.size && rest.size < LARGE)
    *known_attrs(r, n, rest) = (struct tfc_known_attrs){rest, n->attr_begin, n->attr_count};
  return NULL;
}

tfc_status tfc_read_node(struct tfc_node_reader *r, tfc_str bytes) {
  TFC_RETURN_IF_ERROR(tfc_interrupted("reading a graph"));
  if (r->nodes.count >= tfc_untrusted_nodes())
    return tfc_status_make(TFC_INVALID_ARGUMENT, "more than %llu nodes, the limit of --untrusted",
                           (unsigned long long)tfc_untrusted_nodes());
  struct tfc_node n = {.name = TFC_STR(""),
                       .op = TFC_STR(""),
                       .device = TFC_STR(""),
                       .function = TFC_NONE,
                       .input_begin = (uint32_t)r->inputs.count,
                       .attr_begin = (uint32_t)r->attrs.count,
                       .raw = bytes};
  tfc_status s = read_fields(r, bytes, &n);
  if (s)
    return tfc_status_annotate(s, "node %zu '%.*s' (%.*s)", r->nodes.count, TFC_STR_ARG(n.name), TFC_STR_ARG(n.op));
  if (r->nodes.count >= UINT32_MAX / 4 || r->inputs.count >= UINT32_MAX / 4 || r->attrs.count >= UINT32_MAX / 4)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the graph is too large");
  return tfc_array_push(&r->nodes, n) ? NULL : tfc_status_no_memory("reading a graph");
}

void tfc_node_reader_deinit(struct tfc_node_reader *r) {
  tfc_array_free(&r->nodes);
  tfc_array_free(&r->attrs);
  tfc_array_free(&r->inputs);
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
  if (nodes && attrs && g->inputs) return NULL;
  g->node_count = g->edge_count = 0;
  g->nodes = NULL;
  g->attrs = NULL;
  return tfc_status_no_memory("reading a graph");
}

tfc_status tfc_read_graph_def(struct tfc_graph *g, tfc_str bytes) {
  tfc_status s = NULL;
  struct tfc_node_reader r = {.attr_reader = {.graph = g}};
  TFC_ARRAY(tfc_str) libraries = {0};
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  // With these sizes, the arrays rarely have to grow: few nodes and attributes need fewer bytes in the file.
  if (!tfc_array_reserve(&r.nodes, bytes.size / 400 + 16) || !tfc_array_reserve(&r.attrs, bytes.size / 40 + 64) ||
      !tfc_array_reserve(&r.inputs, bytes.size / 200 + 32))
    TFC_TRY(s, tfc_status_no_memory("reading a graph"));
  while (tfc_wire_next(&w, &f)) {
    if (f.type != TFC_WIRE_BYTES) continue;
    if (f.number == 1) {
      TFC_TRY(s, tfc_read_node(&r, f.bytes));
    } else if (f.number == 2) {
      if (!tfc_array_push(&libraries, f.bytes)) TFC_TRY(s, tfc_status_no_memory("reading a graph"));
    } else if (f.number == 4) {
      TFC_TRY(s, tfc_read_versions(g, f.bytes));
    }
  }
  if (w.error)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "after %zu nodes: %s (field %u of the graph, at byte %zu)", r.nodes.count,
             w.error, f.number, (size_t)(f.start - (const uint8_t *)bytes.data));
  TFC_TRY(s, tfc_node_reader_hand_over(&r, g));
  TFC_TRY(s, tfc_read_library(g, libraries.data, libraries.count));
  TFC_TRY(s, tfc_graph_resolve_nodes(g));
  TFC_TRY(s, tfc_check_nodes(g));
  TFC_TRY(s, tfc_graph_resolve_edges(g, r.inputs.data));
  TFC_TRY(s, tfc_graph_finish(g));
out:
  tfc_array_free(&libraries);
  tfc_node_reader_deinit(&r);
  return s;
}
