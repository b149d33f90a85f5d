#include "tests/cuda_kernels/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/example.h"

tfc_status cuda_host_train(const char *name, uint32_t steps, struct cuda_host_census *out) {
  struct example e = {0};
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_run_spec init, spec;
  tfc_status s = NULL;
  cuda_host_census = (struct cuda_host_census){0};
  TFC_TRY(s, example_load(name, &e));
  TFC_TRY(s, tfc_devices_open("cpu:0", NULL, 0, &set));
  set.devices[0]->driver = cuda_host_driver();
  struct tfc_session_options with = {.devices = &set};
  TFC_TRY(s, tfc_session_create(e.graph, &with, &session));
  init = (struct tfc_run_spec){.targets = &e.init, .target_count = 1};
  if (steps) TFC_TRY(s, tfc_session_run(session, &init, NULL, NULL, NULL));
  example_spec(&e, &spec);
  TFC_TRY(s, tfc_plan_create(session, &spec, &plan));
  for (uint32_t i = 0; i < steps; i++) {
    struct tfc_tensor loss = {0};
    TFC_TRY(s, tfc_plan_run(plan, e.values[i % e.set_count], &loss, NULL));
    double got = *(float *)loss.data;
    tfc_tensor_release(&loss);
    if (getenv("VERBOSE")) printf("%s step %u: %.9g, TensorFlow's %.9g\n", name, i, got, e.losses[i]);
    if (!(fabs(got - e.losses[i]) <= 1e-4 * fabs(e.losses[i])))
      TFC_FAIL(s, TFC_INTERNAL, "%s: step %u: loss %.9g, TensorFlow's %.9g", name, i, got, e.losses[i]);
  }
  if (!steps) { // nothing has run, so the initialiser has not been planned yet
    tfc_plan_free(plan);
    plan = NULL;
    TFC_TRY(s, tfc_plan_create(session, &init, &plan));
  }
  *out = cuda_host_census;
out:
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  example_deinit(&e);
  return s;
}
