// Makes the order of operations, a topological order, in one of three ways. A given sequence (from the placer's
// simulation) is followed as far as dependencies allow; a legal one is followed exactly. A single device runs in the
// order of node ids, as the graph was written, with updates as soon as possible, which frees gradients early. Several
// devices get a list schedule: start times are simulated with estimated costs; operations with an order from outside go
// first, then those with the longest remaining path, then those with the lowest node id.
#include <math.h>
#include <stdlib.h>

#include "runtime/exec/order_heap.h"
#include "runtime/exec/plan/idle.h"
#include "runtime/exec/plan/plan_internal.h"

static uint32_t producer(const struct tfc_ir *ir, const struct tfc_ir_input *in) {
  return in->value == TFC_NONE ? TFC_NONE : ir->values.data[in->value].op;
}

tfc_status tfc_order_graph_make(const struct tfc_ir *ir, struct tfc_order_graph *g) {
  size_t n = ir->ops.count, total = ir->edges.count;
  for (size_t i = 0; i < n; i++) total += ir->ops.data[i].input_count;
  g->begin = calloc(n + 2, sizeof *g->begin);
  g->waiting = calloc(n + 1, sizeof *g->waiting);
  g->to = malloc((total + 1) * sizeof *g->to);
  if (!g->begin || !g->waiting || !g->to) return tfc_status_no_memory("planning a step");
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < n; i++) {
      const struct tfc_ir_op *op = &ir->ops.data[i];
      for (uint32_t k = 0; !op->dead && k < op->input_count; k++) {
        uint32_t from = producer(ir, &op->inputs[k]);
        if (from == TFC_NONE || from == i) continue;
        if (pass == 0) {
          g->begin[from + 2]++;
          g->waiting[i]++;
        } else {
          g->to[g->begin[from + 1]++] = (uint32_t)i;
        }
      }
    }
    for (size_t k = 0; k < ir->edges.count; k++) {
      struct tfc_ir_edge e = ir->edges.data[k];
      if (ir->ops.data[e.from].dead || ir->ops.data[e.to].dead) continue;
      if (pass == 0) {
        g->begin[e.from + 2]++;
        g->waiting[e.to]++;
      } else {
        g->to[g->begin[e.from + 1]++] = e.to;
      }
    }
    for (size_t v = 1; pass == 0 && v <= n; v++) g->begin[v + 1] += g->begin[v];
  }
  return NULL;
}

void tfc_order_graph_deinit(struct tfc_order_graph *g) {
  free(g->begin);
  free(g->to);
  free(g->waiting);
  *g = (struct tfc_order_graph){0};
}

// Makes a topological order by Kahn's algorithm: of the operations that are ready, the one with the smallest key is
// next.
static tfc_status by_keys(const struct tfc_ir *ir, struct tfc_order_graph *g, const double *keys, uint32_t *out,
                          uint32_t *count) {
  struct tfc_order_heap ready = {0};
  tfc_status s = NULL;
  for (size_t i = 0; i < ir->ops.count; i++)
    if (!ir->ops.data[i].dead && !g->waiting[i] &&
        !tfc_order_heap_push(&ready, (struct tfc_order_entry){keys[i], 0, (uint32_t)i}))
      TFC_TRY(s, tfc_status_no_memory("planning a step"));
  while (ready.count) {
    uint32_t i = tfc_order_heap_pop(&ready).id;
    out[(*count)++] = i;
    for (uint32_t k = g->begin[i]; k < g->begin[i + 1]; k++)
      if (--g->waiting[g->to[k]] == 0 &&
          !tfc_order_heap_push(&ready, (struct tfc_order_entry){keys[g->to[k]], 0, g->to[k]}))
        TFC_TRY(s, tfc_status_no_memory("planning a step"));
  }
out:
  tfc_order_heap_deinit(&ready);
  return s;
}

// Makes any topological order; returns the number of operations in it.
static uint32_t sort(const struct tfc_ir *ir, struct tfc_order_graph *g, uint32_t *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < ir->ops.count; i++)
    if (!ir->ops.data[i].dead && !g->waiting[i]) out[count++] = i;
  for (uint32_t next = 0; next < count; next++)
    for (uint32_t k = g->begin[out[next]]; k < g->begin[out[next] + 1]; k++)
      if (--g->waiting[g->to[k]] == 0) out[count++] = g->to[k];
  return count;
}

