#include "tests/common/test.h"

#include <stdio.h>

#include "runtime/base/map.h"

enum { KEYS = 20000 };

static void strings_are_found(void **state) {
  (void)state;
  static char names[KEYS][12];
  struct tfc_strmap map = {0};
  assert_null(tfc_strmap_get(&map, TFC_STR("0")));
  for (uint64_t i = 0; i < KEYS; i++) {
    bool found = true;
    snprintf(names[i], sizeof names[i], "%llu", (unsigned long long)i);
    uint64_t *value = tfc_strmap_put(&map, tfc_str_from(names[i]), i, &found);
    assert_non_null(value);
    assert_false(found);
    *value += 1;
  }
  bool found = false;
  assert_int_equal(*tfc_strmap_put(&map, TFC_STR("77"), 0, &found), 78);
  assert_true(found);
  assert_int_equal(map.count, KEYS);
  for (uint64_t i = 0; i < KEYS; i++) {
    const uint64_t *value = tfc_strmap_get(&map, tfc_str_from(names[i]));
    assert_non_null(value);
    assert_int_equal(*value, i + 1);
    assert_true(tfc_str_is(map.entries[i].key, names[i]));
  }
  assert_null(tfc_strmap_get(&map, TFC_STR("20000")));
  assert_null(tfc_strmap_get(&map, TFC_STR("")));
  assert_non_null(tfc_strmap_put(&map, (tfc_str){0}, 5, &found)); // a NULL text is the same key as ""
  assert_false(found);
  assert_int_equal(*tfc_strmap_get(&map, TFC_STR("")), 5);
  tfc_strmap_deinit(&map);
}

static void numbers_are_found(void **state) {
  (void)state;
  struct tfc_intmap map = {0};
  assert_null(tfc_intmap_get(&map, 0));
  for (uint64_t i = 0; i < KEYS; i++) assert_non_null(tfc_intmap_put(&map, i << 40, i, NULL));
  for (uint64_t i = 0; i < KEYS; i++) assert_int_equal(*tfc_intmap_get(&map, i << 40), i);
  assert_null(tfc_intmap_get(&map, 1));
  tfc_intmap_deinit(&map);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strings_are_found),
      cmocka_unit_test(numbers_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
