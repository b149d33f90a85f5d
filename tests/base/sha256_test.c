// FIPS 180-4's examples: a message of one block, an empty one, and one whose length needs a second block.
#include "tests/common/test.h"

#include "runtime/base/sha256.h"

static void test_examples(void **state) {
  (void)state;
  char hex[65];
  tfc_sha256(TFC_STR("abc"), hex);
  assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  tfc_sha256((tfc_str){"", 0}, hex);
  assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  tfc_sha256(TFC_STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), hex);
  assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples)};
  return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
