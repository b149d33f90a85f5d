// Lists for each lane of a device the operations of its segment in the planned order, and for each of them the
// operations that must end before it. Lanes may deviate from the planned order, so reused memory needs waits of its
// own: an operation that writes to a place waits for all operations that wrote or read it earlier in the planned order.
#include <stdlib.h>

#include "runtime/exec/plan/lane_steps.h"
#include "runtime/exec/plan/order.h"
#include "runtime/exec/plan/plan_internal.h"

struct user { // an item that uses a range of memory
  uint32_t item, next;
};
struct range { // [begin, end) with the item that wrote it, and the items that have read it since then
  uint64_t begin, end;
  uint32_t users; // TFC_NONE: the end
};
struct edge {
  uint32_t from, to; // items
};
struct orderer {
  const struct tfc_ir *ir;
  const struct tfc_arrangement *a;
  const struct tfc_memory_plan *memory;
  TFC_ARRAY(struct user) users;
  TFC_ARRAY(struct range) ranges; // by address, disjoint
  TFC_ARRAY(struct edge) edges;
  uint32_t *last; // [items] 1 + the last item for which an edge from it was added; 0: none
};

static size_t first_behind(const struct orderer *o, uint64_t address) {
  size_t low = 0, high = o->ranges.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (o->ranges.data[middle].end <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool use(struct orderer *o, struct range *r, uint32_t item) {
  if (!tfc_array_push(&o->users, (struct user){item, r->users})) return false;
  r->users = (uint32_t)o->users.count - 1;
  return true;
}

// Makes `item` wait for all earlier items that use the memory that it writes.
static bool write(struct orderer *o, uint32_t item, uint64_t begin, uint64_t end) {
  if (begin == end) return true;
  size_t at = first_behind(o, begin), upto = at;
  struct range left = {0}, right = {0}, own = {begin, end, TFC_NONE};
  for (; upto < o->ranges.count && o->ranges.data[upto].begin < end; upto++) {
    struct range r = o->ranges.data[upto];
    if (r.begin < begin) left = (struct range){r.begin, begin, r.users};
    if (r.end > end) right = (struct range){end, r.end, r.users};
    for (uint32_t u = r.users; u != TFC_NONE; u = o->users.data[u].next) {
      uint32_t from = o->users.data[u].item;
      if (from == item || o->last[from] == item + 1) continue;
      o->last[from] = item + 1;
      if (!tfc_array_push(&o->edges, (struct edge){from, item})) return false;
    }
  }
  if (!use(o, &own, item)) return false;
  struct range put[3];
  size_t count = 0, gone = upto - at;
  if (left.end) put[count++] = left;
  put[count++] = own;
  if (right.end) put[count++] = right;
  for (size_t k = gone; k < count; k++)
    if (!tfc_array_push(&o->ranges, own)) return false; // makes room at the end; the elements are moved below
  size_t behind = o->ranges.count - (count > gone ? count - gone : 0) - upto;
  memmove(o->ranges.data + at + count, o->ranges.data + upto, behind * sizeof own);
  memcpy(o->ranges.data + at, put, count * sizeof own);
  if (gone > count) o->ranges.count -= gone - count;
  return true;
}

static bool read(struct orderer *o, uint32_t item, uint64_t begin, uint64_t end) {
  for (size_t k = first_behind(o, begin); k < o->ranges.count && o->ranges.data[k].begin < end; k++)
    if (!use(o, &o->ranges.data[k], item)) return false;
  return true;
}

// Adds edges between items that use the same memory one after the other.
static tfc_status order_by_memory(struct orderer *o) {
  const struct tfc_ir *ir = o->ir;
  o->last = calloc(o->a->item_count + 1u, sizeof *o->last);
  if (!o->last) return TFC_PLAN_NO_MEMORY();
  for (uint32_t i = 0; i < o->a->item_count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[o->a->items[i].op];
    bool ok = true;
    for (uint32_t k = 0; k < op->output_count && ok; k++) {
      uint32_t v = op->outputs[k];
      if (v == TFC_NONE || ir->values.data[v].alias != TFC_NONE || o->memory->value_offset[v] == UINT64_MAX) continue;
      ok = write(o, i, o->memory->value_offset[v], o->memory->value_offset[v] + ir->values.data[v].bytes);
    }
    for (uint32_t k = 0; k < op->input_count && ok; k++) {
      uint32_t v = op->inputs[k].value;
      if (v == TFC_NONE || op->inputs[k].variable != TFC_NONE) continue;
      while (ir->values.data[v].alias != TFC_NONE) v = ir->values.data[v].alias;
      if (o->memory->value_offset[v] == UINT64_MAX) continue;
      ok = read(o, i, o->memory->value_offset[v], o->memory->value_offset[v] + ir->values.data[v].bytes);
    }
    if (!ok) return TFC_PLAN_NO_MEMORY();
  }
  return NULL;
}

tfc_status tfc_lane_steps_make(const struct tfc_ir *ir, const struct tfc_arrangement *a,
                               const struct tfc_memory_plan *memory, const struct tfc_lane_schedule *by,
                               struct tfc_arena *arena, const struct tfc_lanes **out) {
  tfc_status s = NULL;
  struct orderer o = {.ir = ir, .a = a, .memory = memory};
  struct tfc_order_graph g = {0};
  uint32_t n = by->sequence_count, *step_of_op = malloc((ir->ops.count + 1) * sizeof *step_of_op);
  if (!step_of_op) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory planning lanes");
  TFC_TRY(s, tfc_order_graph_make(ir, &g));
  TFC_TRY(s, order_by_memory(&o));
  struct tfc_lanes *lanes = TFC_ARENA_NEW(arena, struct tfc_lanes);
  struct tfc_lane_step *steps = TFC_ARENA_ARRAY(arena, struct tfc_lane_step, n + 1);
  uint32_t *after = TFC_ARENA_ARRAY(arena, uint32_t, g.begin[ir->ops.count] + o.edges.count + 1);
  if (!lanes || !steps || !after) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory planning lanes");
  for (uint32_t i = 0, item = 0; i < n; i++) {
    uint32_t op = by->sequence[i];
    bool joint = ir->ops.data[op].joint;
    step_of_op[op] = i;
    steps[i] = (struct tfc_lane_step){.op = joint ? TFC_NONE : item++,
                                      .lanes = joint ? 0 : by->helpers[op] | 1u << by->lane[op],
                                      .open = by->open[op],
                                      .before = g.waiting[op],
                                      .after_count = g.begin[op + 1] - g.begin[op]};
  }
  for (size_t e = 0; e < o.edges.count; e++) {
    steps[step_of_op[a->items[o.edges.data[e].from].op]].after_count++;
    steps[step_of_op[a->items[o.edges.data[e].to].op]].before++;
  }
  for (uint32_t i = 0, at = 0; i < n; i++) {
    uint32_t op = by->sequence[i], count = steps[i].after_count;
    steps[i].after_begin = at;
    steps[i].after_count = 0; // filled below
    for (uint32_t e = g.begin[op]; e < g.begin[op + 1]; e++) after[at + steps[i].after_count++] = step_of_op[g.to[e]];
    at += count;
  }
  for (size_t e = 0; e < o.edges.count; e++) {
    struct tfc_lane_step *from = &steps[step_of_op[a->items[o.edges.data[e].from].op]];
    after[from->after_begin + from->after_count++] = step_of_op[a->items[o.edges.data[e].to].op];
  }
  *lanes = (struct tfc_lanes){by->lanes, n, steps, after};
  *out = lanes;
out:
  tfc_order_graph_deinit(&g);
  tfc_array_free(&o.users);
  tfc_array_free(&o.ranges);
  tfc_array_free(&o.edges);
  free(o.last);
  free(step_of_op);
  return s;
}
