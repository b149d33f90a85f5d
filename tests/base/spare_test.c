#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/arena.h"
#include "runtime/base/memory_account.h"
#include "runtime/base/spare.h"

enum { KB = 1024 };

static void give(size_t bytes) {
  void *memory = malloc(bytes);
  assert_non_null(memory);
  tfc_spare_give(memory, bytes);
}

static void nothing_is_kept_until_asked_for(void **state) {
  (void)state;
  struct tfc_spare spare;
  size_t bytes;
  tfc_spare_init(&spare);
  assert_null(tfc_spare_enter(&spare));
  give(100 * KB);
  assert_null(tfc_spare_take(100 * KB, &bytes));
  tfc_spare_enter(NULL);
  assert_null(tfc_spare_take(100 * KB, &bytes));
  give(100 * KB);
  tfc_spare_enter(NULL);
  tfc_spare_deinit(&spare);
}

static void the_smallest_piece_that_is_large_enough_is_taken(void **state) {
  (void)state;
  struct tfc_spare spare;
  size_t bytes = 0;
  const uint64_t before = tfc_account_host()->taken;
  tfc_spare_init(&spare);
  assert_null(tfc_spare_enter(&spare));
  spare.keeps = true;
  give(300 * KB), give(100 * KB), give(200 * KB), give(KB);
  assert_int_equal(tfc_account_host()->taken - before, 600 * KB); // the smallest was freed
  void *piece = tfc_spare_take(150 * KB, &bytes);
  assert_int_equal(bytes, 200 * KB);
  assert_int_equal(tfc_account_host()->taken - before, 400 * KB);
  assert_null(tfc_spare_take(400 * KB, &bytes));
  tfc_spare_give(piece, 200 * KB);
  assert_non_null(piece = tfc_spare_take(40 * KB, &bytes));
  assert_int_equal(bytes, 100 * KB);
  free(piece);
  assert_null(tfc_spare_take(40 * KB, &bytes)); // 200 KB are too much for it
  tfc_spare_enter(NULL);
  tfc_spare_deinit(&spare);
  assert_int_equal(tfc_account_host()->taken, before);
}

static void pieces_beyond_the_most_are_freed(void **state) {
  (void)state;
  struct tfc_spare spare;
  const uint64_t before = tfc_account_host()->taken;
  tfc_spare_init(&spare);
  assert_null(tfc_spare_enter(&spare));
  spare.keeps = true;
  for (int i = 0; i < TFC_SPARE_MOST + 3; i++) give(64 * KB);
  assert_int_equal(tfc_account_host()->taken - before, TFC_SPARE_MOST * 64 * KB);
  tfc_spare_enter(NULL);
  tfc_spare_deinit(&spare);
  assert_int_equal(tfc_account_host()->taken, before);
}

#if !defined(__SANITIZE_ADDRESS__) // under which arenas have a block for each piece
static void an_arena_uses_the_blocks_of_the_one_before(void **state) {
  (void)state;
  struct tfc_spare spare;
  const uint64_t before = tfc_account_host()->taken;
  tfc_spare_init(&spare);
  assert_null(tfc_spare_enter(&spare));
  spare.keeps = true;
  struct tfc_arena arena = {.block_size = 64 * KB};
  char *first = tfc_arena_alloc(&arena, 50 * KB);
  assert_non_null(first);
  memset(first, 1, 50 * KB);
  assert_non_null(tfc_arena_alloc(&arena, 500 * KB));
  tfc_arena_deinit(&arena);
  char *second = tfc_arena_zalloc(&arena, 40 * KB);
  assert_ptr_equal(second, first);
  for (int i = 0; i < 40 * KB; i++) assert_int_equal(second[i], 0);
  tfc_arena_deinit(&arena);
  tfc_spare_enter(NULL);
  tfc_spare_deinit(&spare);
  assert_int_equal(tfc_account_host()->taken, before);
}
#endif

static void an_array_uses_the_memory_of_the_one_before(void **state) {
  (void)state;
  struct tfc_spare spare;
  tfc_spare_init(&spare);
  assert_null(tfc_spare_enter(&spare));
  spare.keeps = true;
  TFC_ARRAY(double) numbers = {0};
  assert_true(tfc_spare_take_array(&numbers, 10000));
  assert_true(tfc_array_push(&numbers, 1.0));
  const double *first = numbers.data;
  tfc_spare_give_array(&numbers);
  assert_null(numbers.data);
  assert_true(tfc_spare_take_array(&numbers, 9000));
  assert_ptr_equal(numbers.data, first);
  assert_int_equal(numbers.count, 0);
  assert_int_equal(numbers.capacity, 10000);
  for (int i = 0; i < 20000; i++) assert_true(tfc_array_push(&numbers, (double)i)); // it grows as others do
  assert_true(numbers.data[19999] == 19999.0);
  tfc_spare_give_array(&numbers);
  tfc_spare_enter(NULL);
  tfc_spare_deinit(&spare);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_is_kept_until_asked_for),
    cmocka_unit_test(the_smallest_piece_that_is_large_enough_is_taken),
    cmocka_unit_test(pieces_beyond_the_most_are_freed),
#if !defined(__SANITIZE_ADDRESS__)
    cmocka_unit_test(an_arena_uses_the_blocks_of_the_one_before),
#endif
    cmocka_unit_test(an_array_uses_the_memory_of_the_one_before),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
