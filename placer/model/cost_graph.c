// The builder collects nodes and edges in any order; `finish` sorts the edges by (producer, output, consumer), so that
// the edges of a tensor, and its consumers, are consecutive, and orders the nodes topologically (Kahn).
#include "placer/model/cost_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"
#include "runtime/base/map.h"
#include "runtime/base/pattern.h"

struct built_node {
  tfc_str name, pin;
  uint64_t memory;
  double order;
  uint32_t group;
};
struct built_edge {
  uint32_t from, to;
  int32_t output;
  uint64_t bytes, live;
};
struct tfc_cost_builder {
  struct tfc_cost_graph *graph; // its arena owns the strings
  TFC_ARRAY(tfc_str) kinds;
  TFC_ARRAY(struct built_node) nodes;
  TFC_ARRAY(double) times; // [node][kind]; each row has room for `time_stride` kinds
  uint32_t time_stride;
  TFC_ARRAY(tfc_str) groups;
  TFC_ARRAY(struct built_edge) edges;
  struct tfc_strmap node_index, group_index;
};

tfc_status tfc_cost_builder_create(struct tfc_cost_builder **out) {
  struct tfc_cost_builder *b = calloc(1, sizeof *b);
  struct tfc_cost_graph *g = calloc(1, sizeof *g);
  if (!b || !g) {
    free(b), free(g);
    return tfc_status_no_memory("the cost graph");
  }
  b->graph = g;
  *out = b;
  return NULL;
}

void tfc_cost_builder_free(struct tfc_cost_builder *b) {
  if (!b) return;
  tfc_cost_graph_free(b->graph);
  tfc_array_free(&b->kinds);
  tfc_array_free(&b->nodes);
  tfc_array_free(&b->times);
  tfc_array_free(&b->groups);
  tfc_array_free(&b->edges);
  tfc_strmap_deinit(&b->node_index);
  tfc_strmap_deinit(&b->group_index);
  free(b);
}

tfc_status tfc_cost_builder_kind(struct tfc_cost_builder *b, tfc_str name, uint32_t *out_kind) {
  if (!name.size) return tfc_status_make(TFC_INVALID_ARGUMENT, "a kind of device has an empty name");
  for (size_t i = 0; i < b->kinds.count; i++)
    if (tfc_str_equal(b->kinds.data[i], name)) return *out_kind = (uint32_t)i, NULL;
  if (b->kinds.count >= 256) return tfc_status_make(TFC_INVALID_ARGUMENT, "more than 256 kinds of devices");
  if (b->kinds.count == b->time_stride) { // makes the rows wider
    uint32_t wide = b->time_stride ? 2 * b->time_stride : 4;
    double *times = malloc(sizeof(double) * wide * (b->nodes.count ? b->nodes.count : 1));
    if (!times) return tfc_status_no_memory("the cost graph");
    for (size_t n = 0; n < b->nodes.count; n++)
      for (uint32_t k = 0; k < wide; k++)
        times[n * wide + k] = k < b->time_stride ? b->times.data[n * b->time_stride + k] : NAN;
    free(b->times.data);
    b->times.data = times;
    b->times.count = b->times.capacity = wide * b->nodes.count;
    b->time_stride = wide;
  }
  tfc_str copy = tfc_arena_str(&b->graph->arena, name);
  if (!copy.data || !tfc_array_push(&b->kinds, copy)) return tfc_status_no_memory("the cost graph");
  *out_kind = (uint32_t)b->kinds.count - 1;
  return NULL;
}

tfc_status tfc_cost_builder_node(struct tfc_cost_builder *b, tfc_str name, uint32_t *out_node) {
  if (!name.size) return tfc_status_make(TFC_INVALID_ARGUMENT, "a node has an empty name");
  if (b->nodes.count >= UINT32_MAX / 4) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many nodes");
  tfc_str copy = tfc_arena_str(&b->graph->arena, name);
  if (!copy.data) return tfc_status_no_memory("the cost graph");
  bool found = false;
  if (!tfc_strmap_put(&b->node_index, copy, b->nodes.count, &found)) return tfc_status_no_memory("the cost graph");
  if (found) return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s': two nodes have this name", TFC_STR_ARG(name));
  struct built_node node = {.name = copy, .order = NAN, .group = TFC_NONE};
  size_t row = b->times.count;
  if (!tfc_array_push(&b->nodes, node) || !tfc_array_reserve(&b->times, row + b->time_stride))
    return tfc_status_no_memory("the cost graph");
  for (uint32_t k = 0; k < b->time_stride; k++) b->times.data[row + k] = NAN;
  b->times.count = row + b->time_stride;
  *out_node = (uint32_t)b->nodes.count - 1;
  return NULL;
}

