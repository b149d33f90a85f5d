// Tests when a plan adapts: in which steps each of its two ways runs, which one is kept, and what is handed over to
// make the second. Step times are given; the second way is not made.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/exec/plan/lane_schedule.h"
#include "runtime/exec/plan/order.h"
#include "runtime/exec/plan/segments.h"

static struct {
  uint32_t laid_out, freed, asked, cores;
  double predicted, one_by_one; // what the schedule says
  bool better;                  // what the order says
  bool fails;                   // there is no second way
  uint64_t peak[2];             // its memory
  struct tfc_op_time times[8];
  double cost[8];
  const struct tfc_lane_schedule *lanes;
} fake;

static tfc_status fake_lay_out(struct tfc_plan *plan, const uint32_t *sequence, uint32_t count,
                               const struct tfc_lane_schedule *lanes) {
  assert_true(plan->borrows && sequence && count == 3);
  fake.laid_out++, fake.lanes = lanes;
  plan->info.peak_bytes = fake.peak;
  return fake.fails ? tfc_status_make(TFC_RESOURCE_EXHAUSTED, "no room") : NULL;
}
static tfc_status fake_schedule(const struct tfc_ir *ir, const struct tfc_op_time *times, uint32_t cores,
                                struct tfc_lane_schedule *out) {
  fake.asked++, fake.cores = cores;
  for (size_t i = 0; i < ir->ops.count; i++) fake.times[i] = times[i];
  *out =
      (struct tfc_lane_schedule){.predicted_us = fake.predicted, .one_by_one_us = fake.one_by_one, .sequence_count = 3};
  out->sequence = calloc(3, sizeof *out->sequence);
  return NULL;
}
static tfc_status fake_improve(const struct tfc_ir *ir, const uint32_t *sequence, uint32_t count, uint32_t **out,
                               uint32_t *out_count, bool *out_better) {
  (void)sequence;
  fake.asked++;
  for (size_t i = 0; i < ir->ops.count; i++) fake.cost[i] = ir->ops.data[i].cost_us;
  *out = calloc(3, sizeof **out), *out_count = count, *out_better = fake.better;
  return NULL;
}
#define tfc_plan_lay_out fake_lay_out
#define tfc_lane_schedule_make fake_schedule
#define tfc_order_improve fake_improve
#define tfc_plan_adapt_create own_create // the library has these, too
#define tfc_plan_adapt_begin own_begin
#define tfc_plan_adapt_end own_end
#define tfc_plan_adapt_free own_free
#define tfc_plan_in_lanes own_in_lanes
#define tfc_plan_in_another_order own_in_another_order
#include "runtime/exec/plan/adapt.c"

static void fake_free(struct tfc_plan *plan) {
  if (!plan) return;
  fake.freed++;
  tfc_resources_free(plan->step_resources);
  free(plan);
}

// A plan of three operations, whose numbers are not those of the segment's.
struct subject {
  struct tfc_device_driver driver[2];
  struct tfc_device device[2], *devices[2];
  struct tfc_planner planner;
  struct tfc_session session;
  struct tfc_plan plan;
  struct tfc_segment segments[2];
  uint32_t ops[3];
  uint64_t peak[2];
};
static void make(struct subject *s, uint32_t devices) {
  *s = (struct subject){.planner = {.free = fake_free}, .ops = {2, 0, 1}, .peak = {10, 20}};
  fake.laid_out = fake.freed = fake.asked = fake.cores = 0;
  fake.fails = fake.better = false, fake.lanes = NULL;
  fake.peak[0] = 30, fake.peak[1] = 40;
  for (uint32_t d = 0; d < 2; d++) {
    s->driver[d] = (struct tfc_device_driver){.kind = "cpu", .has_lanes = true};
    s->device[d].driver = &s->driver[d];
    s->device[d].info.cores = 4;
    s->devices[d] = &s->device[d];
  }
  s->session.planner = &s->planner;
  s->plan.session = &s->session;
  s->plan.ir.devices = s->devices, s->plan.ir.device_count = devices;
  for (uint32_t i = 0; i < 3; i++)
    assert_true(tfc_array_push(&s->plan.ir.ops, (struct tfc_ir_op){.node = i, .cost_us = 100 + i}));
  s->plan.segments = s->segments, s->plan.segment_count = devices, s->plan.submission_count = devices;
  s->segments[0].op_count = devices == 1 ? 3 : 1, s->segments[1].op_count = 2;
  s->plan.segment_ops = s->ops, s->plan.sequence = s->ops, s->plan.sequence_count = 3;
  s->plan.info.peak_bytes = s->peak;
}
static void end(struct subject *s) {
  own_free(s->plan.adaptation);
  tfc_array_free(&s->plan.ir.ops);
  tfc_arena_deinit(&s->plan.arena);
}
static void create(struct subject *s, tfc_adapt adapt) {
  assert_ok(own_create(&s->plan, &(struct tfc_run_spec){.adapt = adapt}));
}
// Runs a step that takes so long; whether it ran in the other way.
static bool step(struct subject *s, double us, double other_us) {
  struct tfc_plan *used = own_begin(&s->plan, NULL);
  used->last_step_us = used == &s->plan ? us : other_us;
  own_end(&s->plan, used, false);
  assert_true(s->plan.last_step_us == (used == &s->plan ? us : other_us));
  return used != &s->plan;
}

