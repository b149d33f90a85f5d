// Tests the collector's profile of a step, the errors that make it refuse a step, and the costs and slowdowns from such
// profiles.
#include "tests/common/test.h"

#include <math.h>

#include "profiler/collector.h"
#include "profiler/cost_table.h"
#include "runtime/base/clock.h"

static uint64_t base;
static uint64_t at_us(double us) {
  return base + (uint64_t)(us * 1000 / tfc_ns_per_tick());
}
static void op(struct tfc_collector *c, uint16_t device, uint32_t node, double from_us, double to_us) {
  tfc_trace_add(&tfc_collector_sink(c)->buffers[device], TFC_TRACE_OP, node, device, at_us(from_us), at_us(to_us), 0);
}
static bool near(int64_t ns, double us) {
  return fabs((double)ns - 1000 * us) < 20;
}

static void test_a_step(void **state) {
  (void)state;
  base = tfc_ticks();
  struct tfc_collector *c = NULL;
  struct tfc_step_profile p = {0};
  assert_ok(tfc_collector_create(2, 8, &c));
  op(c, 1, 7, 30, 90);
  op(c, 0, 5, 10, 40);
  op(c, 0, 6, 40, 45);
  tfc_trace_add(&tfc_collector_sink(c)->copies[1], TFC_TRACE_TRANSFER, 3, 1, at_us(45), at_us(47), 64);
  tfc_trace_add(&tfc_collector_sink(c)->buffers[2], TFC_TRACE_ALLOCATE, 5, 0, at_us(0), at_us(0), 4096);
  tfc_trace_add(&tfc_collector_sink(c)->buffers[2], TFC_TRACE_STEP, 0, 0, at_us(0), at_us(99), 0);
  assert_ok(tfc_collector_drain(c, NULL, NULL, &p));
  assert_int_equal(p.ops.count, 3);
  assert_int_equal(p.ops.data[0].node, 5);
  assert_int_equal(p.ops.data[1].node, 7);
  assert_true(near(p.ops.data[1].start_ns, 20) && near(p.ops.data[1].duration_ns, 60));
  assert_true(near(p.duration_ns, 80)); // first op's start to last op's end, not the step record
  assert_true(near(p.busy.data[0].operations_ns, 35) && p.busy.data[0].operations == 2);
  assert_int_equal(p.transfers.count, 1);
  assert_true(near(p.transfers.data[0].start_ns, 35) && p.transfers.data[0].bytes == 64);
  assert_int_equal(p.allocated, 4096);
  for (int d = 0; d < 2; d++) {
    int64_t sum = 0;
    for (size_t i = 0; i < p.ops.count; i++)
      if ((int)p.ops.data[i].device == d) sum += p.ops.data[i].duration_ns;
    assert_true(sum == p.busy.data[d].operations_ns && sum <= p.busy.data[d].busy_ns);
    assert_true(p.busy.data[d].busy_ns <= p.duration_ns);
  }
  // Operations that wait for something outside of the step do not occupy a device.
  bool async[8] = {[7] = true};
  assert_ok(tfc_collector_drain(c, NULL, async, &p));
  assert_int_equal(p.ops.count, 2);
  tfc_step_profile_deinit(&p);
  tfc_collector_free(c);
}