tfc_status tfc_cost_builder_time(struct tfc_cost_builder *b, uint32_t node, uint32_t kind, double time_us) {
  if (!isfinite(time_us) || time_us < 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "node '%.*s': time_us on '%.*s' is %g: must be finite and not negative",
                           TFC_STR_ARG(b->nodes.data[node].name), TFC_STR_ARG(b->kinds.data[kind]), time_us);
  b->times.data[(size_t)node * b->time_stride + kind] = time_us + 0.0; // + 0.0 turns -0.0 into 0.0
  return NULL;
}

void tfc_cost_builder_memory(struct tfc_cost_builder *b, uint32_t node, uint64_t bytes) {
  b->nodes.data[node].memory = bytes;
}

tfc_status tfc_cost_builder_group(struct tfc_cost_builder *b, uint32_t node, tfc_str group) {
  tfc_str copy = tfc_arena_str(&b->graph->arena, group);
  bool found = false;
  uint64_t *index = copy.data ? tfc_strmap_put(&b->group_index, copy, b->groups.count, &found) : NULL;
  if (!index || (!found && !tfc_array_push(&b->groups, copy))) return tfc_status_no_memory("the cost graph");
  b->nodes.data[node].group = (uint32_t)*index;
  return NULL;
}

tfc_status tfc_cost_builder_pin(struct tfc_cost_builder *b, uint32_t node, tfc_str device) {
  tfc_str copy = tfc_arena_str(&b->graph->arena, device);
  if (!copy.data) return tfc_status_no_memory("the cost graph");
  b->nodes.data[node].pin = copy;
  return NULL;
}

tfc_status tfc_cost_builder_order(struct tfc_cost_builder *b, uint32_t node, double order) {
  if (!isfinite(order))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s': order must be a finite number",
                           TFC_STR_ARG(b->nodes.data[node].name));
  b->nodes.data[node].order = order + 0.0;
  return NULL;
}

tfc_status tfc_cost_builder_edge(struct tfc_cost_builder *b, uint32_t from, int32_t output, uint32_t to, uint64_t bytes,
                                 uint64_t live) {
  const tfc_str f = b->nodes.data[from].name, t = b->nodes.data[to].name;
  if (output < TFC_OUTPUT_CONTROL)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "edge '%.*s' -> '%.*s': output %d (-1 is a control dependency)",
                           TFC_STR_ARG(f), TFC_STR_ARG(t), (int)output);
  if (output == TFC_OUTPUT_CONTROL && bytes)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "edge '%.*s' -> '%.*s': a control dependency (output -1) has 0 bytes",
                           TFC_STR_ARG(f), TFC_STR_ARG(t));
  if (bytes > INT64_MAX || (live > INT64_MAX && live != TFC_LIVE_ABSENT))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "edge '%.*s' -> '%.*s': too many bytes", TFC_STR_ARG(f),
                           TFC_STR_ARG(t));
  struct built_edge edge = {from, to, output, bytes, live};
  if (!tfc_array_push(&b->edges, edge)) return tfc_status_no_memory("the cost graph");
  return NULL;
}

static int compare_edges(const void *a, const void *b) {
  const struct built_edge *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->output != y->output) return x->output < y->output ? -1 : 1;
  return (x->to > y->to) - (x->to < y->to);
}

// Sorts the edges and drops duplicates. All edges of one tensor get the same `live` (the bytes that the tensor occupies
// in memory): the value that was given with any of them, or TFC_LIVE_ABSENT if it was given with none. Two different
// values are an error.
static tfc_status settle_edges(struct tfc_cost_builder *b) {
  struct built_edge *e = b->edges.data;
  size_t kept = 0;
  if (b->edges.count) qsort(e, b->edges.count, sizeof *e, compare_edges);
  for (size_t i = 0, head = 0; i < b->edges.count; i++) { // head: the first edge of the current tensor
    bool same = kept && e[kept - 1].from == e[i].from && e[kept - 1].output == e[i].output;
    if (!same) head = kept;
    if (same && e[head].bytes != e[i].bytes)
      return tfc_status_make(TFC_INVALID_ARGUMENT,
                             "output %d of node '%.*s': edges disagree on bytes (%llu and %llu): it is one tensor",
                             (int)e[i].output, TFC_STR_ARG(b->nodes.data[e[i].from].name),
                             (unsigned long long)e[head].bytes, (unsigned long long)e[i].bytes);
    if (same && e[i].live != TFC_LIVE_ABSENT) {
      if (e[head].live != TFC_LIVE_ABSENT && e[head].live != e[i].live)
        return tfc_status_make(TFC_INVALID_ARGUMENT,
                               "output %d of node '%.*s': edges disagree on live (%llu and %llu): it is one tensor",
                               (int)e[i].output, TFC_STR_ARG(b->nodes.data[e[i].from].name),
                               (unsigned long long)e[head].live, (unsigned long long)e[i].live);
      e[head].live = e[i].live;
    }
    if (same && e[kept - 1].to == e[i].to) continue;
    e[kept++] = e[i];
  }
  b->edges.count = kept;
  return NULL;
}

