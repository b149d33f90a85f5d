// Compares the reference kernels with TensorFlow's values: the committed cases of the families without state.
#include "tests/common/test.h"

#include "tests/common/golden.h"

// At least `least` cases must pass: this was their number when the test was written.
static void check(const char *family, int least) {
  struct golden_result r;
  golden_run(TFC_SOURCE_DIR, family, "", &r);
  if (r.passed < least) fail_msg("%s: %d cases passed, there were %d", family, r.passed, least);
  assert_int_equal(r.failed, 0);
  assert_int_equal(r.unsupported, 0);
}
static void unary(void **state) {
  (void)state;
  check("math_unary", 644);
}
static void binary(void **state) {
  (void)state;
  check("math_binary", 366);
}
static void reductions(void **state) {
  (void)state;
  check("reductions", 344);
}
static void array(void **state) {
  (void)state;
  check("array", 658);
}
static void linalg(void **state) {
  (void)state;
  check("linalg", 104);
}
static void transforms(void **state) {
  (void)state;
  check("signal", 33);
}
static void image(void **state) {
  (void)state;
  check("image", 87);
}

int main(int argc, char **argv) {
  if (argc > 1) { // golden_test FAMILY [CASE]: shows one family
    struct golden_result r;
    golden_run(TFC_SOURCE_DIR, argv[1], argc > 2 ? argv[2] : "", &r);
    return r.failed || r.unsupported;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(unary), cmocka_unit_test(binary), cmocka_unit_test(reductions),
                                     cmocka_unit_test(array), cmocka_unit_test(linalg), cmocka_unit_test(transforms),
                                     cmocka_unit_test(image)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
