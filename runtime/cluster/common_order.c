// A task receives a tensor only after it has sent all tensors that are earlier in the common order. So tasks wait for
// each other if the order is far from the one in which they compute the tensors. Therefore this order comes from a
// simulation: each task runs one node after another, and of the nodes that are ready it takes the one with the longest
// path to the end of the step. The order is that in which the nodes start. Times of nodes are estimates: a wrong
// estimate makes steps slower, but never wrong.
//
// The canonical order (runtime/exec/groundwork.h) decides which version of a variable each read sees. So each update
// has the same nodes before it and after it here as there, and the simulation orders only the nodes between two
// updates.
//
// runtime/exec/plan/order.c makes a similar schedule, of the operations of one task's plan. Here there is no plan yet:
// the order is made once for a session, before it is known which nodes a step runs.
#include "runtime/cluster/common_order.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/exec/order_heap.h"
#include "runtime/graph/op_def.h"

enum { UNKNOWN_DIM = 32 }; // assumed for each dimension of a placeholder that is unknown, as a batch often is

double tfc_cluster_node_us(const struct tfc_graph *g, uint32_t node, const struct tfc_shapes *shapes) {
  const struct tfc_node *n = &g->nodes[node];
  struct tfc_op_cost cost = {0};
  if (!n->def || n->def->flags & (TFC_OP_NOP | TFC_OP_VIEW | TFC_OP_VARIABLE)) return 0;
  (void)tfc_node_cost(g, n, shapes, &cost);
  return fmax(cost.flops / 50e3, cost.bytes / 10e3); // 50 GFLOP/s, 10 GB/s
}

struct ordering {
  const struct tfc_graph *g;
  const uint32_t *ranks;
  uint32_t tasks;
  uint32_t *waiting; // [node] number of inputs that are not computed yet
  uint32_t *order;   // the nodes in the canonical order
  uint32_t *epoch;   // [node] twice the number of updates before it in the canonical order; for an update, 1 more
  double *us;        // [node] an estimate of its time
  double *tail;      // [node] the time of the longest path that begins with the node, its own time included
};

static bool leads_back(const struct tfc_node *n) {
  return n->def && n->def->flags & TFC_OP_NEXT_ITERATION;
}
static bool is_update(const struct ordering *o, uint32_t node) {
  const struct tfc_op_def *def = o->g->nodes[node].def;
  return def && def->flags & TFC_OP_UPDATE;
}

// Among nodes that are ready, updates of variables come last.
static bool put(struct tfc_order_heap *ready, const struct ordering *o, uint32_t node, double tie) {
  return tfc_order_heap_push(ready, (struct tfc_order_entry){is_update(o, node), tie, node});
}

static void count_inputs(struct ordering *o) {
  const struct tfc_graph *g = o->g;
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    o->waiting[i] = 0;
    for (uint32_t k = 0; k < n->input_count + n->control_count; k++)
      o->waiting[i] += !leads_back(&g->nodes[tfc_node_inputs(g, n)[k].node]);
  }
}

// Finds the canonical order and the epochs.
static tfc_status find_epochs(struct ordering *o) {
  const struct tfc_graph *g = o->g;
  struct tfc_order_heap ready = {0};
  uint32_t updates = 0, count = 0;
  bool ok = true;
  count_inputs(o);
  for (uint32_t i = 0; i < g->node_count; i++)
    if (!o->waiting[i]) ok &= put(&ready, o, i, 0);
  while (ready.count && ok) {
    const uint32_t i = tfc_order_heap_pop(&ready).id;
    o->order[count++] = i;
    o->epoch[i] = 2 * updates + is_update(o, i);
    updates += is_update(o, i);
    if (leads_back(&g->nodes[i])) continue;
    for (uint32_t c = g->consumer_begin[i]; c < g->consumer_begin[i + 1]; c++) {
      const uint32_t to = g->consumers[c].node;
      if (--o->waiting[to] == 0) ok &= put(&ready, o, to, 0);
    }
  }
  tfc_order_heap_deinit(&ready);
  return ok ? NULL : tfc_status_no_memory("cutting a graph");
}

