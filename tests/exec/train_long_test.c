// Trains the larger examples and compares the losses with TensorFlow's.
#include "tests/common/test.h"

#include "tests/common/train.h"

static void rnnlm(void **state) {
  (void)state;
  assert_true(train_example("rnnlm", &(struct train_options){0}));
}
static void nmt(void **state) {
  (void)state;
  assert_true(train_example("nmt", &(struct train_options){.steps = 10}));
}
// In the first example loops are frames (TensorFlow 1), in the second they are functions with tensor lists (TensorFlow
// 2).
static void nmt_while(void **state) {
  (void)state;
  assert_false(train_example("nmt_while", &(struct train_options){.steps = 8}));
}
static void nmt_while_v2(void **state) {
  (void)state;
  assert_false(train_example("nmt_while_v2", &(struct train_options){.steps = 8}));
}

// All cores are one device, so each operation is split over them.
static void on_all_cores(void **state) {
  static const char *const names[] = {"alexnet", "resnet50", "inception_v3", "transformer"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    train_example(names[i], &(struct train_options){.devices = "1", .steps = 3});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rnnlm), cmocka_unit_test(nmt), cmocka_unit_test(nmt_while),
                                     cmocka_unit_test(nmt_while_v2), cmocka_unit_test(on_all_cores)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
