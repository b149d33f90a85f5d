#include "tests/common/train.h"

#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/common/example.h"

bool train_example(const char *name, const struct train_options *options) {
  struct example e;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_run_spec spec;
  assert_ok(example_load(name, &e));
  assert_ok(tfc_devices_open(options->devices ? options->devices : "cpu:0", NULL, 0, &set));
  struct tfc_session_options with = {.devices = &set, .no_rewrites = options->no_rewrites};
  assert_ok(tfc_session_create(e.graph, &with, &session));
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = &e.init, .target_count = 1}, NULL, NULL, NULL));
  example_spec(&e, &spec);
  spec.dynamic = options->dynamic;
  assert_ok(tfc_plan_create(session, &spec, &plan));
  bool is_static = tfc_plan_info(plan)->is_static;
  for (uint32_t i = 0; i < e.loss_count && (!options->steps || i < options->steps); i++) {
    struct tfc_tensor loss = {0};
    assert_ok(tfc_plan_run(plan, e.values[i % e.set_count], &loss, NULL));
    double got = *(float *)loss.data;
    if (getenv("VERBOSE"))
      printf("%s step %u: %.9g, TensorFlow %.9g, %.1f us\n", name, i, got, e.losses[i], tfc_plan_last_step_us(plan));
    if (!(fabs(got - e.losses[i]) <= (options->tolerance > 0 ? options->tolerance : 1e-4) * fabs(e.losses[i])))
      fail_msg("%s: step %u: loss %.9g, TensorFlow's %.9g", name, i, got, e.losses[i]);
    tfc_tensor_release(&loss);
  }
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  example_deinit(&e);
  return is_static;
}
