// Parts of partitioned variables become slices of one tensor, even if other items are between them. Items whose names
// only look like parts are not changed.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/exec/model.h"
#include "runtime/exec/model_checkpoint.h"

enum { ITEMS = 10 };

static void parts_become_slices(void **state) {
  (void)state;
  const char *const names[ITEMS] = {"w/part_1",  "b",        "w/part_0", "w/part_2",      "w/part_0/Adam",
                                    "w/part_10", "x/part_0", "x/part_1", "cell/part_0/u", "cell/part_1/u"};
  const struct tfc_shape shapes[ITEMS] = {TFC_SHAPE(4, 3), TFC_SHAPE(4),   TFC_SHAPE(4, 3), TFC_SHAPE(2, 3),
                                          TFC_SHAPE(4, 3), TFC_SHAPE(1),   TFC_SHAPE(2),    TFC_SHAPE(2, 2),
                                          TFC_SHAPE(5, 1), TFC_SHAPE(5, 2)};
  struct tfc_tensor tensors[ITEMS];
  struct tfc_checkpoint_item items[ITEMS];
  struct tfc_arena arena = {0};
  for (int i = 0; i < ITEMS; i++) {
    tensors[i] = (struct tfc_tensor){.dtype = TFC_FLOAT, .shape = shapes[i]};
    items[i] = (struct tfc_checkpoint_item){.name = tfc_str_from(names[i]), .tensor = &tensors[i]};
  }
  assert_ok(tfc_checkpoint_join_parts(items, ITEMS, &arena));
  static const struct {
    int item;
    const char *name;
    int64_t whole[2], offset[2];
  } wanted[] = {{2, "w", {10, 3}, {0, 0}},     {0, "w", {10, 3}, {4, 0}},     {3, "w", {10, 3}, {8, 0}},
                {4, "w/Adam", {4, 3}, {0, 0}}, {8, "cell/u", {5, 3}, {0, 0}}, {9, "cell/u", {5, 3}, {0, 1}}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    const struct tfc_checkpoint_item *item = &items[wanted[i].item];
    assert_true(tfc_str_is(item->name, wanted[i].name));
    assert_non_null(item->whole);
    for (int d = 0; d < 2; d++) {
      assert_int_equal(item->whole->dims[d], wanted[i].whole[d]);
      assert_int_equal(item->offsets[d], wanted[i].offset[d]);
    }
  }
  for (int i = 1; i < ITEMS;
       i++) // these are not changed: a variable of its own, part 11 of three, and two parts of different ranks
    if (i == 1 || i == 5 || i == 6 || i == 7) {
      assert_true(tfc_str_is(items[i].name, names[i]));
      assert_null(items[i].whole);
    }
  tfc_arena_deinit(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parts_become_slices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