// Puts an operation that a rewrite added before all operations that wait for it: a packed weight before its first
// reader, a chain before the first reader of one of its values.
static tfc_status before_readers(const struct tfc_ir *ir, struct tfc_order_graph *g, double *keys) {
  tfc_status s = NULL;
  size_t n = ir->ops.count;
  uint32_t count = 0;
  uint32_t *topological = malloc((n + 1) * sizeof *topological), *waiting = malloc((n + 1) * sizeof *waiting);
  if (!topological || !waiting) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  memcpy(waiting, g->waiting, n * sizeof *waiting);
  count = sort(ir, g, topological);
  memcpy(g->waiting, waiting, n * sizeof *waiting);
  for (uint32_t i = count; i-- > 0;) {
    uint32_t id = topological[i];
    for (uint32_t k = g->begin[id]; k < g->begin[id + 1] && ir->ops.data[id].prepared; k++)
      if (!ir->ops.data[g->to[k]].joint) keys[id] = fmin(keys[id], keys[g->to[k]]);
  }
out:
  free(topological);
  free(waiting);
  return s;
}

// Puts an operation that receives a tensor from another task right before the first operation that needs it, because
// the device waits for the tensor. What updates with it can wait longest.
static void receives_late(const struct tfc_ir *ir, const struct tfc_order_graph *g, double *keys) {
  for (size_t i = 0; i < ir->ops.count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    if (op->dead || op->joint || !op->def || op->def->role != TFC_ROLE_RECEIVE) continue;
    keys[i] = INFINITY;
    for (uint32_t k = g->begin[i]; k < g->begin[i + 1]; k++)
      if (keys[g->to[k]] >= 0) keys[i] = fmin(keys[i], keys[g->to[k]]);
  }
}

// Returns the estimated time between the end of `from` and the start of `to`, which waits for it. If they are on
// different devices: 5 µs for each tensor, and its bytes at 10 GB/s.
static double transfer_us(const struct tfc_ir *ir, uint32_t from, uint32_t to) {
  const struct tfc_ir_op *a = &ir->ops.data[from], *b = &ir->ops.data[to];
  uint64_t bytes = 0;
  if (a->joint || b->joint || a->device == b->device) return 0;
  for (uint32_t m = 0; m < b->input_count; m++)
    if (producer(ir, &b->inputs[m]) == from) bytes += ir->values.data[b->inputs[m].value].bytes;
  return 5 + (double)bytes / 10e3;
}

