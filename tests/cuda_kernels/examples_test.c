// The examples with the CUDA kernels' source on the CPU: every operation of their initialisers and training steps has a
// CUDA kernel, or TensorFlow's rules place it in host memory. The losses of the small examples are TensorFlow's.
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "tests/cuda_kernels/train.h"

static void check(const char *name, uint32_t steps) {
  struct cuda_host_census census = {0};
  assert_ok(cuda_host_train(name, steps, &census));
  for (uint32_t i = 0; i < census.miss_count; i++)
    print_message("%s: %u x %s of %s falls back: %s\n", name, census.misses[i].count, census.misses[i].op,
                  census.misses[i].type, census.misses[i].reason);
  print_message("%s: %u operations with a kernel, %u kinds fall back, %u are not captured\n", name, census.rows,
                census.miss_count, census.uncaptured);
  assert_true(census.rows > 10);
  assert_int_equal(census.miss_count, 0);
}

static void test_every_operation_has_a_kernel(void **state) {
  (void)state;
  const char *const names[] = {"mlp", "ridge",       "rnnlm",   "rnnlm_large", "lstm_grid",
                               "nmt", "transformer", "alexnet", "resnet50",    "inception_v3"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) check(names[i], 0);
}
static void test_mlp(void **state) {
  (void)state;
  check("mlp", 20);
}
static void test_ridge(void **state) {
  (void)state;
  check("ridge", 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_operation_has_a_kernel),
      cmocka_unit_test(test_mlp),
      cmocka_unit_test(test_ridge),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
