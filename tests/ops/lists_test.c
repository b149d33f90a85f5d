// Changes lists of tensors at random, and compares all of them with plain arrays after each change: a list that others
// still use must stay as it is, and one that nobody else uses may hand its elements to the new list.
#include "runtime/ops/data_variant.h"

#include "runtime/base/random.h"
#include "tests/common/test.h"

enum { LISTS = 6, MOST = 3 * TFC_LIST_CHUNK, NEVER = -1 };

struct model {
  struct tfc_list *list; // NULL: none
  int64_t count;
  int64_t values[MOST]; // NEVER: not written
};

static void put(struct tfc_tensor *to, int64_t value) {
  tfc_tensor_release(to);
  assert_ok(tfc_tensor_create(TFC_INT64, &TFC_SHAPE_SCALAR, to));
  *(int64_t *)to->data = value;
}

static void compare(const struct model *m) {
  if (!m->list) return;
  assert_int_equal(m->list->count, m->count);
  for (int64_t i = 0; i < m->count; i++) {
    const struct tfc_tensor *t = tfc_list_at(m->list, i);
    if (m->values[i] == NEVER)
      assert_int_equal(t->dtype, TFC_DTYPE_NONE);
    else
      assert_int_equal(*(const int64_t *)t->data, m->values[i]);
  }
}

static void drop(struct model *m) {
  if (m->list) tfc_object_release(&m->list->object);
  m->list = NULL;
}

static void changes(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 11);
  struct model models[LISTS] = {{0}};
  int64_t next = 0;
  for (int round = 0; round < 20000; round++) {
    struct model *from = &models[tfc_random_below(&r, LISTS)], *to = &models[tfc_random_below(&r, LISTS)];
    if (!from->list) {
      *from = (struct model){.count = (int64_t)tfc_random_below(&r, MOST)};
      assert_ok(tfc_list_create(TFC_INT64, &TFC_SHAPE_SCALAR, from->count, &from->list));
      for (int64_t i = 0; i < MOST; i++) from->values[i] = NEVER;
      continue;
    }
    const int64_t had = from->count;
    struct model made = *from;
    int64_t index = -1;
    switch (tfc_random_below(&r, 4)) {
    case 0: // push
      if (had == MOST) continue;
      made.count = had + 1, index = had;
      break;
    case 1: // pop
      if (had == 0) continue;
      made.count = had - 1;
      break;
    case 2: // set
      if (had == 0) continue;
      index = (int64_t)tfc_random_below(&r, (uint64_t)had);
      break;
    default: made.count = (int64_t)tfc_random_below(&r, MOST); // another size
    }
    for (int64_t i = made.count; i < MOST; i++) made.values[i] = NEVER;
    const bool only = tfc_random_below(&r, 2) || to == from;
    assert_ok(tfc_list_change(from->list, made.count, index, only, &made.list));
    if (only) drop(from);
    if (index >= 0) put(tfc_list_at(made.list, index), made.values[index] = next++);
    drop(to);
    *to = made;
    for (int i = 0; i < LISTS; i++) compare(&models[i]);
  }
  for (int i = 0; i < LISTS; i++) drop(&models[i]);
}

// What nobody else uses is not copied.
static void moved(void **state) {
  (void)state;
  struct tfc_list *list = NULL, *made = NULL;
  assert_ok(tfc_list_create(TFC_INT64, &TFC_SHAPE_SCALAR, 3, &list));
  put(tfc_list_at(list, 0), 5);
  const struct tfc_list_chunk *chunk = list->chunks[0];
  assert_ok(tfc_list_change(list, 4, 3, true, &made));
  assert_ptr_equal(made->chunks[0], chunk);
  tfc_object_release(&list->object);
  list = made;
  assert_ok(tfc_list_change(list, 4, 3, false, &made));
  assert_ptr_not_equal(made->chunks[0], chunk);
  tfc_object_release(&made->object);
  tfc_object_release(&list->object);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(changes), cmocka_unit_test(moved)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