// Makes a list schedule by the rules of the placer's simulation; each operation takes its cost_us.
static tfc_status by_schedule(const struct tfc_ir *ir, struct tfc_order_graph *g, const double *priority, uint32_t *out,
                              uint32_t *count) {
  tfc_status s = NULL;
  size_t n = ir->ops.count;
  double *remaining = calloc(n + 1, sizeof *remaining), *ready_at = calloc(n + 1, sizeof *ready_at);
  uint32_t *topological = malloc((n + 1) * sizeof *topological), *waiting = malloc((n + 1) * sizeof *waiting);
  bool *busy = calloc(ir->device_count, sizeof *busy);
  struct tfc_order_heap *ready = calloc(ir->device_count, sizeof *ready), events = {0};
  uint32_t topological_count = 0;
  if (!remaining || !ready_at || !topological || !waiting || !busy || !ready)
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  memcpy(waiting, g->waiting, n * sizeof *waiting);
  topological_count = sort(ir, g, topological);
  memcpy(g->waiting, waiting, n * sizeof *waiting);
  for (uint32_t i = topological_count; i-- > 0;) {
    uint32_t id = topological[i];
    double longest = ir->ops.data[id].tail_us;
    for (uint32_t k = g->begin[id]; k < g->begin[id + 1]; k++)
      if (remaining[g->to[k]] > longest) longest = remaining[g->to[k]];
    remaining[id] = longest + ir->ops.data[id].cost_us;
  }
  // Events: an operation becomes ready (tie 1, id) or ends (tie 0, id).
  for (size_t i = 0; i < n; i++)
    if (!ir->ops.data[i].dead && !g->waiting[i] &&
        !tfc_order_heap_push(&events, (struct tfc_order_entry){0, 1, (uint32_t)i}))
      TFC_TRY(s, tfc_status_no_memory("planning a step"));
  while (events.count) {
    double now = events.data[0].key;
    while (events.count && events.data[0].key == now) {
      struct tfc_order_entry e = tfc_order_heap_pop(&events);
      const struct tfc_ir_op *op = &ir->ops.data[e.id];
      if (e.tie > 0 && !op->joint) {
        double first = priority && !isnan(priority[op->node]) ? priority[op->node] : INFINITY;
        if (!tfc_order_heap_push(&ready[op->device], (struct tfc_order_entry){first, -remaining[e.id], e.id}))
          TFC_TRY(s, tfc_status_no_memory("planning a step"));
        continue;
      }
      if (op->joint)
        out[(*count)++] = e.id;
      else
        busy[op->device] = false;
      for (uint32_t k = g->begin[e.id]; k < g->begin[e.id + 1]; k++) {
        uint32_t to = g->to[k];
        double arrives = now + transfer_us(ir, e.id, to);
        if (arrives > ready_at[to]) ready_at[to] = arrives;
        if (--g->waiting[to] == 0 && !tfc_order_heap_push(&events, (struct tfc_order_entry){ready_at[to], 1, to}))
          TFC_TRY(s, tfc_status_no_memory("planning a step"));
      }
    }
    for (uint32_t d = 0; d < ir->device_count; d++) {
      if (busy[d] || !ready[d].count) continue;
      uint32_t id = tfc_order_heap_pop(&ready[d]).id;
      busy[d] = true;
      out[(*count)++] = id;
      if (!tfc_order_heap_push(&events, (struct tfc_order_entry){now + ir->ops.data[id].cost_us, 0, id}))
        TFC_TRY(s, tfc_status_no_memory("planning a step"));
    }
  }
out:
  for (uint32_t d = 0; ready && d < ir->device_count; d++) tfc_order_heap_deinit(&ready[d]);
  free(ready);
  tfc_order_heap_deinit(&events);
  free(remaining);
  free(ready_at);
  free(topological);
  free(waiting);
  free(busy);
  return s;
}

tfc_status tfc_order_replay(const struct tfc_ir *ir, const struct tfc_order_graph *g, const uint32_t *sequence,
                            uint32_t count, double *idle, bool *waits, double *out_us) {
  tfc_status s = NULL;
  double length = 0;
  double *ready = calloc(ir->ops.count + 1, sizeof *ready), *free_at = calloc(ir->device_count + 1, sizeof *free_at);
  if (!ready || !free_at) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < count; i++) {
    uint32_t id = sequence[i];
    const struct tfc_ir_op *op = &ir->ops.data[id];
    double end = ready[id];
    if (!op->joint) {
      if (idle) idle[i] = fmax(0, end - free_at[op->device]);
      end = free_at[op->device] = fmax(end, free_at[op->device]) + op->cost_us;
    }
    length = fmax(length, end);
    for (uint32_t k = g->begin[id]; k < g->begin[id + 1]; k++) {
      uint32_t to = g->to[k];
      if (waits) waits[to] = true;
      ready[to] = fmax(ready[to], end + transfer_us(ir, id, to));
    }
  }
  *out_us = length;
out:
  free(ready);
  free(free_at);
  return s;
}

