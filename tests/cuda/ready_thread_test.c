// Steps in ready order on a fake of the CUDA calls: launches return before their work is done, but the step ends only
// after it. The time of the step includes the work, and its status reports an error of the work.
#include "tests/common/test.h"

#include "runtime/base/clock.h"
#include "runtime/device/cuda/device.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "tests/common/cuda_fake.h"

enum { DELAY_NS = 20000000 };

static const char text[] =
    "node { name: 'v' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } }"
    "  attr { key: 'shape' value { shape { dim { size: 16 } } } } }"
    "node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor {"
    "  dtype: DT_FLOAT tensor_shape { dim { size: 16 } } float_val: 0.5 } } } }"
    "node { name: 'set' op: 'AssignVariableOp' input: 'v' input: 'c' attr { key: 'dtype' value { type: DT_FLOAT } } }";

static void targets_only(void **state) {
  (void)state;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  assert_ok(tfc_graph_parse(tfc_str_from(text), "ready", NULL, &g));
  assert_ok(tfc_devices_open("gpu:0-1", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  const uint32_t target = tfc_graph_find(g, TFC_STR("set"));
  const struct tfc_run_spec spec = {.targets = &target, .target_count = 1, .dynamic = true};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_plan_run(plan, NULL, NULL, NULL)); // allocates the variable
  tfc_cuda_fake_delay(DELAY_NS);
  for (int i = 0; i < 3; i++) {
    assert_ok(tfc_plan_run(plan, NULL, NULL, NULL));
    assert_true(tfc_plan_last_step_us(plan) >= DELAY_NS * 1e-3);
  }
  tfc_cuda_fake_fail_work(1, 700);
  assert_fails(tfc_plan_run(plan, NULL, NULL, NULL), TFC_UNAVAILABLE, "illegal memory access");
  tfc_cuda_fake_delay(0);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_cuda_fake_reset();
}

// Each call of a partial run ends when the work that it launched is done, and reports an error of that work.
static void partial(void **state) {
  (void)state;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_partial *p = NULL;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  assert_ok(tfc_graph_parse(tfc_str_from(text), "ready", NULL, &g));
  assert_ok(tfc_devices_open("gpu:0-1", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  const uint32_t target = tfc_graph_find(g, TFC_STR("set"));
  const struct tfc_run_spec spec = {.targets = &target, .target_count = 1};
  tfc_cuda_fake_delay(DELAY_NS);
  for (int fails = 0; fails < 2; fails++) {
    assert_ok(tfc_partial_begin(session, &spec, &p));
    if (fails) tfc_cuda_fake_fail_work(1, 700);
    const int64_t begin = tfc_now_ns();
    tfc_status s = tfc_partial_run(p, &(struct tfc_partial_call){0}, NULL, NULL);
    if (fails)
      assert_fails(s, TFC_UNAVAILABLE, "illegal memory access");
    else
      assert_ok(s);
    assert_true(fails || tfc_now_ns() - begin >= DELAY_NS);
    tfc_partial_end(p);
  }
  tfc_cuda_fake_delay(0);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_cuda_fake_reset();
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(targets_only), cmocka_unit_test(partial)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
