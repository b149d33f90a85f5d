// inception_v3 trains with the CUDA kernels' source on the CPU, and its losses are TensorFlow's: what
// examples_long_test does with the other examples.
#include "tests/common/test.h"

#include "tests/cuda_kernels/train.h"

static void test_inception_v3(void **state) {
  (void)state;
  struct cuda_host_census census = {0};
  assert_ok(cuda_host_train("inception_v3", 2, &census));
  assert_int_equal(census.miss_count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_inception_v3)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
