// Adaptation: the first steps of a plan time each operation. From these times, a second way to run the same operations
// is made:
//
// - On one device of several cores, operations run side by side in lanes. If the schedule predicts enough gain, it
//   becomes a second plan from the same ir. The next steps run both plans in turns (a machine is disturbed for some
//   steps at a time), and the faster one is kept. Steps with a trace run one operation at a time, because a trace has
//   at most one operation of a device at any time.
// - On several devices, operations run in another order. A device runs its operations in a fixed order and waits for
//   the next one, so an order that was made from other times leaves it idle. The best order by the measured times is
//   used at once: its replay differs from the measured step by at most one per cent, so it need not be tried.
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/exec/plan/adapt.h"
#include "runtime/exec/plan/order.h"
#include "runtime/exec/plan/plan_internal.h"
#include "runtime/exec/plan/segments.h"

// `worth`: a plan in lanes is tried if it is predicted to take at most this share of the time, and kept if it takes
// less than this share when measured. `shortest_us`: only plans whose steps take longer than this adapt.
static const double worth = 0.97, shortest_us = 100;

struct tfc_adaptation {
  struct tfc_op_time *times; // [ops of the segments], in the plan's arena
  uint32_t steps;            // steps that were timed or tried
  bool settled, always, lanes;
  double first_us, second_us; // the best step of each of the two ways; 0: none yet
  struct tfc_plan *plan;      // the second way; NULL: not made, or dropped
  bool ran;                   // the operation ran in the last step
};

// Whether operations wait for other tasks. Then lanes pay even on one core: while one operation waits, others run.
static bool receives(const struct tfc_plan *plan) {
  for (size_t i = 0; i < plan->ir.ops.count; i++) {
    const struct tfc_ir_op *op = &plan->ir.ops.data[i];
    if (!op->dead && !op->joint && op->def && op->def->role == TFC_ROLE_RECEIVE) return true;
  }
  return false;
}

static bool can_adapt(const struct tfc_plan *plan) {
  const struct tfc_ir *ir = &plan->ir;
  for (uint32_t d = 0; d < ir->device_count; d++)
    if (!ir->devices[d]->driver->has_lanes) return false;
  if (ir->device_count > 1) return true;
  return (ir->devices[0]->info.cores > 1 || receives(plan)) && plan->submission_count == 1 && plan->segment_count == 1;
}

tfc_status tfc_plan_adapt_create(struct tfc_plan *plan, const struct tfc_run_spec *spec) {
  uint32_t count = 0, devices = plan->ir.device_count;
  if (spec->adapt == TFC_ADAPT_OFF || plan->own_arenas || !can_adapt(plan)) return NULL;
  for (uint32_t i = 0; i < plan->segment_count; i++) count += plan->segments[i].op_count;
  struct tfc_adaptation *a = calloc(1, sizeof *a);
  if (!a) return tfc_status_no_memory("planning a step");
  plan->adaptation = a;
  a->always = spec->adapt == TFC_ADAPT_ALWAYS;
  a->lanes = devices == 1;
  a->times = tfc_arena_zalloc(&plan->arena, sizeof *a->times * (count + 1u));
  if (spec->most_bytes) plan->most_bytes = TFC_ARENA_ARRAY(&plan->arena, uint64_t, devices);
  if (!a->times || (spec->most_bytes && !plan->most_bytes)) return tfc_status_no_memory("planning a step");
  for (uint32_t d = 0; d < devices && spec->most_bytes; d++) plan->most_bytes[d] = spec->most_bytes[d];
  for (uint32_t i = 0, at = 0; i < plan->segment_count; at += plan->segments[i++].op_count)
    plan->segments[i].times = a->times + at;
  return NULL;
}

static void settle(struct tfc_plan *plan, struct tfc_adaptation *a) {
  a->settled = true;
  for (uint32_t i = 0; i < plan->segment_count; i++) plan->segments[i].times = NULL;
}

// Makes a second plan of the same ir.
static tfc_status lay_out(struct tfc_plan *plan, const uint32_t *sequence, uint32_t count,
                          const struct tfc_lane_schedule *lanes) {
  tfc_status s = NULL;
  struct tfc_plan *made = calloc(1, sizeof *made);
  if (!made) return tfc_status_no_memory("planning a step");
  made->session = plan->session;
  made->borrows = true;
  made->ir = plan->ir;
  made->ground = plan->ground;
  made->feeds = plan->feeds, made->feed_count = plan->feed_count;
  made->feed_dtypes = plan->feed_dtypes, made->feed_shapes = plan->feed_shapes;
  made->fetch_count = plan->fetch_count, made->fetch_values = plan->fetch_values;
  made->uses_step_resources = plan->uses_step_resources;
  TFC_TRY(s, tfc_resources_create(&made->step_resources));
  TFC_TRY(s, tfc_plan_lay_out(made, sequence, count, lanes));
  for (uint32_t d = 0; d < plan->ir.device_count && plan->most_bytes; d++)
    if (made->info.peak_bytes[d] > plan->most_bytes[d])
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "%s: the other way needs more memory", plan->ir.devices[d]->info.name);
  plan->adaptation->plan = made, made = NULL;