static void who_may(void **state) {
  (void)state;
  struct subject s;
  for (int k = 0; k < 8; k++) {
    make(&s, k == 7 ? 2 : 1);
    if (k == 1) s.device[0].info.cores = 1;
    if (k == 2) s.driver[0].has_lanes = false;
    if (k == 3) s.plan.segment_count = 2;
    if (k == 4) s.plan.submission_count = 2;
    if (k == 5) s.plan.own_arenas = (struct tfc_session_arena *)&s;
    if (k == 7) s.driver[1].has_lanes = false;
    create(&s, k == 6 ? TFC_ADAPT_OFF : TFC_ADAPT_WHERE_FASTER);
    assert_true((s.plan.adaptation != NULL) == (k == 0));
    end(&s);
  }
  make(&s, 2);
  s.device[0].info.cores = 1; // of several devices none needs several cores
  create(&s, TFC_ADAPT_WHERE_FASTER);
  assert_non_null(s.plan.adaptation);
  assert_true(s.segments[1].times == s.segments[0].times + 1);
  end(&s);
}

// After two steps in the first way come two in each, in turns; then the faster is kept, if it is 3 % faster.
static void turns(void **state) {
  (void)state;
  static const struct {
    double us[6], other_us[6];
    bool kept;
  } cases[] = {{{500, 500, 0, 500, 0, 500}, {0, 0, 480, 0, 480, 0}, true},
               {{500, 500, 0, 500, 0, 500}, {0, 0, 486, 0, 486, 0}, false},
               {{500, 500, 0, 480, 0, 500}, {0, 0, 470, 0, 470, 0}, false}, // the best step of the first way counts
               {{500, 480, 0, 500, 0, 500}, {0, 0, 470, 0, 470, 0}, false},
               {{500, 500, 0, 500, 0, 500}, {0, 0, 600, 0, 470, 0}, true}, // and so does the best of the other
               {{500, 500, 0, 500, 0, 500}, {0, 0, 470, 0, 600, 0}, true}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    struct subject s;
    make(&s, 1);
    fake.predicted = 400, fake.one_by_one = 500;
    create(&s, TFC_ADAPT_WHERE_FASTER);
    for (int i = 0; i < 3; i++) s.segments[0].times[i] = (struct tfc_op_time){(uint64_t)i + 1, 5, 6};
    for (int i = 0; i < 6; i++) {
      assert_true(step(&s, cases[k].us[i], cases[k].other_us[i]) == (i == 2 || i == 4));
      assert_true(own_in_lanes(&s.plan) == (i == 2 || i == 4) && !own_in_another_order(&s.plan));
      assert_int_equal(fake.asked, i >= 2);
    }
    assert_true(fake.laid_out == 1 && fake.cores == 4 && fake.lanes);
    for (int i = 0; i < 3; i++) assert_int_equal(fake.times[s.ops[i]].wall, i + 1); // by number, not by position
    assert_true(step(&s, 500, 500) == cases[k].kept && step(&s, 500, 500) == cases[k].kept);
    assert_int_equal(fake.freed, !cases[k].kept);
    assert_true(s.plan.refit == !cases[k].kept);
    assert_true(s.plan.info.peak_bytes == (cases[k].kept ? fake.peak : s.peak));
    assert_null(s.segments[0].times); // nothing is timed any more
    assert_int_equal(fake.asked, 1);
    end(&s);
    assert_int_equal(fake.freed, 1);
  }
}

