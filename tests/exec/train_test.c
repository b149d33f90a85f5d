// Trains the small examples for 20 steps and compares the losses with TensorFlow's.
#include "tests/common/test.h"

#include "tests/common/train.h"

static void mlp(void **state) {
  (void)state;
  assert_true(train_example("mlp", &(struct train_options){0}));
}
static void mlp_as_it_stands(void **state) {
  (void)state;
  train_example("mlp", &(struct train_options){.no_rewrites = true});
}
static void mlp_emulated(void **state) {
  (void)state;
  train_example("mlp", &(struct train_options){.devices = "emu:0"});
}
static void ridge(void **state) {
  (void)state;
  train_example("ridge", &(struct train_options){0});
}
static void in_ready_order(void **state) {
  (void)state;
  train_example("mlp", &(struct train_options){.dynamic = true});
  train_example("mlp", &(struct train_options){.devices = "emu:0", .dynamic = true});
  train_example("ridge", &(struct train_options){.devices = "cpu:0-1", .dynamic = true});
}
static void rnnlm(void **state) {
  (void)state;
  train_example("rnnlm", &(struct train_options){.steps = 4});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mlp),          cmocka_unit_test(mlp_as_it_stands),
      cmocka_unit_test(mlp_emulated), cmocka_unit_test(ridge),
      cmocka_unit_test(rnnlm),        cmocka_unit_test(in_ready_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
