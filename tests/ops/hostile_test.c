// Values that made operations run for ever.
#include "tests/common/test.h"

#include <unistd.h>

#include "runtime/graph/import.h"
#include "tests/common/eval.h"

static void rates_that_fit_no_type_end(void **state) {
  (void)state;
  static const char text[] = "node { name: 'shape' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { "
                             "key: 'value' value { tensor "
                             "{ dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1 } } } } "
                             "node { name: 'seed' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } } attr { "
                             "key: 'value' value { tensor "
                             "{ dtype: DT_INT64 tensor_shape { dim { size: 2 } } int64_val: 1 int64_val: 2 } } } } "
                             "node { name: 'rate' op: 'Const' attr { key: 'dtype' value { type: DT_DOUBLE } } attr { "
                             "key: 'value' value { tensor "
                             "{ dtype: DT_DOUBLE tensor_shape { dim { size: 1 } } double_val: 1e30 } } } } "
                             "node { name: 'y' op: 'StatelessRandomPoisson' input: 'shape' input: 'seed' input: 'rate' "
                             "attr { key: 'Rtype' value { "
                             "type: DT_DOUBLE } } attr { key: 'dtype' value { type: DT_INT64 } } attr { key: 'T' value "
                             "{ type: DT_INT32 } } attr { "
                             "key: 'Tseed' value { type: DT_INT64 } } }";
  struct tfc_graph *g = NULL;
  struct eval e;
  const struct tfc_tensor *y = NULL;
  assert_ok(tfc_graph_parse(tfc_str_from(text), "poisson.pbtxt", NULL, &g));
  assert_ok(eval_create(g, &e));
  alarm(30); // what runs for ever ends the suite
  assert_ok(eval_output(&e, (struct tfc_output){tfc_graph_find(g, TFC_STR("y")), 0}, &y));
  alarm(0);
  const int64_t value = *(const int64_t *)y->data;
  assert_true(value > INT64_MAX - 2048); // the largest double that is an int64
  eval_deinit(&e);
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rates_that_fit_no_type_end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
