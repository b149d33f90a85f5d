// The small examples train as TensorFlow trained them: 20 losses each.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/common/example.h"

static void train(const char *name, const char *devices, const struct tfc_session_options *options, double tolerance,
                  uint32_t steps, bool dynamic) {
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
  spec.dynamic = dynamic;
  assert_ok(tfc_plan_create(session, &spec, &plan));
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

static void mlp(void **state) {
  (void)state;
  train("mlp", "cpu:0", &(struct tfc_session_options){0}, 1e-4, 20, false);
}
static void mlp_as_it_stands(void **state) {
  (void)state;
  train("mlp", "cpu:0", &(struct tfc_session_options){.no_rewrites = true}, 1e-4, 20, false);
}
static void mlp_emulated(void **state) {
  (void)state;
  train("mlp", "emu:0", &(struct tfc_session_options){0}, 1e-4, 20, false);
}
static void ridge(void **state) {
  (void)state;
  train("ridge", "cpu:0", &(struct tfc_session_options){0}, 1e-4, 20, false);
}
static void in_ready_order(void **state) {
  (void)state;
  train("mlp", "cpu:0", &(struct tfc_session_options){0}, 1e-4, 20, true);
  train("mlp", "emu:0", &(struct tfc_session_options){0}, 1e-4, 20, true);
  train("ridge", "cpu:0-1", &(struct tfc_session_options){0}, 1e-4, 20, true);
}
static void rnnlm(void **state) {
  (void)state;
  train("rnnlm", "cpu:0", &(struct tfc_session_options){0}, 1e-4, 4, false);
}
int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mlp),          cmocka_unit_test(mlp_as_it_stands),
      cmocka_unit_test(mlp_emulated), cmocka_unit_test(ridge),
      cmocka_unit_test(rnnlm),        cmocka_unit_test(in_ready_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
