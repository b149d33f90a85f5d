// Cuts a graph into the parts of the tasks. Edges are sorted by source node; a binary search finds the first edge of a
// node.
#include "runtime/cluster/cut.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/none.h"
#include "runtime/cluster/common_order.h"
#include "runtime/cluster/tasks.h"
#include "runtime/exec/order_heap.h"
#include "runtime/graph/export.h"
#include "runtime/graph/op_def.h"
#include "runtime/graph/wire.h"
#include "runtime/ops/reference.h"

static bool same(struct tfc_output a, struct tfc_output b) {
  return a.node == b.node && a.index == b.index;
}

// Finds the edge that carries a tensor (or a control output) to the task `to`; TFC_NONE: there is none.
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
  return TFC_NONE;
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
      const struct tfc_cut_edge e = {{i, k->output}, cut->ranks[i], cut->ranks[k->node], 0, 0};
      bool known = false;
      if (e.from == e.to) continue;
      TFC_RETURN_IF_ERROR(check_type(cut, e.source, k->node));
      for (size_t j = first; j < cut->edges.count && !known; j++)
        known = same(cut->edges.data[j].source, e.source) && cut->edges.data[j].to == e.to;
      if (!known && !tfc_array_push(&cut->edges, e)) return tfc_status_no_memory("cutting a graph");
    }
  }
  return NULL;
}

// --- Loops -----------------------------------------------------------------------------------------------------------
uint32_t tfc_cut_loop_of(const struct tfc_cut *cut, uint32_t frame, uint32_t rank) {
  for (uint32_t i = 0; i < cut->loops.count; i++)
    if (cut->loops.data[i].frame == frame && cut->loops.data[i].rank == rank) return i;
  return TFC_NONE;
}

// Adds to a task its small loop for this loop, and one for each loop around it.
static bool add_loops(struct tfc_cut *cut, uint32_t frame, uint32_t rank) {
  for (; frame; frame = cut->frames.frames[frame].parent)
    if (tfc_cut_loop_of(cut, frame, rank) == TFC_NONE &&
        !tfc_array_push(&cut->loops, (struct tfc_cut_loop){frame, rank, TFC_NONE}))
      return false;
  return true;
}

