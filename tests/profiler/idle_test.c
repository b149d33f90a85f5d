// Tests idle time by cause, on made-up steps.
#include "tests/common/test.h"

#include "profiler/idle.h"

static void causes(void **state) {
  (void)state;
  // Device 0 runs 0..100 and 300..400; device 1 waits for a tensor that arrives 150..250, runs 260..280, and is done.
  struct tfc_profile_op ops[] = {{0, 100, 0, 0, 5, -1}, {260, 20, 1, 1, 5, -1}, {300, 100, 2, 0, 5, 130}};
  struct tfc_profile_transfer transfers[] = {{120, 60, 8, 0, 0}, {150, 100, 8, 1, 1}, {200, 20, 8, 2, 1}};
  struct tfc_profile_busy busy[2];
  struct tfc_step_profile p = {.duration_ns = 400};
  p.ops.data = ops, p.ops.count = 3;
  p.transfers.data = transfers, p.transfers.count = 3;
  p.busy.data = busy, p.busy.count = 2;
  const struct tfc_idle *idle[2] = {&busy[0].idle, &busy[1].idle};
  assert_ok(tfc_idle_find(&p, 0));
  assert_int_equal(idle[0]->work_ns, 200);
  assert_int_equal(idle[0]->launch_ns, 30); // launched 30 after the device was free
  assert_int_equal(idle[0]->transfer_ns, 50);
  assert_int_equal(idle[0]->dependency_ns, 120);
  assert_int_equal(idle[0]->end_ns, 0);
  assert_int_equal(idle[0]->launch_gaps, 1);
  assert_int_equal(idle[0]->longest_launch_gap_ns, 30);
  assert_int_equal(idle[1]->work_ns, 20);
  assert_int_equal(idle[1]->transfer_ns, 100); // overlapping transfers count once
  assert_int_equal(idle[1]->dependency_ns, 160);
  assert_int_equal(idle[1]->end_ns, 120);
  for (int d = 0; d < 2; d++)
    assert_int_equal(
        idle[d]->work_ns + idle[d]->launch_ns + idle[d]->transfer_ns + idle[d]->dependency_ns + idle[d]->end_ns, 400);
  ops[2].launched_ns = 1000;
  assert_ok(tfc_idle_find(&p, 0)); // the launch is later than the run, so only the gap counts
  assert_int_equal(idle[0]->launch_ns, 200);
  ops[2].launched_ns = -1;
  assert_ok(tfc_idle_find(&p, 0));
  assert_int_equal(idle[0]->launch_ns, 0);
}

// A single device waits for no other device, so gaps without a transfer are counted as launching.
static void alone(void **state) {
  (void)state;
  struct tfc_profile_op ops[] = {{10, 90, 0, 1, 5, 2}, {150, 50, 1, 1, 5, 20}};
  struct tfc_profile_transfer transfers[] = {{110, 20, 8, 0, 1}};
  struct tfc_profile_busy busy[2];
  struct tfc_step_profile p = {.duration_ns = 200};
  p.ops.data = ops, p.ops.count = 2;
  p.transfers.data = transfers, p.transfers.count = 1;
  p.busy.data = busy, p.busy.count = 2;
  assert_ok(tfc_idle_find(&p, 0));
  assert_int_equal(busy[1].idle.work_ns, 140);
  assert_int_equal(busy[1].idle.launch_ns, 10 + 30);
  assert_int_equal(busy[1].idle.transfer_ns, 20);
  assert_int_equal(busy[1].idle.dependency_ns, 0);
  assert_int_equal(busy[0].idle.end_ns, 200);
}

static void nothing(void **state) {
  (void)state;
  struct tfc_profile_busy busy[1];
  struct tfc_step_profile p = {.duration_ns = 70};
  p.busy.data = busy, p.busy.count = 1;
  assert_ok(tfc_idle_find(&p, 0));
  assert_int_equal(busy[0].idle.end_ns, 70);
  assert_int_equal(busy[0].idle.work_ns, 0);
}

// Gaps that the busy time has are not idle; the time before the first operation is, however short.
static void short_gaps(void **state) {
  (void)state;
  struct tfc_profile_op ops[] = {{10, 90, 0, 0, 5, 2}, {119, 31, 1, 0, 5, 105}, {170, 30, 2, 0, 5, -1}};
  struct tfc_profile_busy busy[2];
  struct tfc_step_profile p = {.duration_ns = 205};
  p.ops.data = ops, p.ops.count = 3;
  p.busy.data = busy, p.busy.count = 2;
  assert_ok(tfc_idle_find(&p, 20)); // the gaps are 10, 19, 20 and 5
  assert_int_equal(busy[0].idle.work_ns, 151);
  assert_int_equal(busy[0].idle.launch_ns, 10 + 20);
  assert_int_equal(busy[0].idle.end_ns, 5);
  assert_int_equal(busy[0].idle.launch_gaps, 2);
  assert_int_equal(busy[1].idle.end_ns, 205);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(short_gaps), cmocka_unit_test(causes), cmocka_unit_test(alone),
                                     cmocka_unit_test(nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
