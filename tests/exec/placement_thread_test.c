// Under random placements over four CPU and four emulated devices a step gives the same bits. The trace shows each
// operation on the device where it was placed, and each tensor that crosses devices moved once. Memory of such tensors
// is not reused too early. placement_endless_test.c tries more placements.
//
//   placement_thread_test vgpu:0-3 mlp rnnlm      those examples over those devices, with and without rewrites
#include "tests/common/test.h"

#include "tests/common/same_bits.h"

#ifdef TFC_SANITIZED
enum { MANY = 2, FEW = 1 };
#else
enum { MANY = 4, FEW = 1 };
#endif

static void mlp_cpu(void **state) {
  (void)state;
  tfc_same_bits("mlp", "cpu:0-3", MANY, 1, false);
  tfc_same_bits("mlp", "cpu:0-3", MANY, 2, true);
}
static void mlp_emulated(void **state) {
  (void)state;
  tfc_same_bits("mlp", "emu:0-3", MANY, 3, false);
  tfc_same_bits("mlp", "emu:0-3", FEW, 4, true);
}
static void mlp_oversubscribed(void **state) {
  (void)state;
  tfc_same_bits("mlp", "cpu:0-15", FEW, 5, false);
}
static void ridge_mixed(void **state) {
  (void)state;
  tfc_same_bits("ridge", "emu:0-3", MANY, 6, true);
  tfc_same_bits("ridge", "cpu:0-3", MANY, 7, true);
}
static void rnnlm(void **state) {
  (void)state;
#ifndef TFC_SANITIZED
  tfc_same_bits("rnnlm", "cpu:0-3", FEW, 8, false);
  tfc_same_bits("rnnlm", "emu:0-3", 1, 9, false);
#endif
}
static void nmt(void **state) {
  (void)state;
#ifndef TFC_SANITIZED
  tfc_same_bits("nmt", "cpu:0-3", 1, 10, false);
  tfc_same_bits("nmt", "emu:0-3", 1, 11, false);
#endif
}

static const char *devices, *example;
static void given(void **state) {
  (void)state;
  tfc_same_bits(example, devices, MANY, 12, false);
  tfc_same_bits(example, devices, FEW, 13, true);
}

int main(int argc, char **argv) {
  int failed = 0;
  if (argc > 1) devices = argv[1];
  for (int i = 2; i < argc; i++) {
    const struct CMUnitTest one[] = {cmocka_unit_test(given)};
    example = argv[i];
    failed += cmocka_run_group_tests_name(example, one, NULL, NULL);
  }
  if (argc > 1) return failed != 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mlp_cpu),     cmocka_unit_test(mlp_emulated), cmocka_unit_test(mlp_oversubscribed),
      cmocka_unit_test(ridge_mixed), cmocka_unit_test(rnnlm),        cmocka_unit_test(nmt),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