static void test_what_is_no_measurement(void **state) {
  (void)state;
  base = tfc_ticks();
  struct tfc_collector *c = NULL;
  struct tfc_step_profile p = {0};
  assert_ok(tfc_collector_create(1, 2, &c));
  assert_fails(tfc_collector_drain(c, NULL, NULL, &p), TFC_ABORTED, "no operation");
  for (uint32_t i = 0; i < 3; i++) op(c, 0, i, i, i + 1);
  assert_fails(tfc_collector_drain(c, NULL, NULL, &p), TFC_ABORTED, "1 records found no room");
  assert_true(tfc_collector_make_room(c));
  assert_false(tfc_collector_make_room(c));
  tfc_collector_reset(c);
  for (uint32_t i = 0; i < 3; i++) op(c, 0, i, i, i + 1);
  assert_ok(tfc_collector_drain(c, NULL, NULL, &p));
  assert_int_equal(p.ops.count, 3);
  tfc_collector_reset(c);
  op(c, 0, 1, 20, 10);
  assert_fails(tfc_collector_drain(c, NULL, NULL, &p), TFC_ABORTED, "time stamps");
  tfc_collector_reset(c);
  tfc_trace_add(&tfc_collector_sink(c)->buffers[0], TFC_TRACE_OP, 4, 0, 0, at_us(1), 0);
  assert_fails(tfc_collector_drain(c, NULL, NULL, &p), TFC_ABORTED, "operation 4");
  tfc_collector_reset(c);
  op(c, 0, 1, 10, 30);
  op(c, 0, 2, 20, 40);
  assert_fails(tfc_collector_drain(c, NULL, NULL, &p), TFC_ABORTED, "operation 2 starts on device 0 while");
  tfc_collector_reset(c);
  tfc_trace_add(&tfc_collector_sink(c)->buffers[0], TFC_TRACE_OP, 4, 9, at_us(0), at_us(1), 0);
  assert_fails(tfc_collector_drain(c, NULL, NULL, &p), TFC_ABORTED, "device 9");
  tfc_step_profile_deinit(&p);
  tfc_collector_free(c);
}

static void test_costs(void **state) {
  (void)state;
  struct tfc_cost_table *t = NULL;
  assert_ok(tfc_cost_table_create(3, 2, &t));
  assert_true(isnan(tfc_cost_table_get(t, 0, 0).median_us));
  for (int i = 1; i <= 5; i++) assert_ok(tfc_cost_table_put(t, 1, 1, i));
  struct tfc_cost cost = tfc_cost_table_get(t, 1, 1);
  assert_true(cost.median_us == 3 && cost.q1_us == 2 && cost.fastest_us == 1 && cost.samples == 5);
  for (int i = 0; i < 200; i++)
    assert_ok(tfc_cost_table_put(t, 1, 1, 9)); // old samples are dropped, the fastest one is kept
  cost = tfc_cost_table_get(t, 1, 1);
  assert_true(cost.median_us == 9 && cost.fastest_us == 1 && cost.samples == 64);
  assert_fails(tfc_cost_table_put(t, 1, 1, NAN), TFC_ABORTED, "no measurement");
  assert_fails(tfc_cost_table_put(t, 3, 0, 1), TFC_ABORTED, "node 3");
  tfc_cost_table_free(t);
}

// Node 0 does the work of 1 and 2 as well: its time is divided in proportion to their own times.
static void test_fused_operations(void **state) {
  (void)state;
  struct tfc_cost_table *weights = NULL, *t = NULL;
  struct tfc_fusion fusion;
  uint32_t kinds[] = {0, 0}, done_by[] = {TFC_NONE, 0, 0, TFC_NONE};
  assert_ok(tfc_cost_table_create(4, 1, &weights));
  assert_ok(tfc_cost_table_create(4, 1, &t));
  // the fused nodes have the weights 1, 2 and 3
  for (uint32_t n = 0; n < 4; n++) assert_ok(tfc_cost_table_put(weights, n, 0, 1 + n));
  assert_ok(tfc_fusion_init(&fusion, done_by, 4, weights, NULL));
  struct tfc_profile_op ops[] = {{0, 12000, 0, 0, -1, -1}, {1000, 8000, 3, 1, -1, -1}};
  struct tfc_step_profile p = {.duration_ns = 12000, .ops = {ops, 2, 2}};
  assert_ok(tfc_cost_table_add(t, &p, kinds, 2, &fusion, (double[]){1, 2}));
  assert_true(tfc_cost_table_get(t, 0, 0).median_us == 2 && tfc_cost_table_get(t, 1, 0).median_us == 4 &&
              tfc_cost_table_get(t, 2, 0).median_us == 6);
  assert_true(tfc_cost_table_get(t, 3, 0).median_us == 4); // two devices were busy: half of 8
  tfc_fusion_deinit(&fusion);
  assert_ok(tfc_fusion_init(&fusion, NULL, 4, weights, NULL));
  tfc_fusion_deinit(&fusion);
  tfc_cost_table_free(weights);
  tfc_cost_table_free(t);
}

