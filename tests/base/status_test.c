#include "tests/common/test.h"

#include "runtime/base/map.h"
#include "runtime/base/no_memory.h"
#include "runtime/base/status.h"
#include "runtime/base/units.h"

static void annotate_keeps_code(void **state) {
  (void)state;
  tfc_status s = tfc_status_make(TFC_NOT_FOUND, "no device '%s'", "gpu:7");
  s = tfc_status_annotate(s, "node %s", "a/b");
  assert_int_equal(tfc_status_code(s), TFC_NOT_FOUND);
  assert_string_equal(tfc_status_message(s), "node a/b: no device 'gpu:7'");
  tfc_status_free(s);
}

static void units_parse(void **state) {
  (void)state;
  uint64_t bytes;
  double x;
  assert_null(tfc_parse_bytes(TFC_STR("64GiB"), &bytes));
  assert_int_equal(bytes, 64ull << 30);
  assert_null(tfc_parse_bandwidth(TFC_STR("12GB/s"), &x));
  assert_true(x == 12e9);
  assert_null(tfc_parse_time_us(TFC_STR("10ms"), &x));
  assert_true(x == 10000);
  const char *bad[] = {"", "x", "1QB", "-1", "nan", "inf", "1e999", "0x10", "0.5", "1.5B"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    tfc_status s = tfc_parse_bytes(tfc_str_from(bad[i]), &bytes);
    assert_non_null(s);
    tfc_status_free(s);
  }
}

static void no_memory_says_for_what(void **state) {
  (void)state;
  tfc_status s = tfc_status_no_memory("reading a graph");
  assert_int_equal(tfc_status_code(s), TFC_RESOURCE_EXHAUSTED);
  assert_string_equal(tfc_status_message(s), "out of memory: reading a graph");
  tfc_status_free(s);
  s = tfc_status_no_memory(NULL);
  assert_int_equal(tfc_status_code(s), TFC_RESOURCE_EXHAUSTED);
  assert_string_equal(tfc_status_message(s), "out of memory");
  tfc_status_free(s);
  s = tfc_status_no_memory_for("a graph of %u nodes", 3u);
  assert_int_equal(tfc_status_code(s), TFC_RESOURCE_EXHAUSTED);
  assert_string_equal(tfc_status_message(s), "out of memory: a graph of 3 nodes");
  tfc_status_free(s);
}

static void maps_hold(void **state) {
  (void)state;
  struct tfc_intmap map = {0};
  for (uint64_t i = 0; i < 1000; i++) assert_non_null(tfc_intmap_put(&map, i * 7919, i, NULL));
  for (uint64_t i = 0; i < 1000; i++) assert_int_equal(*tfc_intmap_get(&map, i * 7919), i);
  assert_null(tfc_intmap_get(&map, 1));
  tfc_intmap_deinit(&map);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(annotate_keeps_code),
      cmocka_unit_test(units_parse),
      cmocka_unit_test(no_memory_says_for_what),
      cmocka_unit_test(maps_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
