// Whether the clients of a job may take their steps together: when each average waits for a gradient of every client.
#include "tests/common/test.h"

#include "cli/run_together.h"
#include "runtime/graph/import.h"

#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "' " inputs " " attrs " }"
#define TYPE(key, type) " attr { key: '" key "' value { type: " type " } }"
#define NUMBER(name, value)                                                                                            \
  NODE(name, "Const", "",                                                                                              \
       TYPE("dtype",                                                                                                   \
            "DT_INT32") " attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: " value       \
                        " } } }")
#define ACCUMULATOR(k, required)                                                                                       \
  NODE(                                                                                                                \
      "accumulator" k, "ConditionalAccumulator", "",                                                                   \
      TYPE("dtype", "DT_FLOAT") " attr { key: 'shape' value { shape { } } } attr { key: 'shared_name' value { s: 'a" k \
                                "' } }")                                                                               \
  NUMBER("required" k, required)                                                                                       \
  NODE("apply" k, "AccumulatorApplyGradient", "input: 'accumulator" k "' input: 'now' input: 'gradient'",              \
       TYPE("dtype", "DT_FLOAT"))                                                                                      \
  NODE("take" k, "AccumulatorTakeGradient", "input: 'accumulator" k "' input: 'required" k "'",                        \
       TYPE("dtype", "DT_FLOAT"))
#define BEGIN                                                                                                          \
  NODE(                                                                                                                \
      "now", "Const", "",                                                                                              \
      TYPE("dtype", "DT_INT64") " attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: 0 " \
                                "} } }")                                                                               \
  NODE(                                                                                                                \
      "gradient", "Const", "",                                                                                         \
      TYPE("dtype", "DT_FLOAT") " attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 " \
                                "} } }")

static void test_together(void **state) {
  (void)state;
  static const struct {
    const char *graph, *targets[2];
    uint32_t clients;
    bool together;
  } cases[] = {
      {BEGIN ACCUMULATOR("0", "2"), {"apply0", NULL}, 2, true},
      {BEGIN ACCUMULATOR("0", "2"), {"apply0", NULL}, 3, false},   // an average without the third one
      {BEGIN ACCUMULATOR("0", "2"), {"gradient", NULL}, 2, false}, // the step gives no gradient
      {BEGIN ACCUMULATOR("0", "2") ACCUMULATOR("1", "2"), {"apply0", "apply1"}, 2, true},
      {BEGIN ACCUMULATOR("0", "2") ACCUMULATOR("1", "1"), {"apply0", "apply1"}, 2, false},
      {BEGIN ACCUMULATOR("0", "1") ACCUMULATOR("1", "2"), {"apply0", "apply1"}, 2, false},
      {BEGIN ACCUMULATOR("0", "1") ACCUMULATOR("1", "2"), {"apply1", NULL}, 2, true}, // the first is not of the step
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct run_setup setup = {0};
    struct tfc_step_spec step = {0};
    uint32_t targets[2] = {0};
    bool together = !cases[i].together;
    assert_ok(tfc_graph_parse(tfc_str_from(cases[i].graph), "graph", NULL, &setup.graph));
    for (; step.target_count < 2 && cases[i].targets[step.target_count]; step.target_count++)
      assert_ok(tfc_graph_parse_node(setup.graph, tfc_str_from(cases[i].targets[step.target_count]),
                                     &targets[step.target_count]));
    step.targets = targets;
    assert_ok(run_together_can(&setup, &step, NULL, cases[i].clients, &together));
    if (together != cases[i].together) fail_msg("case %zu", i);
    tfc_graph_release(setup.graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_together)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