// Estimates the times of nodes and of the longest paths.
static tfc_status find_times(struct ordering *o) {
  const struct tfc_graph *g = o->g;
  tfc_status s = NULL;
  struct tfc_shapes shapes = {0};
  struct tfc_shape_override *given = calloc(g->node_count + 1u, sizeof *given);
  uint32_t count = 0;
  if (!given) return tfc_status_no_memory("cutting a graph");
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    const bool fed = n->def && n->def->flags & TFC_OP_PLACEHOLDER;
    const struct tfc_attr *a = fed ? tfc_node_attr(g, n, "shape") : NULL;
    if (!a || a->kind != TFC_ATTR_SHAPE || a->shape->rank < 0) continue;
    given[count] = (struct tfc_shape_override){.output = {i, 0}, .shape = *a->shape};
    for (int d = 0; d < a->shape->rank; d++)
      if (given[count].shape.dims[d] < 0) given[count].shape.dims[d] = UNKNOWN_DIM;
    count++;
  }
  TFC_TRY(s, tfc_infer_fed_shapes(g, given, count, &shapes));
  for (uint32_t i = 0; i < g->node_count; i++) o->us[i] = tfc_cluster_node_us(g, i, &shapes);
  for (uint32_t k = g->node_count; k-- > 0;) {
    const uint32_t i = o->order[k];
    o->tail[i] += o->us[i]; // until here it was the longest of the paths that begin with its consumers
    const struct tfc_output *in = tfc_node_inputs(g, &g->nodes[i]);
    for (uint32_t n = 0; n < g->nodes[i].input_count + g->nodes[i].control_count; n++)
      if (!leads_back(&g->nodes[in[n].node])) o->tail[in[n].node] = fmax(o->tail[in[n].node], o->tail[i]);
  }
out:
  tfc_shapes_deinit(&shapes);
  free(given);
  return s;
}

// Simulates a step in which all nodes run. started [node]: how many nodes start before it.
static tfc_status simulate(struct ordering *o, uint32_t *started) {
  const struct tfc_graph *g = o->g;
  struct tfc_order_heap *ready = calloc(o->tasks, sizeof *ready), ends = {0};
  bool *busy = calloc(o->tasks, sizeof *busy), ok = ready && busy;
  uint32_t count = 0;
  count_inputs(o);
  for (uint32_t i = 0; ok && i < g->node_count; i++)
    if (!o->waiting[i]) ok &= put(&ready[o->ranks[i]], o, i, -o->tail[i]);
  for (double now = 0; ok;) {
    for (uint32_t r = 0; r < o->tasks; r++) {
      if (busy[r] || !ready[r].count) continue;
      const uint32_t i = tfc_order_heap_pop(&ready[r]).id;
      started[i] = count++;
      busy[r] = true;
      ok &= tfc_order_heap_push(&ends, (struct tfc_order_entry){now + o->us[i], count, i});
    }
    if (!ends.count) break;
    const struct tfc_order_entry end = tfc_order_heap_pop(&ends);
    now = end.key;
    busy[o->ranks[end.id]] = false;
    if (leads_back(&g->nodes[end.id])) continue;
    for (uint32_t c = g->consumer_begin[end.id]; c < g->consumer_begin[end.id + 1]; c++) {
      const uint32_t to = g->consumers[c].node;
      if (--o->waiting[to] == 0) ok &= put(&ready[o->ranks[to]], o, to, -o->tail[to]);
    }
  }
  for (uint32_t r = 0; ready && r < o->tasks; r++) tfc_order_heap_deinit(&ready[r]);
  tfc_order_heap_deinit(&ends);
  free(ready), free(busy);
  return ok ? NULL : tfc_status_no_memory("cutting a graph");
}

tfc_status tfc_cluster_order(const struct tfc_graph *g, const uint32_t *ranks, uint32_t tasks, uint32_t *position) {
  tfc_status s = NULL;
  struct ordering o = {.g = g, .ranks = ranks, .tasks = tasks};
  struct tfc_order_heap all = {0};
  uint32_t *started = calloc(g->node_count + 1u, sizeof *started);
  o.waiting = calloc(g->node_count + 1u, sizeof *o.waiting);
  o.order = calloc(g->node_count + 1u, sizeof *o.order);
  o.epoch = calloc(g->node_count + 1u, sizeof *o.epoch);
  o.us = calloc(g->node_count + 1u, sizeof *o.us);
  o.tail = calloc(g->node_count + 1u, sizeof *o.tail);
  if (!started || !o.waiting || !o.order || !o.epoch || !o.us || !o.tail)
    TFC_TRY(s, tfc_status_no_memory("cutting a graph"));
  TFC_TRY(s, find_epochs(&o));
  TFC_TRY(s, find_times(&o));
  TFC_TRY(s, simulate(&o, started));
  for (uint32_t i = 0; i < g->node_count; i++)
    if (!tfc_order_heap_push(&all, (struct tfc_order_entry){o.epoch[i], started[i], i}))
      TFC_TRY(s, tfc_status_no_memory("cutting a graph"));
  for (uint32_t k = 0; all.count; k++) position[tfc_order_heap_pop(&all).id] = k;
out:
  tfc_order_heap_deinit(&all);
  free(started), free(o.waiting), free(o.order), free(o.epoch), free(o.us), free(o.tail);
  return s;
}
