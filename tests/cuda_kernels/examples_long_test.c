// The larger examples train with the CUDA kernels' source on the CPU, and their losses are TensorFlow's. From the
// second step on, a loss also depends on the updates. (inception_v3, which takes longest, is in examples_endless_test.)
// ONLY=name runs one example, COUNT=n runs n steps.
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "tests/cuda_kernels/train.h"

static void check(const char *name, uint32_t steps) {
  struct cuda_host_census census = {0};
  const char *only = getenv("ONLY"), *count = getenv("COUNT");
  if (only && strcmp(only, name)) return;
  assert_ok(cuda_host_train(name, count ? (uint32_t)atoi(count) : steps, &census));
  assert_int_equal(census.miss_count, 0);
}
#define EXAMPLE(name, steps)                                                                                           \
  static void test_##name(void **state) {                                                                              \
    (void)state;                                                                                                       \
    check(#name, steps);                                                                                               \
  }
EXAMPLE(rnnlm, 3)
EXAMPLE(lstm_grid, 2)
EXAMPLE(nmt, 2)
EXAMPLE(transformer, 2)
EXAMPLE(alexnet, 1)
EXAMPLE(resnet50, 1)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rnnlm),       cmocka_unit_test(test_lstm_grid), cmocka_unit_test(test_nmt),
      cmocka_unit_test(test_transformer), cmocka_unit_test(test_alexnet),   cmocka_unit_test(test_resnet50),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
