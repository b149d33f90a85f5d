// The reference kernels against TensorFlow's values: the committed cases of the families without state.
#include "tests/common/test.h"

#include "tests/common/golden.h"

static void check(const char *family) {
  struct golden_result r;
  golden_run(TFC_SOURCE_DIR, family, "", &r);
  assert_true(r.passed > 0);
  assert_int_equal(r.failed, 0);
  assert_int_equal(r.unsupported, 0);
}
static void unary(void **state) {
  (void)state;
  check("math_unary");
}
static void binary(void **state) {
  (void)state;
  check("math_binary");
}
static void reductions(void **state) {
  (void)state;
  check("reductions");
}
static void array(void **state) {
  (void)state;
  check("array");
}
static void linalg(void **state) {
  (void)state;
  check("linalg");
}
static void transforms(void **state) {
  (void)state;
  check("signal");
}
static void image(void **state) {
  (void)state;
  check("image");
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