// Tests two fused groups, on devices of two kinds. One member also runs by itself, as a part of the operation that does
// its work.
static void test_two_groups(void **state) {
  (void)state;
  struct tfc_cost_table *weights = NULL, *t = NULL;
  struct tfc_fusion fusion;
  uint32_t kinds[] = {0, 1}, done_by[] = {TFC_NONE, 0, 0, 3, 3, 77};
  bool kept[] = {false, false, true, false, false, false};
  assert_ok(tfc_cost_table_create(6, 2, &weights));
  for (uint32_t n = 0; n < 6; n++) {
    assert_ok(tfc_cost_table_put(weights, n, 0, 2 * (n + 1)));
    assert_ok(tfc_cost_table_put(weights, n, 1, n + 1));
  }
  struct tfc_profile_op ops[] = {{0, 12000, 0, 1, -1, -1}, {0, 9000, 3, 0, -1, -1}, {9000, 7000, 5, 0, -1, -1}};
  struct tfc_step_profile p = {.duration_ns = 16000, .ops = {ops, 3, 3}};
  for (int weighted = 1; weighted >= 0; weighted--) {
    // 12 us are divided in the ratio 1 : 2 : 3, the last part is counted for the first node; 9 us in the ratio 8 : 10.
    // Without weights everything is counted for the first node.
    static const double expected[2][6] = {{12, 0, 0, 9, 0, 7}, {8, 4, 0, 4, 5, 7}};
    assert_ok(tfc_cost_table_create(6, 2, &t));
    assert_ok(tfc_fusion_init(&fusion, done_by, 6, weighted ? weights : NULL, kept));
    assert_ok(tfc_cost_table_add(t, &p, kinds, 2, &fusion, NULL));
    for (uint32_t n = 0; n < 6; n++) {
      const uint32_t kind = n < 3;
      assert_true(fabs(tfc_cost_table_get(t, n, kind).median_us - expected[weighted][n]) < 1e-5);
      assert_true(fabs(tfc_cost_table_fastest(t, n, kind) - expected[weighted][n]) < 1e-5);
      assert_int_equal(tfc_cost_table_get(t, n, !kind).samples, 0);
      assert_true(isnan(tfc_cost_table_fastest(t, n, !kind)));
    }
    tfc_fusion_deinit(&fusion);
    tfc_cost_table_free(t);
  }
  tfc_cost_table_free(weights);
}

// Of operations that begin at the same time the shorter comes first, then the smaller number.
static void test_order(void **state) {
  (void)state;
  base = tfc_ticks();
  struct tfc_collector *c = NULL;
  struct tfc_step_profile p = {0};
  assert_ok(tfc_collector_create(3, 8, &c));
  op(c, 2, 4, 10, 30);
  op(c, 1, 9, 10, 30);
  op(c, 0, 6, 10, 20);
  op(c, 0, 5, 20, 50);
  for (uint32_t i = 0; i < 3; i++)
    tfc_trace_add(&tfc_collector_sink(c)->copies[0], TFC_TRACE_TRANSFER, 8 - i, 0, at_us(15), at_us(16), 1);
  assert_ok(tfc_collector_drain(c, NULL, NULL, &p));
  static const uint32_t nodes[] = {6, 4, 9, 5}, moved[] = {6, 7, 8};
  for (int i = 0; i < 4; i++) assert_int_equal(p.ops.data[i].node, nodes[i]);
  for (int i = 0; i < 3; i++) assert_int_equal(p.transfers.data[i].id, moved[i]);
  tfc_step_profile_deinit(&p);
  tfc_collector_free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_step),     cmocka_unit_test(test_what_is_no_measurement),
                                     cmocka_unit_test(test_costs),      cmocka_unit_test(test_fused_operations),
                                     cmocka_unit_test(test_two_groups), cmocka_unit_test(test_order)};
  return cmocka_run_group_tests_name("collector", tests, NULL, NULL);
}
