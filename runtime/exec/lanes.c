// Whether a plan runs in lanes. Its first two steps run one operation at a time and time each; where a schedule of
// lanes promises enough, a second plan is laid out from the same ir, the next two steps run that, and the faster of the
// two ways stays. Steps with a trace run one operation at a time: a trace has one operation of a device at any time.
#include <stdlib.h>

#include "runtime/exec/plan_internal.h"

enum { TRIALS = TFC_LANES_TRIALS / 2 };
static const double worth = 0.97,
                    shortest_us = 100; // share of a step's time, promised and kept; steps that are looked at

struct tfc_plan_lanes {
  struct tfc_op_time *times; // [ops of the segment], in the plan's arena
  uint32_t steps;            // timed or tried
  bool settled, always;
  double one_by_one_us, side_by_side_us; // the best of each, 0: none yet
  struct tfc_plan *plan;                 // NULL: not laid out, or dropped
  bool ran;                              // the last step did
};

tfc_status tfc_plan_lanes_create(struct tfc_plan *plan, tfc_lanes_use use) {
  const struct tfc_ir *ir = &plan->ir;
  if (ir->device_count != 1 || !ir->devices[0]->driver->has_lanes || ir->devices[0]->info.cores < 2) return NULL;
  if (plan->submission_count != 1 || plan->segment_count != 1) return NULL;
  struct tfc_segment *segment = &plan->segments[0];
  struct tfc_plan_lanes *l = calloc(1, sizeof *l);
  if (!l) return TFC_PLAN_NO_MEMORY();
  plan->lanes = l;
  l->always = use == TFC_LANES_ALWAYS;
  l->times = tfc_arena_zalloc(&plan->arena, sizeof *l->times * (segment->op_count + 1u));
  if (!l->times) return TFC_PLAN_NO_MEMORY();
  segment->times = l->times;
  return NULL;
}

static tfc_status lay_out(struct tfc_plan *plan, struct tfc_plan_lanes *l) {
  tfc_status s = NULL;
  const struct tfc_ir *ir = &plan->ir;
  struct tfc_lane_schedule schedule = {0};
  struct tfc_plan *made = NULL;
  struct tfc_op_time *times = calloc(ir->ops.count + 1, sizeof *times);
  if (!times) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory planning lanes");
  for (uint32_t i = 0; i < plan->segments[0].op_count; i++) times[plan->segment_ops[i]] = l->times[i];
  TFC_TRY(s, tfc_lane_schedule_make(ir, times, ir->devices[0]->info.cores, &schedule));
  if (!l->always && schedule.predicted_us > worth * schedule.one_by_one_us) goto out;
  if (!(made = calloc(1, sizeof *made))) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory planning lanes");
  made->session = plan->session;
  made->borrows = true;
  made->ir = plan->ir;
  made->shapes = plan->shapes;
  made->feeds = plan->feeds, made->feed_count = plan->feed_count;
  made->feed_dtypes = plan->feed_dtypes, made->feed_shapes = plan->feed_shapes;
  made->fetch_count = plan->fetch_count, made->fetch_values = plan->fetch_values;
  made->uses_step_resources = plan->uses_step_resources;
  TFC_TRY(s, tfc_resources_create(&made->step_resources));
  TFC_TRY(s, tfc_plan_lay_out(made, schedule.sequence, schedule.sequence_count, &schedule));
  l->plan = made, made = NULL;
out:
  tfc_plan_free(made);
  tfc_lane_schedule_deinit(&schedule);
  free(times);
  return s;
}

static void settle(struct tfc_plan *plan, struct tfc_plan_lanes *l) {
  l->settled = true;
  plan->segments[0].times = NULL;
}

struct tfc_plan *tfc_plan_lanes_begin(struct tfc_plan *plan, const struct tfc_run_options *options) {
  struct tfc_plan_lanes *l = plan->lanes;
  l->ran = false;
  if (options && options->trace) return plan;
  if (!l->settled && l->steps == TRIALS) {
    // What cannot be laid out (for want of memory, say) is not run: that is no error of the step's.
    if (l->always || l->one_by_one_us > shortest_us) tfc_status_free(lay_out(plan, l));
    if (!l->plan) settle(plan, l);
  }
  l->ran = l->plan && (l->settled || l->steps >= TRIALS);
  return l->ran ? l->plan : plan;
}

void tfc_plan_lanes_end(struct tfc_plan *plan, struct tfc_plan *used, bool failed) {
  struct tfc_plan_lanes *l = plan->lanes;
  plan->last_step_us = used->last_step_us;
  if (failed || l->settled || used->last_step_us <= 0 || (l->steps >= TRIALS) != (used != plan)) return;
  double *best = used == plan ? &l->one_by_one_us : &l->side_by_side_us;
  if (*best == 0 || used->last_step_us < *best) *best = used->last_step_us;
  if (++l->steps < 2 * TRIALS) return;
  settle(plan, l);
  if (l->always || l->side_by_side_us < worth * l->one_by_one_us) {
    plan->info.peak_bytes = l->plan->info.peak_bytes; // that plan stays as long as this one
  } else {
    tfc_plan_free(l->plan);
    l->plan = NULL;
  }
}

void tfc_plan_lanes_free(struct tfc_plan_lanes *lanes) {
  if (!lanes) return;
  tfc_plan_free(lanes->plan);
  free(lanes);
}

bool tfc_plan_in_lanes(const struct tfc_plan *plan) {
  return plan->lanes && plan->lanes->ran;
}
