// Large buffers get the memory of released ones. While a buffer is in use, no other buffer has its memory.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/graph/kept_buffer.h"

static void memory_comes_back(void **state) {
  (void)state;
  struct tfc_buffer *a = NULL, *b = NULL, *c = NULL;
  assert_ok(tfc_buffer_create_kept(3 << 20, &a));
  assert_int_equal((uintptr_t)a->data % 64, 0);
  assert_ok(tfc_buffer_create_kept(3 << 20, &b));
  void *first = a->data;
  assert_ptr_not_equal(first, b->data);
  memset(b->data, 1, b->size);
  tfc_buffer_release(a);
  assert_ok(tfc_buffer_create_kept(2 << 20, &c));
  assert_ptr_equal(c->data, first);
  assert_int_equal(c->size, 2 << 20);
  memset(c->data, 2, c->size);
  assert_int_equal(((char *)b->data)[b->size - 1], 1);
  tfc_buffer_release(b);
  tfc_buffer_release(c);
  assert_ok(tfc_buffer_create_kept(1 << 20, &a)); // the two kept blocks are too large for this buffer
  assert_ptr_not_equal(a->data, first);
  tfc_buffer_release(a);
}

static void clones(void **state) {
  (void)state;
  struct tfc_tensor t = {0}, copy = {0}, words = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(1000, 1000), &t));
  for (int i = 0; i < 1000000; i++) ((float *)t.data)[i] = (float)i;
  assert_ok(tfc_tensor_clone_kept(&t, &copy));
  assert_ptr_not_equal(copy.data, t.data);
  assert_true(tfc_shape_equal(&copy.shape, &t.shape));
  assert_memory_equal(copy.data, t.data, t.size);
  tfc_tensor_release(&copy);
  tfc_tensor_release(&t);
  assert_ok(tfc_tensor_create(TFC_STRING, &TFC_SHAPE(1), &words));
  assert_ok(tfc_tensor_set_string(&words, 0, TFC_STR("word")));
  assert_ok(tfc_tensor_clone_kept(&words, &copy));
  assert_true(tfc_str_is(tfc_tensor_get_string(&copy, 0), "word"));
  tfc_tensor_release(&copy);
  tfc_tensor_release(&words);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(memory_comes_back), cmocka_unit_test(clones)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