tfc_status tfc_order_improve(const struct tfc_ir *ir, const uint32_t *sequence, uint32_t count, uint32_t **out_sequence,
                             uint32_t *out_count, bool *out_better) {
  tfc_status s = NULL;
  struct tfc_order_graph g = {0};
  size_t n = ir->ops.count;
  uint32_t *waiting = malloc((n + 1) * sizeof *waiting), *tried = malloc((n + 1) * sizeof *tried), *best = NULL;
  double *first = malloc((ir->graph->node_count + 1) * sizeof *first), best_us, us;
  if (!waiting || !tried || !first) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  TFC_TRY(s, tfc_order_graph_make(ir, &g));
  memcpy(waiting, g.waiting, n * sizeof *waiting);
  TFC_TRY(s, tfc_order_replay(ir, &g, sequence, count, NULL, NULL, &best_us));
  for (uint32_t i = 0; i < ir->graph->node_count; i++) first[i] = NAN;
  for (uint32_t i = count; i-- > 0;) first[ir->ops.data[sequence[i]].node] = i;
  for (int by_position = 0; by_position < 2; by_position++) {
    uint32_t tried_count = 0;
    memcpy(g.waiting, waiting, n * sizeof *waiting);
    TFC_TRY(s, by_schedule(ir, &g, by_position ? first : NULL, tried, &tried_count));
    if (tried_count != count) TFC_FAIL(s, TFC_INTERNAL, "%u of %u operations were ordered", tried_count, count);
    TFC_TRY(s, tfc_order_fill_idle(ir, &g, tried, tried_count));
    TFC_TRY(s, tfc_order_replay(ir, &g, tried, tried_count, NULL, NULL, &us));
    if (us >= best_us && best) continue;
    if (us < best_us) *out_better = true, best_us = us;
    uint32_t *other = best ? best : malloc((n + 1) * sizeof *other);
    if (!other) TFC_TRY(s, tfc_status_no_memory("planning a step"));
    best = tried, tried = other;
  }
  *out_sequence = best, best = NULL;
  *out_count = count;
out:
  tfc_order_graph_deinit(&g);
  free(waiting);
  free(tried);
  free(best);
  free(first);
  return s;
}

tfc_status tfc_order_make(const struct tfc_ir *ir, const struct tfc_run_spec *spec, uint32_t **out_sequence,
                          uint32_t *out_count) {
  tfc_status s = NULL;
  struct tfc_order_graph g = {0};
  size_t n = ir->ops.count;
  uint32_t count = 0, wanted = 0;
  uint32_t *sequence = malloc((n + 1) * sizeof *sequence);
  double *keys = malloc((n + ir->graph->node_count + 1) * sizeof *keys);
  if (!sequence || !keys) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  TFC_TRY(s, tfc_order_graph_make(ir, &g));
  bool one_device = true;
  uint32_t first_device = TFC_NONE;
  for (size_t i = 0; i < n; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    if (op->dead) continue;
    wanted++;
    if (op->joint) continue;
    if (first_device == TFC_NONE) first_device = op->device;
    one_device &= op->device == first_device;
  }
  if (spec->sequence) {
    double *by_node = keys + n;
    for (uint32_t i = 0; i < ir->graph->node_count; i++) by_node[i] = spec->sequence_count;
    for (uint32_t i = 0; i < spec->sequence_count; i++) {
      if (spec->sequence[i] >= ir->graph->node_count)
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the sequence names node %u of %u", spec->sequence[i], ir->graph->node_count);
      by_node[spec->sequence[i]] = i;
    }
    for (size_t i = 0; i < ir->fused.count; i++) { // a fused operation gets the latest position of its members
      struct tfc_ir_fused f = ir->fused.data[i];
      if (by_node[f.node] < spec->sequence_count) by_node[f.into] = fmax(by_node[f.into], by_node[f.node]);
    }
    for (size_t i = 0; i < n; i++) keys[i] = ir->ops.data[i].joint ? -1.0 : by_node[ir->ops.data[i].node];
    TFC_TRY(s, before_readers(ir, &g, keys));
    TFC_TRY(s, by_keys(ir, &g, keys, sequence, &count));
  } else if (one_device && !spec->order) {
    for (size_t i = 0; i < n; i++) {
      const struct tfc_ir_op *op = &ir->ops.data[i];
      const bool soon = op->joint || (op->def && (op->def->flags & TFC_OP_UPDATE || op->def->role == TFC_ROLE_SEND));
      keys[i] = soon ? -1.0 : (double)op->node;
    }
    receives_late(ir, &g, keys);
    TFC_TRY(s, by_keys(ir, &g, keys, sequence, &count));
  } else {
    TFC_TRY(s, by_schedule(ir, &g, spec->order, sequence, &count));
  }
  if (count != wanted) TFC_FAIL(s, TFC_INTERNAL, "%u of %u operations could not be ordered", wanted - count, wanted);
  if (!one_device) TFC_TRY(s, tfc_order_fill_idle(ir, &g, sequence, count));
  *out_sequence = sequence, sequence = NULL;
  *out_count = count;
out:
  free(sequence);
  free(keys);
  tfc_order_graph_deinit(&g);
  return s;
}
