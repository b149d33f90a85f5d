// The training steps of the examples with the CUDA kernels' source in place of the CPU's kernels: every operation has a
// kernel or is the host's, and the losses are TensorFlow's. With RATHER=name only that example; COUNT=n steps.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/example.h"
#include "tests/cuda_kernels/host.h"

static void check(const char *name, uint32_t steps) {
  struct example e;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_run_spec spec;
  if (getenv("RATHER") && strcmp(getenv("RATHER"), name)) return;
  if (getenv("COUNT")) steps = (uint32_t)atoi(getenv("COUNT"));
  cuda_host_census = (struct cuda_host_census){0};
  assert_ok(example_load(name, &e));
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &set));
  set.devices[0]->driver = cuda_host_driver();
  assert_ok(tfc_session_create(e.graph, &(struct tfc_session_options){.devices = &set, .no_rewrites = true}, &session));
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = &e.init, .target_count = 1}, NULL, NULL, NULL));
  example_spec(&e, &spec);
  assert_ok(tfc_plan_create(session, &spec, &plan));
  for (uint32_t i = 0; i < cuda_host_census.miss_count; i++) {
    const struct cuda_host_miss *m = &cuda_host_census.misses[i];
    print_message("%s: %u x %s of %s falls back: %s\n", name, m->count, m->op, m->type, m->reason);
  }
  for (uint32_t i = 0; i < steps; i++) {
    struct tfc_tensor loss = {0};
    assert_ok(tfc_plan_run(plan, e.values[i % e.set_count], &loss, NULL));
    double got = *(float *)loss.data;
    if (getenv("VERBOSE")) print_message("%s step %u: %.9g, TensorFlow's %.9g\n", name, i, got, e.losses[i]);
    if (!(fabs(got - e.losses[i]) <= 1e-4 * fabs(e.losses[i])))
      fail_msg("%s: step %u: loss %.9g, TensorFlow's %.9g", name, i, got, e.losses[i]);
    tfc_tensor_release(&loss);
  }
  print_message("%s: %u operations with a kernel, %u kinds fall back\n", name, cuda_host_census.rows,
                cuda_host_census.miss_count);
  assert_true(cuda_host_census.rows > 10);
  assert_int_equal(cuda_host_census.miss_count, 0);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  example_deinit(&e);
}

static void test_mlp(void **state) {
  (void)state;
  check("mlp", 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_mlp)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