// Steps that fail or that took no time do not count, and steps with a trace run in the first way.
static void what_counts(void **state) {
  (void)state;
  struct subject s;
  make(&s, 1);
  fake.predicted = 400, fake.one_by_one = 500;
  create(&s, TFC_ADAPT_WHERE_FASTER);
  for (int i = 0; i < 5; i++) {
    struct tfc_plan *used = own_begin(&s.plan, NULL);
    used->last_step_us = i % 2 ? 500 : 0;
    own_end(&s.plan, used, i % 2);
    assert_true(used == &s.plan && fake.asked == 0);
  }
  assert_false(step(&s, 500, 0));
  assert_false(step(&s, 500, 0));
  assert_true(step(&s, 0, 450));
  struct tfc_trace_sink *sink = (struct tfc_trace_sink *)&s;
  const struct tfc_run_options traced = {.trace = (void *)sink};
  for (int i = 0; i < 4; i++) {
    struct tfc_plan *used = own_begin(&s.plan, &traced);
    assert_true(used == &s.plan && !own_in_lanes(&s.plan));
    used->last_step_us = 500;
    own_end(&s.plan, used, false);
  }
  end(&s);
}

// A second way is made only if steps take more than 100 us, and the schedule says that it pays by 3 %.
static void what_is_tried(void **state) {
  (void)state;
  static const struct {
    double us, predicted, one_by_one;
    bool asked, made, fails;
  } cases[] = {{99, 40, 100, false, false, false},
               {101, 40, 100, true, true, false},
               {500, 98, 100, true, false, false},
               {500, 97, 100, true, true, false},
               {500, 40, 100, true, false, true}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    struct subject s;
    make(&s, 1);
    fake.predicted = cases[k].predicted, fake.one_by_one = cases[k].one_by_one, fake.fails = cases[k].fails;
    create(&s, TFC_ADAPT_WHERE_FASTER);
    step(&s, cases[k].us, 0), step(&s, cases[k].us, 0);
    assert_true(step(&s, cases[k].us, 60) == cases[k].made);
    assert_int_equal(fake.asked, cases[k].asked);
    if (!cases[k].made) {
      for (int i = 0; i < 5; i++) assert_false(step(&s, 500, 60));
      assert_int_equal(fake.asked, cases[k].asked);
      assert_null(s.segments[0].times);
    }
    end(&s);
  }
  struct subject s;
  make(&s, 1);
  fake.predicted = 900, fake.one_by_one = 100;
  create(&s, TFC_ADAPT_ALWAYS);
  step(&s, 5, 0), step(&s, 5, 0);
  for (int i = 0; i < 6; i++) assert_true(step(&s, 5, 900)); // for good
  assert_true(s.plan.info.peak_bytes == fake.peak);
  end(&s);
}

// On several devices the better order is used at once.
static void another_order(void **state) {
  (void)state;
  for (int k = 0; k < 5; k++) { // worse; better; worse, but always; too much memory; just enough
    struct subject s;
    make(&s, 2);
    fake.better = k == 1 || k > 2;
    const uint64_t most[] = {30, k == 3 ? 39 : 40};
    assert_ok(own_create(&s.plan, &(struct tfc_run_spec){.adapt = k == 2 ? TFC_ADAPT_ALWAYS : TFC_ADAPT_WHERE_FASTER,
                                                         .most_bytes = k > 2 ? most : NULL}));
    s.segments[0].times[0].wall = (uint64_t)llround(70e3 / tfc_ns_per_tick());
    s.segments[1].times[1].wall = (uint64_t)llround(40e3 / tfc_ns_per_tick());
    step(&s, 500, 0);
    assert_false(step(&s, 500, 0));
    const bool made = k != 0 && k != 3;
    for (int i = 0; i < 6; i++) {
      assert_true(step(&s, 500, 700) == made);
      assert_true(own_in_another_order(&s.plan) == made && !own_in_lanes(&s.plan));
    }
    assert_int_equal(fake.asked, 1);
    assert_true(!fake.lanes && (s.plan.info.peak_bytes == fake.peak) == made);
    // By the measured times; what was not timed keeps its estimate.
    assert_true(fabs(fake.cost[2] - 70) < 0.01 && fake.cost[0] == 100 && fabs(fake.cost[1] - 40) < 0.01);
    end(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(who_may), cmocka_unit_test(turns), cmocka_unit_test(what_counts),
                                     cmocka_unit_test(what_is_tried), cmocka_unit_test(another_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
