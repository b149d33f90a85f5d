// Edges are sorted by source node; a binary search finds the first edge of a node.
#include "runtime/cluster/cut.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/cluster/tasks.h"
#include "runtime/graph/import.h"
#include "runtime/graph/op_def.h"
#include "runtime/graph/wire.h"
#include "runtime/ops/reference.h"
#include "runtime/pass/frames.h"

static bool same(struct tfc_output a, struct tfc_output b) {
  return a.node == b.node && a.index == b.index;
}

// The edge that carries a tensor (or a control output) to the task `to`; UINT32_MAX: there is none. Edges are sorted by
// source node.
static uint32_t edge_of(const struct tfc_cut *cut, struct tfc_output source, uint32_t to) {
  size_t low = 0, high = cut->edges.count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (cut->edges.data[middle].source.node < source.node)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < cut->edges.count && cut->edges.data[low].source.node == source.node; low++)
    if (same(cut->edges.data[low].source, source) && cut->edges.data[low].to == to) return (uint32_t)low;
  return UINT32_MAX;
}

static tfc_status check_type(const struct tfc_cut *cut, struct tfc_output o, uint32_t reader) {
  const tfc_dtype d = tfc_dtype_base(tfc_output_dtype(cut->graph, o));
  char a[TFC_TASK_TEXT], b[TFC_TASK_TEXT];
  if (o.index < 0 || (d != TFC_RESOURCE && d != TFC_VARIANT)) return NULL;
  const struct tfc_node *from = &cut->graph->nodes[o.node], *to = &cut->graph->nodes[reader];
  return tfc_status_make(
      TFC_INVALID_ARGUMENT, "'%.*s:%d' cannot leave its task: it is a %s, and '%.*s' on %s reads it on %s",
      TFC_STR_ARG(from->name), o.index, tfc_dtype_name(d), TFC_STR_ARG(to->name),
      tfc_cluster_task_name(cut->spec, cut->ranks[reader], a), tfc_cluster_task_name(cut->spec, cut->ranks[o.node], b));
}

static tfc_status find_edges(struct tfc_cut *cut) {
  const struct tfc_graph *g = cut->graph;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const size_t first = cut->edges.count;
    for (uint32_t c = g->consumer_begin[i]; c < g->consumer_begin[i + 1]; c++) {
      const struct tfc_consumer *k = &g->consumers[c];
      const struct tfc_cut_edge e = {{i, k->output}, cut->ranks[i], cut->ranks[k->node]};
      bool known = false;
      if (e.from == e.to) continue;
      TFC_RETURN_IF_ERROR(check_type(cut, e.source, k->node));
      for (size_t j = first; j < cut->edges.count && !known; j++)
        known = same(cut->edges.data[j].source, e.source) && cut->edges.data[j].to == e.to;
      if (!known && !tfc_array_push(&cut->edges, e))
        return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory: cutting a graph");
    }
  }
  return NULL;
}

// A loop has to run in one task: an error if a tensor inside of a loop goes to another task.
static tfc_status check_loops(const struct tfc_cut *cut) {
  const struct tfc_graph *g = cut->graph;
  struct tfc_frames frames = {0};
  tfc_status s = NULL;
  char a[TFC_TASK_TEXT], b[TFC_TASK_TEXT];
  if (!g->has_frames) return NULL;
  TFC_TRY(s, tfc_frames_find(g, &frames));
  for (size_t i = 0; i < cut->edges.count; i++) {
    const struct tfc_cut_edge *e = &cut->edges.data[i];
    const uint32_t frame = frames.of_node[e->source.node];
    if (!frame) continue;
    TFC_FAIL(s, TFC_UNIMPLEMENTED, "the loop '%.*s' runs in several tasks: '%.*s' of it is on %s, and is read on %s",
             TFC_STR_ARG(frames.frames[frame].name), TFC_STR_ARG(g->nodes[e->source.node].name),
             tfc_cluster_task_name(cut->spec, e->from, a), tfc_cluster_task_name(cut->spec, e->to, b));
  }
out:
  tfc_frames_deinit(&frames);
  return s;
}

tfc_status tfc_cut_make(const struct tfc_graph *g, const struct tfc_cluster_spec *spec, uint32_t own,
                        struct tfc_cut *out) {
  tfc_status s = NULL;
  struct tfc_cut cut = {.graph = g, .spec = spec};
  cut.ranks = calloc(g->node_count + 1u, sizeof *cut.ranks);
  if (!cut.ranks) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory: cutting a graph");
  TFC_TRY(s, tfc_cluster_place(g, spec, own, cut.ranks));
  TFC_TRY(s, find_edges(&cut));
  TFC_TRY(s, check_loops(&cut));
  *out = cut, cut = (struct tfc_cut){0};
out:
  tfc_cut_deinit(&cut);
  return s;
}

void tfc_cut_deinit(struct tfc_cut *cut) {
  free(cut->ranks);
  tfc_array_free(&cut->edges);
  *cut = (struct tfc_cut){0};
}

// --- Writing -------------------------------------------------------------------------------------------------------
const char *tfc_cut_send_name(uint32_t edge, char out[TFC_CUT_NAME]) {
  snprintf(out, TFC_CUT_NAME, "tfc.task/send_%u", edge);
  return out;
}
static const char *receive_name(uint32_t edge, char out[TFC_CUT_NAME]) {
  snprintf(out, TFC_CUT_NAME, "tfc.task/recv_%u", edge);
  return out;
}

