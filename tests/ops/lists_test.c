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
      assert_ok((tfc_random_below(&r, 2) ? tfc_list_create : tfc_list_reserve)(TFC_INT64, &TFC_SHAPE_SCALAR,
                                                                               from->count, &from->list));
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

static struct tfc_tensor variant_of(struct tfc_list *list) { // takes the list
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(TFC_VARIANT, &TFC_SHAPE_SCALAR, &t));
  *(struct tfc_object **)t.data = &list->object;
  return t;
}

// Adds to a list, as the gradient of a loop does, lists that were reserved and of which one element was written. What
// only one of two lists has written is shared by the sum, and reserved elements that nobody has written take no memory.
static void added(void **state) {
  (void)state;
  struct tfc_kernel_env env = {0};
  struct tfc_kernel_ctx ctx = {.env = &env};
  struct tfc_random r;
  tfc_random_init(&r, 12);
  for (int round = 0; round < 200; round++) {
    struct model sum = {.count = 1 + (int64_t)tfc_random_below(&r, MOST)};
    assert_ok(tfc_list_reserve(TFC_INT64, &TFC_SHAPE_SCALAR, sum.count, &sum.list));
    for (int64_t i = 0; i < MOST; i++) sum.values[i] = NEVER;
    for (int step = 0; step < 8; step++) {
      const int64_t at = (int64_t)tfc_random_below(&r, (uint64_t)sum.count);
      struct tfc_list *reserved = NULL, *one = NULL;
      assert_ok(tfc_list_reserve(TFC_INT64, &TFC_SHAPE_SCALAR, sum.count, &reserved));
      assert_ok(tfc_list_change(reserved, sum.count, at, tfc_random_below(&r, 2), &one));
      put(tfc_list_at(one, at), step + 1);
      struct tfc_list_chunk *const before = sum.list->chunks[0];
      struct tfc_tensor a = variant_of(sum.list), b = variant_of(one), c = {0};
      assert_ok(step % 2 ? tfc_variant_add(&ctx, &a, &b, &c) : tfc_variant_add(&ctx, &b, &a, &c));
      struct tfc_object *made = *(struct tfc_object **)c.data;
      sum.list = (struct tfc_list *)made;
      sum.values[at] = sum.values[at] == NEVER ? step + 1 : sum.values[at] + step + 1;
      tfc_object_retain(made);
      if (at >= TFC_LIST_CHUNK) assert_ptr_equal(sum.list->chunks[0], before);
      tfc_tensor_release(&a), tfc_tensor_release(&b), tfc_tensor_release(&c);
      compare(&sum);
      for (int64_t i = 0; i < reserved->count && reserved->chunks[i / TFC_LIST_CHUNK]; i++)
        assert_int_equal(tfc_list_at(reserved, i)->dtype, TFC_DTYPE_NONE);
      tfc_object_release(&reserved->object);
    }
    drop(&sum);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(changes), cmocka_unit_test(moved), cmocka_unit_test(added)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
