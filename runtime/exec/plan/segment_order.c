// Says for each operation of a device which earlier ones of the same device it has to come after: those whose results
// it reads, those that ordering edges name, and those whose memory it overwrites. A driver that runs operations of a
// segment side by side keeps this order; one that runs them in the order of the segment need not look at it.
#include "runtime/exec/plan/segment_order.h"

#include <stdlib.h>

#include "runtime/exec/plan/memory_order.h"
#include "runtime/exec/plan/order.h"
#include "runtime/exec/plan/plan_internal.h"

struct finder {
  const struct tfc_ir *ir;
  const struct tfc_arrangement *a;
  tfc_memory_edge_list *edges;
  uint32_t *seen; // [ops] 1 + the item for which the operation was reached
  TFC_ARRAY(uint32_t) joints;
};

static bool reach(struct finder *f, uint32_t item, uint32_t op) {
  if (f->seen[op] == item + 1) return true;
  f->seen[op] = item + 1;
  if (f->ir->ops.data[op].joint) return tfc_array_push(&f->joints, op);
  const uint32_t to = f->a->item_of_op[op];
  if (to == TFC_NONE || f->a->items[to].queue != f->a->items[item].queue) return true;
  return tfc_array_push(f->edges, (struct tfc_memory_edge){item, to});
}

// Adds edges to the operations of the same queue that come directly after each one. Joints run nothing: what comes
// after them comes after all that they wait for.
static tfc_status by_graph(struct finder *f, const struct tfc_order_graph *g) {
  for (uint32_t i = 0; i < f->a->item_count; i++) {
    uint32_t op = f->a->items[i].op;
    if (op == TFC_NONE) continue;
    f->joints.count = 0;
    for (;;) {
      for (uint32_t e = g->begin[op]; e < g->begin[op + 1]; e++)
        if (!reach(f, i, g->to[e])) return tfc_status_no_memory("planning a step");
      if (!f->joints.count) break;
      op = f->joints.data[--f->joints.count];
    }
  }
  return NULL;
}

// Turns the list of edges into one list for each item, without edges that are there twice.
static tfc_status by_item(const struct tfc_arrangement *a, const tfc_memory_edge_list *edges, struct tfc_arena *arena,
                          struct tfc_item_order *out) {
  const uint32_t n = a->item_count;
  out->begin = TFC_ARENA_ARRAY(arena, uint32_t, n + 2u);
  out->end = TFC_ARENA_ARRAY(arena, uint32_t, n + 1u);
  out->from = TFC_ARENA_ARRAY(arena, uint32_t, edges->count + 1);
  if (!out->begin || !out->end || !out->from) return tfc_status_no_memory("planning a step");
  for (size_t e = 0; e < edges->count; e++) out->begin[edges->data[e].to + 1]++;
  for (uint32_t i = 0; i < n; i++) out->begin[i + 1] += out->begin[i];
  for (uint32_t i = 0; i < n; i++) out->end[i] = out->begin[i];
  for (size_t e = 0; e < edges->count; e++) {
    const struct tfc_memory_edge edge = edges->data[e];
    bool twice = false;
    for (uint32_t k = out->begin[edge.to]; k < out->end[edge.to]; k++) twice |= out->from[k] == edge.from;
    if (!twice) out->from[out->end[edge.to]++] = edge.from;
  }
  return NULL;
}

tfc_status tfc_item_order_make(const struct tfc_ir *ir, const struct tfc_arrangement *a,
                               const struct tfc_memory_plan *memory, struct tfc_arena *arena,
                               struct tfc_item_order *out) {
  tfc_status s = NULL;
  tfc_memory_edge_list edges = {0};
  struct tfc_order_graph g = {0};
  struct finder f = {.ir = ir, .a = a, .edges = &edges, .seen = calloc(ir->ops.count + 1u, sizeof *f.seen)};
  if (!f.seen) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  TFC_TRY(s, tfc_order_graph_make(ir, &g));
  TFC_TRY(s, by_graph(&f, &g));
  for (uint16_t d = 0; d < ir->device_count; d++) TFC_TRY(s, tfc_memory_order(ir, a, memory, d, &edges));
  TFC_TRY(s, by_item(a, &edges, arena, out));
out:
  tfc_order_graph_deinit(&g);
  tfc_array_free(&edges);
  tfc_array_free(&f.joints);
  free(f.seen);
  return s;
}