out:
  if (made) made->session->planner->free(made);
  return s;
}

static tfc_status into_lanes(struct tfc_plan *plan, struct tfc_adaptation *a) {
  tfc_status s = NULL;
  const struct tfc_ir *ir = &plan->ir;
  struct tfc_lane_schedule schedule = {0};
  struct tfc_op_time *times = calloc(ir->ops.count + 1, sizeof *times);
  if (!times) TFC_TRY(s, tfc_status_no_memory("planning lanes"));
  for (uint32_t i = 0; i < plan->segments[0].op_count; i++) times[plan->segment_ops[i]] = a->times[i];
  TFC_TRY(s, tfc_lane_schedule_make(ir, times, ir->devices[0]->info.cores, &schedule));
  if (a->always || receives(plan) || schedule.predicted_us <= worth * schedule.one_by_one_us)
    TFC_TRY(s, lay_out(plan, schedule.sequence, schedule.sequence_count, &schedule));
out:
  tfc_lane_schedule_deinit(&schedule);
  free(times);
  return s;
}

static tfc_status in_another_order(struct tfc_plan *plan, struct tfc_adaptation *a) {
  tfc_status s = NULL;
  uint32_t *sequence = NULL, count = 0;
  bool better = false;
  for (uint32_t i = 0, at = 0; i < plan->segment_count; i++)
    for (uint32_t k = 0; k < plan->segments[i].op_count; k++, at++)
      if (a->times[at].wall) // until now the times are estimates
        plan->ir.ops.data[plan->segment_ops[at]].cost_us = (double)a->times[at].wall * tfc_ns_per_tick() * 1e-3;
  TFC_TRY(s, tfc_order_improve(&plan->ir, plan->sequence, plan->sequence_count, &sequence, &count, &better));
  if (better || a->always) TFC_TRY(s, lay_out(plan, sequence, count, NULL));
out:
  free(sequence);
  return s;
}

// Whether the next step runs the other plan, among the steps that are compared. Before that, operations are timed.
static bool tries_other(const struct tfc_adaptation *a) {
  return a->steps >= TFC_ADAPT_ORDER_STEPS && (!a->lanes || (a->steps - TFC_ADAPT_ORDER_STEPS) % 2 == 0);
}

struct tfc_plan *tfc_plan_adapt_begin(struct tfc_plan *plan, const struct tfc_run_options *options) {
  struct tfc_adaptation *a = plan->adaptation;
  a->ran = false;
  if (a->lanes && options && options->trace) return plan;
  if (!a->settled && !a->plan && a->steps == TFC_ADAPT_ORDER_STEPS) {
    // If the second plan cannot be made (because of too little memory, say), the step continues with the first one:
    // this is no error.
    if (a->always || a->first_us > shortest_us)
      tfc_status_free(a->lanes ? into_lanes(plan, a) : in_another_order(plan, a));
    if (!a->plan || !a->lanes || a->always) settle(plan, a);
    if (a->plan && !a->lanes) plan->info = a->plan->info; // that plan exists as long as this one
    if (a->plan && a->lanes && a->settled) plan->info.peak_bytes = a->plan->info.peak_bytes;
  }
  a->ran = a->plan && (a->settled || tries_other(a));
  return a->ran ? a->plan : plan;
}

void tfc_plan_adapt_end(struct tfc_plan *plan, struct tfc_plan *used, bool failed) {
  struct tfc_adaptation *a = plan->adaptation;
  plan->last_step_us = used->last_step_us;
  if (failed || a->settled || used->last_step_us <= 0 || tries_other(a) != (used != plan)) return;
  double *best = used == plan ? &a->first_us : &a->second_us;
  if (*best == 0 || used->last_step_us < *best) *best = used->last_step_us;
  if (++a->steps < TFC_ADAPT_STEPS || !a->lanes) return;
  settle(plan, a);
  if (a->second_us < worth * a->first_us) {
    plan->info.peak_bytes = a->plan->info.peak_bytes; // that plan exists as long as this one
  } else {
    plan->session->planner->free(a->plan);
    a->plan = NULL;
    plan->refit = true;
  }
}

void tfc_plan_adapt_free(struct tfc_adaptation *adaptation) {
  if (!adaptation) return;
  if (adaptation->plan) adaptation->plan->session->planner->free(adaptation->plan);
  free(adaptation);
}

bool tfc_plan_in_lanes(const struct tfc_plan *plan) {
  return plan->adaptation && plan->adaptation->lanes && plan->adaptation->ran;
}

bool tfc_plan_in_another_order(const struct tfc_plan *plan) {
  return plan->adaptation && !plan->adaptation->lanes && plan->adaptation->ran;
}
