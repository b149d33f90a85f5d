// Tries more random placements than placement_thread_test.c.
#include "tests/common/test.h"

#include "tests/common/same_bits.h"

static void placements(void **state) {
  (void)state;
  static const char *const devices[] = {"cpu:0-3", "emu:0-3", "cpu:0-1,emu:0-1", "cpu:0-15"};
  for (uint64_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    tfc_same_bits("mlp", devices[i], 16, 100 + i, false);
    tfc_same_bits("mlp", devices[i], 16, 200 + i, true);
    tfc_same_bits("ridge", devices[i], 16, 300 + i, true);
    tfc_same_bits("rnnlm", devices[i], 4, 400 + i, false);
    tfc_same_bits("nmt", devices[i], 2, 500 + i, false);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(placements)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
