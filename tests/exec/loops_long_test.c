// Graphs with loops train as TensorFlow trained them: frames, and functions with lists.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/common/example.h"

static void train(const char *name, const char *devices, const struct tfc_session_options *options, double tolerance,
                  uint32_t steps) {
  struct example e;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_run_spec spec;
  assert_ok(example_load(name, &e));
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  struct tfc_session_options with = *options;
  with.devices = &set;
  assert_ok(tfc_session_create(e.graph, &with, &session));
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = &e.init, .target_count = 1}, NULL, NULL, NULL));
  example_spec(&e, &spec);
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_false(tfc_plan_info(plan)->is_static);
  for (uint32_t i = 0; i < steps && i < e.loss_count; i++) {
    struct tfc_tensor loss = {0};
    assert_ok(tfc_plan_run(plan, e.values[i % e.set_count], &loss, NULL));
    double got = *(float *)loss.data;
    if (getenv("VERBOSE"))
      printf("%s step %u: %.9g, TensorFlow %.9g, %.1f us\n", name, i, got, e.losses[i], tfc_plan_last_step_us(plan));
    if (!(fabs(got - e.losses[i]) <= tolerance * fabs(e.losses[i])))
      fail_msg("%s: step %u: loss %.9g, TensorFlow's %.9g", name, i, got, e.losses[i]);
    tfc_tensor_release(&loss);
  }
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  example_deinit(&e);
}

static void nmt_while(void **state) {
  (void)state;
  train("nmt_while", "cpu:0", &(struct tfc_session_options){0}, 1e-4, 20);
}
static void nmt_while_v2(void **state) {
  (void)state;
  train("nmt_while_v2", "cpu:0", &(struct tfc_session_options){0}, 1e-4, 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nmt_while), cmocka_unit_test(nmt_while_v2)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
