// Writes some nodes of a graph with other inputs. The runtime/cluster folder cuts a graph into parts with these
// functions.
#include "runtime/graph/export.h"
#include "runtime/graph/export_attr.h"
#include "runtime/graph/graph_internal.h"

static void put_inputs(struct tfc_text *out, const tfc_str *inputs, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) tfc_wire_put_bytes(out, 3, inputs[i]);
}

void tfc_graph_put_node(const struct tfc_graph *g, uint32_t node, const tfc_str *inputs, uint32_t count,
                        struct tfc_text *out) {
  const struct tfc_node *n = &g->nodes[node];
  struct tfc_text own = {0}, part = {0};
  tfc_str bytes = n->raw;
  if (!bytes.size) {
    tfc_wire_put_node(&own, g, n, n->device);
    bytes = tfc_text_view(&own);
  }
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f))
    if (f.number != 3 && f.number != 4) tfc_text_add(&part, (tfc_str){(const char *)f.start, (size_t)(w.at - f.start)});
  put_inputs(&part, inputs, count);
  if (n->device.size) tfc_wire_put_bytes(&part, 4, n->device);
  tfc_wire_put_bytes(out, 1, tfc_text_view(&part));
  out->failed |= own.failed | part.failed;
  tfc_text_deinit(&own);
  tfc_text_deinit(&part);
}

void tfc_graph_put_new_node(const struct tfc_new_node *n, struct tfc_text *out) {
  struct tfc_text part = {0};
  tfc_wire_put_bytes(&part, 1, n->name);
  tfc_wire_put_bytes(&part, 2, tfc_str_from(n->op));
  put_inputs(&part, n->inputs, n->input_count);
  if (n->device.size) tfc_wire_put_bytes(&part, 4, n->device);
  for (uint32_t i = 0; i < n->attr_count; i++) tfc_wire_put_attr(&part, 5, &n->attrs[i]);
  tfc_wire_put_bytes(out, 1, tfc_text_view(&part));
  out->failed |= part.failed;
  tfc_text_deinit(&part);
}

void tfc_graph_put_library(const struct tfc_graph *g, struct tfc_text *out) {
  const struct tfc_graph *library = g->library ? g->library : g;
  struct tfc_wire w = tfc_wire_of(library->source ? library->source->graph_def : (tfc_str){0});
  struct tfc_field f;
  bool versions = false;
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 1) continue;
    tfc_text_add(out, (tfc_str){(const char *)f.start, (size_t)(w.at - f.start)});
    versions |= f.number == 4;
  }
  if (versions) return;
  struct tfc_text v = {0};
  tfc_wire_put_int(&v, 1, 1645); // producer: TensorFlow 2.15
  tfc_wire_put_bytes(out, 4, tfc_text_view(&v));
  out->failed |= v.failed;
  tfc_text_deinit(&v);
}

tfc_status tfc_graph_set_devices(struct tfc_graph *g, const tfc_str *device) {
  for (uint32_t i = 0; i < g->node_count; i++) {
    const bool again = i && tfc_str_equal(device[i], device[i - 1]);
    const tfc_str copy = again ? g->nodes[i - 1].device : tfc_arena_str(&g->arena, device[i]);
    if (!copy.data) return tfc_status_no_memory("a graph's devices");
    g->nodes[i].device = copy;
  }
  return NULL;
}