// Kahn's algorithm: first come the nodes without producers, by index; each other node comes when its last producer has
// come.
static tfc_status order_topologically(struct tfc_cost_graph *g, uint32_t *order) {
  tfc_status s = NULL;
  uint32_t *waiting = calloc((size_t)g->node_count + 1, sizeof *waiting), count = 0;
  if (!waiting) return tfc_status_no_memory("the cost graph");
  for (uint32_t n = 0; n < g->node_count; n++) {
    waiting[n] = g->first_input[n + 1] - g->first_input[n];
    if (!waiting[n]) order[count++] = n;
  }
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t t = g->first_tensor[order[i]]; t < g->first_tensor[order[i] + 1]; t++)
      for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++)
        if (--waiting[g->consumer[c]] == 0) order[count++] = g->consumer[c];
  // goes backwards from a waiting node to waiting producers until it meets a node again: that node is on a cycle
  if (count < g->node_count) {
    uint32_t n = 0, steps = 0;
    while (!waiting[n]) n++;
    while (steps++ <= g->node_count) {
      for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++)
        if (waiting[g->producer[g->input[i]]]) {
          n = g->producer[g->input[i]];
          break;
        }
    }
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "node '%.*s' is on a cycle", TFC_STR_ARG(g->names[n]));
  }
out:
  free(waiting);
  return s;
}