static int by_source(const void *a, const void *b) {
  const struct tfc_cut_edge *x = a, *y = b;
  if (x->source.node != y->source.node) return x->source.node < y->source.node ? -1 : 1;
  if (x->source.index != y->source.index) return x->source.index < y->source.index ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

static tfc_status find_loops(struct tfc_cut *cut) {
  const struct tfc_graph *g = cut->graph;
  bool ok = true;
  if (!g->has_frames) return NULL;
  TFC_RETURN_IF_ERROR(tfc_frames_find(g, &cut->frames));
  for (size_t i = 0; i < cut->edges.count && ok; i++) {
    struct tfc_cut_edge *e = &cut->edges.data[i];
    e->frame = cut->frames.of_node[e->source.node];
    ok = add_loops(cut, e->frame, e->from) && add_loops(cut, e->frame, e->to);
  }
  // The array grows in this loop: a task that sends the condition needs a small loop, too.
  for (size_t i = 0; i < cut->loops.count && ok; i++) {
    const struct tfc_cut_loop *loop = &cut->loops.data[i];
    const uint32_t condition = cut->frames.frames[loop->frame].condition, to = loop->rank;
    if (condition == TFC_NONE)
      return tfc_status_make(TFC_UNIMPLEMENTED, "the loop '%.*s' runs in several tasks, and has no LoopCond",
                             TFC_STR_ARG(cut->frames.frames[loop->frame].name));
    const struct tfc_cut_edge e = {{condition, 0}, cut->ranks[condition], to, loop->frame, 0};
    bool known = e.from == to;
    for (size_t k = 0; k < cut->edges.count && !known; k++)
      known = same(cut->edges.data[k].source, e.source) && cut->edges.data[k].to == to;
    ok = (known || tfc_array_push(&cut->edges, e)) && add_loops(cut, e.frame, e.from);
  }
  if (!ok) return tfc_status_no_memory("cutting a graph");
  if (cut->edges.count) qsort(cut->edges.data, cut->edges.count, sizeof *cut->edges.data, by_source);
  for (size_t i = 0; i < cut->loops.count; i++) {
    struct tfc_cut_loop *loop = &cut->loops.data[i];
    const uint32_t condition = cut->frames.frames[loop->frame].condition;
    if (cut->ranks[condition] != loop->rank) loop->edge = edge_of(cut, (struct tfc_output){condition, 0}, loop->rank);
  }
  return NULL;
}

// --- The common order ------------------------------------------------------------------------------------------------
static tfc_status order_edges(struct tfc_cut *cut) {
  tfc_status s = NULL;
  struct tfc_order_heap edges = {0};
  if (!cut->edges.count) return NULL;
  uint32_t *position = calloc(cut->graph->node_count + 1u, sizeof *position);
  if (!position) TFC_TRY(s, tfc_status_no_memory("cutting a graph"));
  TFC_TRY(s, tfc_cluster_order(cut->graph, cut->ranks, (uint32_t)cut->spec->tasks.count, position));
  for (uint32_t e = 0; e < cut->edges.count; e++)
    if (!tfc_order_heap_push(&edges, (struct tfc_order_entry){position[cut->edges.data[e].source.node], e, e}))
      TFC_TRY(s, tfc_status_no_memory("cutting a graph"));
  for (uint32_t k = 0; edges.count; k++) cut->edges.data[tfc_order_heap_pop(&edges).id].order = k;
out:
  tfc_order_heap_deinit(&edges);
  free(position);
  return s;
}

tfc_status tfc_cut_make(const struct tfc_graph *g, const struct tfc_cluster_spec *spec, uint32_t own,
                        struct tfc_cut *out) {
  tfc_status s = NULL;
  struct tfc_cut cut = {.graph = g, .spec = spec};
  cut.ranks = calloc(g->node_count + 1u, sizeof *cut.ranks);
  if (!cut.ranks) TFC_TRY(s, tfc_status_no_memory("cutting a graph"));
  TFC_TRY(s, tfc_cluster_place(g, spec, own, cut.ranks));
  TFC_TRY(s, find_edges(&cut));
  TFC_TRY(s, find_loops(&cut));
  TFC_TRY(s, order_edges(&cut));
  *out = cut, cut = (struct tfc_cut){0};
out:
  tfc_cut_deinit(&cut);
  return s;
}

void tfc_cut_deinit(struct tfc_cut *cut) {
  free(cut->ranks);
  tfc_array_free(&cut->edges);
  tfc_array_free(&cut->loops);
  tfc_frames_deinit(&cut->frames);
  *cut = (struct tfc_cut){0};
}

// --- Writing the GraphDef of a part --------------------------------------------------------------------------------
const char *tfc_cut_send_name(uint32_t edge, char out[TFC_CUT_NAME]) {
  snprintf(out, TFC_CUT_NAME, "tfc.task/send_%u", edge);
  return out;
}
const char *tfc_cut_receive_name(uint32_t edge, char out[TFC_CUT_NAME]) {
  snprintf(out, TFC_CUT_NAME, "tfc.task/recv_%u", edge);
  return out;
}

// The nodes of a task's small loop: Enter, Merge, Switch and NextIteration of a value that is used only for being live
// or dead. GATE is live in all iterations except the last one, in which inner loops do not begin.
typedef enum loop_node { BEGIN, ENTER, MERGE, SWITCH, NEXT, GATE } loop_node;
static tfc_str loop_name(uint32_t loop, loop_node node, const char *before, const char *after, char out[TFC_CUT_NAME]) {
  static const char *const names[] = {"begin", "enter", "merge", "switch", "next", "gate"};
  snprintf(out, TFC_CUT_NAME, "%stfc.loop/%s_%u%s", before, names[node], loop, after);
  return tfc_str_from(out);
}
// Returns the name of the node that gives the loop's condition in this task.
static tfc_str condition_name(const struct tfc_cut *cut, const struct tfc_cut_loop *loop, char out[TFC_CUT_NAME]) {
  const struct tfc_graph *g = cut->graph;
  if (loop->edge == TFC_NONE) return g->nodes[cut->frames.frames[loop->frame].condition].name;
  snprintf(out, TFC_CUT_NAME, "tfc.loop/condition_%u", loop->edge);
  return tfc_str_from(out);
}

static void put(const char *op, tfc_str name, const tfc_str *inputs, uint32_t input_count, const struct tfc_attr *attrs,
                uint32_t attr_count, struct tfc_text *out) {
  tfc_graph_put_new_node(&(struct tfc_new_node){.op = op,
                                                .name = name,
                                                .inputs = inputs,
                                                .input_count = input_count,
                                                .attrs = attrs,
                                                .attr_count = attr_count},
                         out);
}

static void put_loop(const struct tfc_cut *cut, uint32_t k, struct tfc_text *out) {
  const struct tfc_cut_loop *loop = &cut->loops.data[k];
  const struct tfc_frame *frame = &cut->frames.frames[loop->frame];
  char a[TFC_CUT_NAME], b[TFC_CUT_NAME], c[TFC_CUT_NAME], d[TFC_CUT_NAME];
  bool yes = true;
  const struct tfc_tensor value = {.dtype = TFC_BOOL, .shape = TFC_SHAPE_SCALAR, .data = &yes, .size = 1};
  const struct tfc_attr type = tfc_attr_type("T", TFC_BOOL);
  const struct tfc_attr begins[] = {tfc_attr_type("dtype", TFC_BOOL), tfc_attr_tensor("value", &value)};
  const struct tfc_attr enters[] = {type, tfc_attr_string("frame_name", frame->name),
                                    tfc_attr_bool("is_constant", false),
                                    tfc_attr_int("parallel_iterations", frame->parallel)};
  const struct tfc_attr merges[] = {type, tfc_attr_int("N", 2)};
  const tfc_str condition = condition_name(cut, loop, d);
  tfc_str begin;
  if (frame->parent) {
    begin = loop_name(tfc_cut_loop_of(cut, frame->parent, loop->rank), GATE, "", ":1", a);
  } else {
    begin = loop_name(k, BEGIN, "", "", a);
    put("Const", begin, NULL, 0, begins, 2, out);
  }
  if (loop->edge != TFC_NONE) {
    const tfc_str received = tfc_str_from(tfc_cut_receive_name(loop->edge, b));
    put("LoopCond", condition, &received, 1, NULL, 0, out);
  }
  put("Enter", loop_name(k, ENTER, "", "", b), &begin, 1, enters, 4, out);
  const tfc_str merged[] = {tfc_str_from(b), loop_name(k, NEXT, "", "", c)};
  put("Merge", loop_name(k, MERGE, "", "", a), merged, 2, merges, 2, out);
  const tfc_str switched[] = {tfc_str_from(a), condition}, gated[] = {condition, condition};
  put("Switch", loop_name(k, SWITCH, "", "", b), switched, 2, &type, 1, out);
  const tfc_str next = loop_name(k, SWITCH, "", ":1", b);
  put("NextIteration", tfc_str_from(c), &next, 1, &type, 1, out);
  put("Switch", loop_name(k, GATE, "", "", a), gated, 2, &type, 1, out);
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
  char name[TFC_CUT_NAME], signal[TFC_CUT_NAME], merge[TFC_CUT_NAME], from[TFC_TASK_TEXT], to[TFC_TASK_TEXT];
  struct tfc_text source = {0};
  name_output(g, e->source, &source);
  tfc_str input = tfc_text_view(&source);
  snprintf(signal, sizeof signal, "tfc.task/done_%u", number);
  if (sends && control) { // a control edge is sent as a bool tensor when the node has run
    bool yes = true;
    const struct tfc_tensor value = {.dtype = TFC_BOOL, .shape = TFC_SHAPE_SCALAR, .data = &yes, .size = 1};
    const struct tfc_attr attrs[] = {tfc_attr_type("dtype", TFC_BOOL), tfc_attr_tensor("value", &value)};
    put("Const", tfc_str_from(signal), &input, 1, attrs, 2, out);
    input = tfc_str_from(signal);
  }
  const struct tfc_attr attrs[] = {
      tfc_attr_type(sends ? "T" : "tensor_type", dtype),
      tfc_attr_string("tensor_name", tfc_text_view(&source)),
      tfc_attr_string("send_device", tfc_str_from(tfc_cluster_task_name(cut->spec, e->from, from))),
      tfc_attr_int("send_device_incarnation", 1),
      tfc_attr_string("recv_device", tfc_str_from(tfc_cluster_task_name(cut->spec, e->to, to))),
      tfc_attr_int("_edge", number),
      tfc_attr_int("_order", e->order),
      tfc_attr_int("_peer", sends ? e->to : e->from),
      tfc_attr_bool("_copies", sends && tfc_output_may_change(g, e->source)),
  };
  tfc_str inputs[2];
  uint32_t count = 0;
  if (sends) inputs[count++] = input;
  if (e->frame) // inside a loop it runs once in each iteration
    inputs[count++] = loop_name(tfc_cut_loop_of(cut, e->frame, sends ? e->from : e->to), MERGE, "^", "", merge);
  put(sends ? "_Send" : "_Recv",
      tfc_str_from(sends ? tfc_cut_send_name(number, name) : tfc_cut_receive_name(number, name)), inputs, count, attrs,
      sizeof attrs / sizeof *attrs, out);
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
    const uint32_t edge = cut->ranks[o.node] == cut->ranks[node] ? TFC_NONE : edge_of(cut, o, cut->ranks[node]);
    char name[TFC_CUT_NAME];
    const bool condition = g->nodes[o.node].def && g->nodes[o.node].def->flags & TFC_OP_LOOP_COND;
    const uint32_t loop = condition && edge != TFC_NONE && o.index == 0
                              ? tfc_cut_loop_of(cut, cut->frames.of_node[o.node], cut->ranks[node])
                              : TFC_NONE;
    if (edge == TFC_NONE)
      name_output(g, o, &texts[k]);
    else if (loop != TFC_NONE)
      tfc_text_add(&texts[k], condition_name(cut, &cut->loops.data[loop], name));
    else
      tfc_text_printf(&texts[k], "%s%s", o.index < 0 ? "^" : "", tfc_cut_receive_name(edge, name));
    inputs[k] = tfc_text_view(&texts[k]);
    out->failed |= texts[k].failed;
  }
  if (inputs && texts) tfc_graph_put_node(g, node, inputs, count, out);
  const bool failed = !inputs || !texts;
  for (uint32_t k = 0; texts && k < count; k++) tfc_text_deinit(&texts[k]);
  free(texts);
  free(inputs);
  return failed ? tfc_status_no_memory("cutting a graph") : NULL;
}

tfc_status tfc_cut_write(const struct tfc_cut *cut, uint32_t rank, struct tfc_text *out) {
  for (uint32_t i = 0; i < cut->graph->node_count; i++)
    if (cut->ranks[i] == rank) TFC_RETURN_IF_ERROR(put_node(cut, i, out));
  for (uint32_t k = 0; k < cut->loops.count; k++)
    if (cut->loops.data[k].rank == rank) put_loop(cut, k, out);
  for (uint32_t e = 0; e < cut->edges.count; e++) {
    if (cut->edges.data[e].from == rank) put_crossing(cut, e, true, out);
    if (cut->edges.data[e].to == rank) put_crossing(cut, e, false, out);
  }
  tfc_graph_put_library(cut->graph, out);
  return out->failed ? tfc_status_no_memory("cutting a graph") : NULL;
}
