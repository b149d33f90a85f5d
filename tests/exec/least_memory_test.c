// Tests that steps in ready order hold little more memory than that of the tensors that are still to be read: examples
// train with memory for these, for their variables, and a little more. If an operation is delayed to save memory, it
// still reads the same values.
#include "tests/common/test.h"

#include <math.h>

#include "runtime/graph/import.h"
#include "tests/common/example.h"

#define IN(name) " input: \"" name "\""
#define NODE(name, op, ...) "node { name: \"" name "\" op: \"" op "\"" __VA_ARGS__ " }\n"
#define ATTR(key, value) " attr { key: \"" key "\" value { " value " } }"
#define FLOAT(key) ATTR(key, "type: DT_FLOAT")
#define NUMBER(name, value)                                                                                            \
  NODE(name, "Const", FLOAT("dtype") ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: " value " }"))
#define VARIABLE(name) NODE(name, "VariableV2", FLOAT("dtype") ATTR("shape", "shape {}"))

#ifdef TFC_SANITIZED
enum { STEPS = 2 };
#else
enum { STEPS = 3 };
#endif

static void train_in(const char *name, uint64_t bytes) {
  struct example e;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_run_spec spec;
  assert_ok(example_load(name, &e));
  assert_ok(tfc_devices_open("cpu:0", &(struct tfc_memory_limit){"cpu:*", bytes}, 1, &set));
  assert_ok(tfc_session_create(e.graph, &(struct tfc_session_options){.devices = &set}, &session));
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = &e.init, .target_count = 1}, NULL, NULL, NULL));
  example_spec(&e, &spec);
  assert_ok(tfc_plan_create(session, &spec, &plan));
  for (int i = 0; i < STEPS; i++) {
    struct tfc_tensor loss = {0};
    assert_ok(tfc_plan_run(plan, e.values[(uint32_t)i % e.set_count], &loss, NULL));
    assert_true(fabs(*(float *)loss.data / e.losses[i] - 1) < 1e-4);
    tfc_tensor_release(&loss);
  }
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  example_deinit(&e);
}

// The variables of each example need 52.1 MB, and memory that its initialiser used holds 4.1 MB more until the second
// step. When this was written, a step of the two examples needed 23.2 and 23.6 MB of tensors; 13.3 MB of these are
// gradients, which are all held until their norm is known.
static void test_examples(void **state) {
  (void)state;
#ifndef TFC_SANITIZED
  train_in("nmt_while", 80500000);
#endif
  train_in("nmt_while_v2", 80500000);
}

// Only an update reads "twice". A second update writes the variable that "twice" reads, and no edge orders the two. The
// second update must run after "twice", as it would if "twice" ran as soon as it can.
static void test_old_values(void **state) {
  (void)state;
  static const char text[] = VARIABLE("v") VARIABLE("w") NUMBER("one", "1") NUMBER("two", "2")
      NODE("init_v", "Assign", IN("v") IN("one") FLOAT("T")) NODE("init_w", "Assign", IN("w") IN("one") FLOAT("T"))
          NODE("read", "Identity", IN("v") FLOAT("T")) NODE("twice", "Mul", IN("read") IN("two") FLOAT("T"))
              NODE("set", "Assign", IN("w") IN("twice") FLOAT("T"))
                  NODE("add", "AssignAdd", IN("v") IN("one") FLOAT("T"));
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_tensor value[2] = {{0}};
  assert_ok(tfc_graph_parse(tfc_str_from(text), "values", NULL, &g));
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  uint32_t init[2] = {tfc_graph_find(g, TFC_STR("init_v")), tfc_graph_find(g, TFC_STR("init_w"))};
  uint32_t step[2] = {tfc_graph_find(g, TFC_STR("set")), tfc_graph_find(g, TFC_STR("add"))};
  struct tfc_output fetches[2] = {{tfc_graph_find(g, TFC_STR("v")), 0}, {tfc_graph_find(g, TFC_STR("w")), 0}};
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = init, .target_count = 2}, NULL, NULL, NULL));
  for (int i = 0; i < 3; i++) {
    struct tfc_run_spec spec = {.targets = step, .target_count = 2, .dynamic = true};
    assert_ok(tfc_session_run(session, &spec, NULL, NULL, NULL));
    assert_ok(
        tfc_session_run(session, &(struct tfc_run_spec){.fetches = fetches, .fetch_count = 2}, NULL, value, NULL));
    assert_true(*(float *)value[0].data == (float)(i + 2));
    assert_true(*(float *)value[1].data == (float)(2 * i + 2));
    tfc_tensor_release(&value[0]);
    tfc_tensor_release(&value[1]);
  }
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples), cmocka_unit_test(test_old_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
