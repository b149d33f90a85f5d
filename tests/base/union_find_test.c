#include "tests/common/test.h"

#include "runtime/base/random.h"
#include "runtime/base/union_find.h"

enum { COUNT = 60 };

static void elements_begin_alone(void **state) {
  (void)state;
  uint32_t parent[COUNT];
  tfc_union_find_init(parent, COUNT);
  for (uint32_t i = 0; i < COUNT; i++) assert_int_equal(tfc_union_find_root(parent, i), i);
}

static void the_kept_root_stays(void **state) {
  (void)state;
  uint32_t parent[COUNT];
  tfc_union_find_init(parent, COUNT);
  tfc_union_find_join(parent, 3, 1);
  tfc_union_find_join(parent, 7, 5);
  tfc_union_find_join(parent, 5, 1); // the roots are 7 and 3
  assert_int_equal(tfc_union_find_root(parent, 1), 7);
  assert_int_equal(tfc_union_find_root(parent, 3), 7);
  tfc_union_find_join(parent, 1, 7); // they are in one set already
  assert_int_equal(tfc_union_find_root(parent, 7), 7);
  assert_int_equal(tfc_union_find_root(parent, 2), 2);
}

// Compares with a plain implementation, in which every element has a label, and joining two sets renames the labels of
// one.
static void sets_are_as_by_labels(void **state) {
  (void)state;
  struct tfc_random random;
  tfc_random_init(&random, 16);
  uint32_t parent[COUNT], label[COUNT];
  tfc_union_find_init(parent, COUNT);
  for (uint32_t i = 0; i < COUNT; i++) label[i] = i;
  for (uint32_t joins = 0; joins < COUNT; joins++) {
    const uint32_t a = (uint32_t)tfc_random_below(&random, COUNT), b = (uint32_t)tfc_random_below(&random, COUNT);
    const uint32_t old = label[b];
    tfc_union_find_join(parent, a, b);
    for (uint32_t i = 0; i < COUNT; i++)
      if (label[i] == old) label[i] = label[a];
    for (uint32_t i = 0; i < COUNT; i++)
      for (uint32_t k = 0; k < i; k++)
        assert_int_equal(tfc_union_find_root(parent, i) == tfc_union_find_root(parent, k), label[i] == label[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_begin_alone),
      cmocka_unit_test(the_kept_root_stays),
      cmocka_unit_test(sets_are_as_by_labels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
