// Trains examples through the CUDA driver on a fake of the CUDA calls, where all operations except assignments run on
// the host between copies: the losses are TensorFlow's, and random placements give the same bits.
#include "tests/common/test.h"

#include "runtime/device/cuda/device.h"
#include "tests/common/cuda_fake.h"
#include "tests/common/same_bits.h"
#include "tests/common/train.h"

static void install(uint64_t seed) {
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 4});
  if (seed) {
    tfc_cuda_fake_delay(20000);
    tfc_cuda_fake_shuffle(seed);
  }
}

static void train(void **state) {
  (void)state;
  install(0);
  assert_true(train_example("mlp", &(struct train_options){.devices = "gpu:0", .steps = 5}));
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

static void in_ready_order(void **state) {
  (void)state;
  install(1);
  train_example("mlp", &(struct train_options){.devices = "gpu:0", .dynamic = true, .steps = 5});
  train_example("mlp", &(struct train_options){.devices = "vgpu:0-1,cpu:0", .dynamic = true, .steps = 3});
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

static void placements(void **state) {
  (void)state;
  install(2);
  tfc_same_bits("mlp", "gpu:0-3", 3, 1, false);
  tfc_same_bits("mlp", "vgpu:0-3", 3, 2, true);
  tfc_same_bits("mlp", "vgpu:0-3,shared", 3, 6, false); // only events keep the order
  tfc_same_bits("mlp", "vgpu:0-3,shared", 3, 7, true);
  tfc_same_bits("ridge", "vgpu:0-1,gpu:0,shared", 3, 8, true);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

static void mixed(void **state) { // copies between drivers pass through host memory
  (void)state;
  install(3);
  tfc_same_bits("mlp", "gpu:0-1,vgpu:0-1", 3, 3, true);
  tfc_same_bits("ridge", "gpu:0,emu:0,vgpu:0,cpu:0", 4, 4, true);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

static void longer(void **state) {
  (void)state;
#ifndef TFC_SANITIZED
  install(0);
  tfc_same_bits("rnnlm", "vgpu:0-3", 1, 5, false);
#endif
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  tfc_driver_add(&tfc_driver_vgpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(train), cmocka_unit_test(in_ready_order),
                                     cmocka_unit_test(placements), cmocka_unit_test(mixed), cmocka_unit_test(longer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
