// The larger examples train as TensorFlow trained them: 20 losses each.
#include "tests/common/test.h"

#include "tests/common/train.h"

static void rnnlm(void **state) {
  (void)state;
  assert_true(train_example("rnnlm", &(struct train_options){0}));
}
static void nmt(void **state) {
  (void)state;
  assert_true(train_example("nmt", &(struct train_options){0}));
}
// Frames, and functions with lists.
static void nmt_while(void **state) {
  (void)state;
  assert_false(train_example("nmt_while", &(struct train_options){0}));
}
static void nmt_while_v2(void **state) {
  (void)state;
  assert_false(train_example("nmt_while_v2", &(struct train_options){0}));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rnnlm), cmocka_unit_test(nmt), cmocka_unit_test(nmt_while),
                                     cmocka_unit_test(nmt_while_v2)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