tfc_status tfc_cost_builder_finish(struct tfc_cost_builder *b, struct tfc_cost_graph **out) {
  struct tfc_cost_graph *g = b->graph;
  struct tfc_arena *a = &g->arena;
  TFC_RETURN_IF_ERROR(settle_edges(b));
  size_t nodes = b->nodes.count, edges = b->edges.count, kinds = b->kinds.count, tensors = 0;
  if (!nodes) return tfc_status_make(TFC_INVALID_ARGUMENT, "the graph has no nodes");
  if (edges > UINT32_MAX / 2) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many edges");
  for (size_t i = 0; i < edges; i++)
    tensors += !i || b->edges.data[i].from != b->edges.data[i - 1].from ||
               b->edges.data[i].output != b->edges.data[i - 1].output;
  g->node_count = (uint32_t)nodes, g->kind_count = (uint32_t)kinds, g->group_count = (uint32_t)b->groups.count;
  g->tensor_count = (uint32_t)tensors, g->consumer_count = (uint32_t)edges;
  tfc_str *kind_names = TFC_ARENA_ARRAY(a, tfc_str, kinds), *names = TFC_ARENA_ARRAY(a, tfc_str, nodes);
  tfc_str *pins = TFC_ARENA_ARRAY(a, tfc_str, nodes), *groups = TFC_ARENA_ARRAY(a, tfc_str, b->groups.count);
  double *times = TFC_ARENA_ARRAY(a, double, nodes *kinds), *order = TFC_ARENA_ARRAY(a, double, nodes);
  uint64_t *memory = TFC_ARENA_ARRAY(a, uint64_t, nodes), *bytes = TFC_ARENA_ARRAY(a, uint64_t, tensors);
  uint64_t *live = TFC_ARENA_ARRAY(a, uint64_t, tensors);
  uint32_t *group = TFC_ARENA_ARRAY(a, uint32_t, nodes), *first_tensor = TFC_ARENA_ARRAY(a, uint32_t, nodes + 1);
  uint32_t *producer = TFC_ARENA_ARRAY(a, uint32_t, tensors);
  int32_t *output = TFC_ARENA_ARRAY(a, int32_t, tensors);
  uint32_t *first_consumer = TFC_ARENA_ARRAY(a, uint32_t, tensors + 1);
  uint32_t *consumer = TFC_ARENA_ARRAY(a, uint32_t, edges), *input = TFC_ARENA_ARRAY(a, uint32_t, edges);
  uint32_t *first_input = TFC_ARENA_ARRAY(a, uint32_t, nodes + 2), *topological = TFC_ARENA_ARRAY(a, uint32_t, nodes);
  if (!kind_names || !names || !pins || !groups || !times || !order || !memory || !bytes || !live || !group ||
      !first_tensor || !producer || !output || !first_consumer || !consumer || !input || !first_input || !topological)
    return tfc_status_no_memory("the cost graph");
  for (size_t k = 0; k < kinds; k++) kind_names[k] = b->kinds.data[k];
  for (size_t i = 0; i < b->groups.count; i++) groups[i] = b->groups.data[i];
  unsigned __int128 all_memory = 0;
  for (size_t n = 0; n < nodes; n++) {
    const struct built_node *node = &b->nodes.data[n];
    names[n] = node->name, pins[n] = node->pin, memory[n] = node->memory, order[n] = node->order;
    group[n] = node->group;
    all_memory += node->memory;
    for (size_t k = 0; k < kinds; k++) times[n * kinds + k] = b->times.data[n * b->time_stride + k];
  }
  uint32_t t = 0;
  for (size_t i = 0; i < edges; i++) {
    const struct built_edge *e = &b->edges.data[i];
    if (!i || e->from != e[-1].from || e->output != e[-1].output) {
      producer[t] = e->from, output[t] = e->output, bytes[t] = e->bytes;
      live[t] = e->live == TFC_LIVE_ABSENT ? 0 : e->live;
      g->has_live |= live[t] != 0;
      all_memory += 2 * (unsigned __int128)live[t];
      first_consumer[t++] = (uint32_t)i;
      first_tensor[e->from + 1]++;
    }
    consumer[i] = e->to;
    first_input[e->to + 2]++;
  }
  if (all_memory > INT64_MAX / 2) return tfc_status_make(TFC_INVALID_ARGUMENT, "the nodes' memory adds up to too much");
  first_consumer[t] = (uint32_t)edges;
  for (size_t n = 0; n < nodes; n++) {
    first_tensor[n + 1] += first_tensor[n];
    first_input[n + 2] += first_input[n + 1];
  }
  for (t = 0; t < tensors; t++)
    for (uint32_t c = first_consumer[t]; c < first_consumer[t + 1]; c++) input[first_input[consumer[c] + 1]++] = t;
  g->kind_names = kind_names, g->names = names, g->time_us = times, g->memory = memory, g->group = group;
  g->group_names = groups, g->pin = pins, g->order = order, g->first_tensor = first_tensor, g->producer = producer;
  g->output = output, g->bytes = bytes, g->live = live, g->first_consumer = first_consumer, g->consumer = consumer;
  g->first_input = first_input, g->input = input, g->topological = topological;
  TFC_RETURN_IF_ERROR(order_topologically(g, topological));
  *out = g;
  b->graph = NULL;
  return NULL;
}

void tfc_cost_graph_free(struct tfc_cost_graph *graph) {
  if (!graph) return;
  tfc_arena_deinit(&graph->arena);
  free(graph);
}

tfc_status tfc_cost_graph_find(const struct tfc_cost_graph *graph, tfc_str name, uint32_t *out_node) {
  for (uint32_t n = 0; n < graph->node_count; n++)
    if (tfc_str_equal(graph->names[n], name)) return *out_node = n, NULL;
  return tfc_status_make(TFC_INVALID_ARGUMENT, "there is no node '%.*s'", TFC_STR_ARG(name));
}

tfc_status tfc_cost_graph_pin(struct tfc_cost_graph *graph, const char *regex, tfc_str device, uint32_t *out_count) {
  tfc_status s = NULL;
  char why[160];
  uint32_t count = 0;
  tfc_str copy = tfc_arena_str(&graph->arena, device);
  struct tfc_pattern *pattern = tfc_pattern_make(regex, strlen(regex), why, sizeof why);
  if (!copy.data) TFC_TRY(s, tfc_status_no_memory("a pin"));
  if (!pattern) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "pin '%s': %s", regex, why);
  for (uint32_t n = 0; n < graph->node_count; n++) {
    if (!tfc_pattern_matches(pattern, graph->names[n].data, graph->names[n].size)) continue;
    if (graph->pin[n].data && !tfc_str_equal(graph->pin[n], device))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "pin '%s=%.*s': node '%.*s' is pinned to '%.*s' already", regex,
               TFC_STR_ARG(device), TFC_STR_ARG(graph->names[n]), TFC_STR_ARG(graph->pin[n]));
    graph->pin[n] = copy;
    count++;
  }
  if (!count) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "pin '%s': no node has such a name", regex);
  if (out_count) *out_count = count;
out:
  tfc_pattern_free(pattern);
  return s;
}