static void name_output(const struct tfc_graph *g, struct tfc_output o, struct tfc_text *out) {
  const tfc_str name = g->nodes[o.node].name;
  out->size = 0;
  if (o.index < 0)
    tfc_text_printf(out, "^%.*s", TFC_STR_ARG(name));
  else if (o.index > 0)
    tfc_text_printf(out, "%.*s:%d", TFC_STR_ARG(name), o.index);
  else
    tfc_text_add(out, name);
}

static void put_crossing(const struct tfc_cut *cut, uint32_t number, bool sends, struct tfc_text *out) {
  const struct tfc_graph *g = cut->graph;
  const struct tfc_cut_edge *e = &cut->edges.data[number];
  const bool control = e->source.index < 0;
  const tfc_dtype dtype = control ? TFC_BOOL : tfc_dtype_base(tfc_output_dtype(g, e->source));
  char name[TFC_CUT_NAME], signal[TFC_CUT_NAME], from[TFC_TASK_TEXT], to[TFC_TASK_TEXT];
  struct tfc_text source = {0};
  name_output(g, e->source, &source);
  tfc_str input = tfc_text_view(&source);
  snprintf(signal, sizeof signal, "tfc.task/done_%u", number);
  if (sends && control) { // a control edge: sends a bool tensor when the node has run
    bool yes = true;
    const struct tfc_tensor value = {.dtype = TFC_BOOL, .shape = TFC_SHAPE_SCALAR, .data = &yes, .size = 1};
    const struct tfc_attr attrs[] = {tfc_attr_type("dtype", TFC_BOOL), tfc_attr_tensor("value", &value)};
    tfc_graph_put_new_node(&(struct tfc_new_node){.op = "Const",
                                                  .name = tfc_str_from(signal),
                                                  .inputs = &input,
                                                  .input_count = 1,
                                                  .attrs = attrs,
                                                  .attr_count = 2},
                           out);
    input = tfc_str_from(signal);
  }
  const struct tfc_attr attrs[] = {
      tfc_attr_type(sends ? "T" : "tensor_type", dtype),
      tfc_attr_string("tensor_name", tfc_text_view(&source)),
      tfc_attr_string("send_device", tfc_str_from(tfc_cluster_task_name(cut->spec, e->from, from))),
      tfc_attr_int("send_device_incarnation", 1),
      tfc_attr_string("recv_device", tfc_str_from(tfc_cluster_task_name(cut->spec, e->to, to))),
      tfc_attr_int("_edge", number),
      tfc_attr_int("_peer", sends ? e->to : e->from),
      tfc_attr_bool("_copies", sends && tfc_output_may_change(g, e->source)),
  };
  if (!sends) receive_name(number, name);
  tfc_graph_put_new_node(&(struct tfc_new_node){.op = sends ? "_Send" : "_Recv",
                                                .name = tfc_str_from(sends ? tfc_cut_send_name(number, name) : name),
                                                .inputs = &input,
                                                .input_count = sends,
                                                .attrs = attrs,
                                                .attr_count = sizeof attrs / sizeof *attrs},
                         out);
  out->failed |= source.failed;
  tfc_text_deinit(&source);
}

static tfc_status put_node(const struct tfc_cut *cut, uint32_t node, struct tfc_text *out) {
  const struct tfc_graph *g = cut->graph;
  const struct tfc_node *n = &g->nodes[node];
  const uint32_t count = n->input_count + n->control_count;
  tfc_str *inputs = calloc(count + 1u, sizeof *inputs);
  struct tfc_text *texts = calloc(count + 1u, sizeof *texts);
  for (uint32_t k = 0; inputs && texts && k < count; k++) {
    const struct tfc_output o = tfc_node_inputs(g, n)[k];
    const uint32_t edge = cut->ranks[o.node] == cut->ranks[node] ? UINT32_MAX : edge_of(cut, o, cut->ranks[node]);
    char name[TFC_CUT_NAME];
    if (edge == UINT32_MAX)
      name_output(g, o, &texts[k]);
    else
      tfc_text_printf(&texts[k], "%s%s", o.index < 0 ? "^" : "", receive_name(edge, name));
    inputs[k] = tfc_text_view(&texts[k]);
    out->failed |= texts[k].failed;
  }
  if (inputs && texts) tfc_graph_put_node(g, node, inputs, count, out);
  const bool failed = !inputs || !texts;
  for (uint32_t k = 0; texts && k < count; k++) tfc_text_deinit(&texts[k]);
  free(texts);
  free(inputs);
  return failed ? tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory: cutting a graph") : NULL;
}

tfc_status tfc_cut_write(const struct tfc_cut *cut, uint32_t rank, struct tfc_text *out) {
  for (uint32_t i = 0; i < cut->graph->node_count; i++)
    if (cut->ranks[i] == rank) TFC_RETURN_IF_ERROR(put_node(cut, i, out));
  for (uint32_t e = 0; e < cut->edges.count; e++) {
    if (cut->edges.data[e].from == rank) put_crossing(cut, e, true, out);
    if (cut->edges.data[e].to == rank) put_crossing(cut, e, false, out);
  }
  tfc_graph_put_library(cut->graph, out);
  return out->failed ? tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory: cutting a graph") : NULL;
}
