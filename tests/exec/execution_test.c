// Tests that formatting and parsing keep every member of struct tfc_execution, the record of how a run computes.
#include "tests/common/test.h"

#include "runtime/base/instructions.h"
#include "runtime/exec/execution.h"

static void format(const struct tfc_execution *e, struct tfc_text *out) {
  *out = (struct tfc_text){0};
  tfc_execution_format(e, out);
  assert_false(out->failed);
}

static void test_defaults(void **state) {
  (void)state;
  struct tfc_execution e = {0};
  struct tfc_text text;
  format(&e, &text);
  assert_int_equal(text.size, 0);
  assert_ok(tfc_execution_parse((tfc_str){0}, &e));
  assert_int_equal(e.rewrites, TFC_REWRITES_EXACT);
  assert_int_equal(e.limit_count, 0);
  tfc_execution_deinit(&e);
}

static void test_all(void **state) {
  (void)state;
  const struct tfc_memory_limit limits[] = {{"cpu:*", 1000}, {"odd name=50%", UINT64_MAX}};
  const struct tfc_execution e = {.rewrites = TFC_REWRITES_ALL,
                                  .captures = TFC_CAPTURES_OFF,
                                  .gpu_math = TFC_MATH_FLOAT16,
                                  .cpu = TFC_INSTRUCTIONS_AVX2,
                                  .seed = -7,
                                  .threads = 3,
                                  .limits = limits,
                                  .limit_count = 2};
  struct tfc_execution got;
  struct tfc_text text;
  format(&e, &text);
  assert_string_equal(text.data, "--rewrites all --cuda-graphs off --gpu-math float16 --cpu avx2 --seed -7 --threads 3 "
                                 "--memory cpu:*=1000 --memory odd%20name=50%25=18446744073709551615");
  assert_ok(tfc_execution_parse((tfc_str){text.data, text.size}, &got));
  assert_true(tfc_execution_alike(&e, &got));
  assert_int_equal(got.seed, -7);
  assert_int_equal(got.threads, 3);
  assert_int_equal(got.limit_count, 2);
  assert_string_equal(got.limits[0].pattern, "cpu:*");
  assert_int_equal(got.limits[0].bytes, 1000);
  assert_string_equal(got.limits[1].pattern, "odd name=50%");
  assert_true(got.limits[1].bytes == UINT64_MAX);
  got.captures = TFC_CAPTURES_AUTO;
  assert_false(tfc_execution_alike(&e, &got));
  tfc_execution_deinit(&got);
  tfc_text_deinit(&text);
}

static void test_broken(void **state) {
  (void)state;
  struct tfc_execution e;
  static const char *const broken[][2] = {{"rewrites all", "rewrites"},
                                          {"--rewrites some", "exact|all"},
                                          {"--rewrites", "exact|all"},
                                          {"--speed high", "speed"},
                                          {"--seed", "seed"},
                                          {"--seed x", "seed"},
                                          {"--memory cpu:0", "DEVICE=BYTES"},
                                          {"--memory cpu:0=", "DEVICE=BYTES"},
                                          {"--memory cpu:0=1 --memory cpu:1=1GB", "cpu:1=1GB"}};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
    assert_fails(tfc_execution_parse(tfc_str_from(broken[i][0]), &e), TFC_INVALID_ARGUMENT, broken[i][1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_defaults),
      cmocka_unit_test(test_all),
      cmocka_unit_test(test_broken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
