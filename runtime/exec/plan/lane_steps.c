// Lists for each lane of a device the operations of its segment in the planned order, and for each of them the
// operations that must end before it. Lanes may deviate from the planned order, so reused memory needs waits of its
// own (memory_order.c).
#include <stdlib.h>

#include "runtime/exec/plan/lane_steps.h"
#include "runtime/exec/plan/memory_order.h"
#include "runtime/exec/plan/order.h"
#include "runtime/exec/plan/plan_internal.h"

tfc_status tfc_lane_steps_make(const struct tfc_ir *ir, const struct tfc_arrangement *a,
                               const struct tfc_memory_plan *memory, const struct tfc_lane_schedule *by,
                               struct tfc_arena *arena, const struct tfc_lanes **out) {
  tfc_status s = NULL;
  tfc_memory_edge_list o = {0};
  struct tfc_order_graph g = {0};
  uint32_t n = by->sequence_count, *step_of_op = malloc((ir->ops.count + 1) * sizeof *step_of_op);
  if (!step_of_op) TFC_TRY(s, tfc_status_no_memory("planning lanes"));
  TFC_TRY(s, tfc_order_graph_make(ir, &g));
  TFC_TRY(s, tfc_memory_order(ir, a, memory, 0, &o));
  struct tfc_lanes *lanes = TFC_ARENA_NEW(arena, struct tfc_lanes);
  struct tfc_lane_step *steps = TFC_ARENA_ARRAY(arena, struct tfc_lane_step, n + 1);
  uint32_t *after = TFC_ARENA_ARRAY(arena, uint32_t, g.begin[ir->ops.count] + o.count + 1);
  if (!lanes || !steps || !after) TFC_TRY(s, tfc_status_no_memory("planning lanes"));
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
  for (size_t e = 0; e < o.count; e++) {
    steps[step_of_op[a->items[o.data[e].from].op]].after_count++;
    steps[step_of_op[a->items[o.data[e].to].op]].before++;
  }
  for (uint32_t i = 0, at = 0; i < n; i++) {
    uint32_t op = by->sequence[i], count = steps[i].after_count;
    steps[i].after_begin = at;
    steps[i].after_count = 0; // filled below
    for (uint32_t e = g.begin[op]; e < g.begin[op + 1]; e++) after[at + steps[i].after_count++] = step_of_op[g.to[e]];
    at += count;
  }
  for (size_t e = 0; e < o.count; e++) {
    struct tfc_lane_step *from = &steps[step_of_op[a->items[o.data[e].from].op]];
    after[from->after_begin + from->after_count++] = step_of_op[a->items[o.data[e].to].op];
  }
  *lanes = (struct tfc_lanes){by->lanes, n, steps, after};
  *out = lanes;
out:
  tfc_order_graph_deinit(&g);
  tfc_array_free(&o);
  free(step_of_op);
  return s;
}
