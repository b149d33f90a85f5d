// Trains the examples with loops on a fake of the CUDA calls: counters and shapes stay in host memory, and losses are
// TensorFlow's.
#include "tests/common/test.h"

#include "runtime/device/cuda/device.h"
#include "tests/common/cuda_fake.h"
#include "tests/common/same_bits.h"
#include "tests/common/train.h"

static void train(const char *name, const char *devices, uint32_t steps) {
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  assert_false(train_example(name, &(struct train_options){.devices = devices, .steps = steps}));
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}
static void nmt_while(void **state) {
  (void)state;
  train("nmt_while", "gpu:0", 2);
}
static void nmt_while_v2(void **state) {
  (void)state;
  train("nmt_while_v2", "gpu:0", 2);
}

// A random placement on GPUs, a device that shares no memory with others, and a CPU gives the same bits.
static void placements(void **state) {
  (void)state;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  tfc_same_bits("nmt_while", "gpu:0-1,emu:0,cpu:0", 1, 11, false);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(nmt_while), cmocka_unit_test(nmt_while_v2),
                                     cmocka_unit_test(placements)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
