// Tests that reading a short table (the index of a checkpoint) needs little time and memory, whatever is in it.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/graph/wire.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/table.h"

static void put_u32(struct tfc_text *out, uint32_t v) {
  tfc_text_add(out, (tfc_str){(const char *)&v, 4});
}

static void put_entry(struct tfc_text *block, uint64_t shared, tfc_str own, tfc_str value) {
  tfc_wire_put_varint(block, shared);
  tfc_wire_put_varint(block, own.size);
  tfc_wire_put_varint(block, value.size);
  tfc_text_add(block, own);
  tfc_text_add(block, value);
}

// Ends a block, adds it to the file, and writes where it lies.
static void put_block(struct tfc_text *file, struct tfc_text *block, struct tfc_text *out_handle) {
  put_u32(block, 0);
  put_u32(block, 1);
  tfc_wire_put_varint(out_handle, file->size);
  tfc_wire_put_varint(out_handle, block->size);
  tfc_text_add(block, (tfc_str){"\0", 1});
  tfc_text_add(file, tfc_text_view(block));
  put_u32(file, tfc_crc32c_mask(tfc_crc32c(0, block->data, block->size)));
  tfc_text_deinit(block);
}

static void put_footer(struct tfc_text *file, struct tfc_text *index) {
  static const uint64_t magic = 0xdb4775248b80fb57u;
  struct tfc_text handle = {0}, footer = {0};
  put_block(file, index, &handle);
  tfc_text_add(&footer, tfc_text_view(&handle)); // of meta blocks, which nobody reads
  tfc_text_add(&footer, tfc_text_view(&handle));
  while (footer.size < 40) tfc_text_add(&footer, (tfc_str){"\0", 1});
  tfc_text_add(&footer, (tfc_str){(const char *)&magic, 8});
  tfc_text_add(file, tfc_text_view(&footer));
  assert_false(file->failed);
  tfc_text_deinit(&handle);
  tfc_text_deinit(&footer);
}

// The index names one block many times.
static void one_block_many_times(void **state) {
  (void)state;
  for (int times = 1; times < 3; times++) {
    struct tfc_text file = {0}, block = {0}, index = {0}, handle = {0};
    struct tfc_arena arena = {0};
    struct tfc_table_entry *entries = NULL;
    size_t count = 0;
    put_entry(&block, 0, TFC_STR("key"),
              TFC_STR("a value that is longer than the index of the table will be, so that "
                      "two such blocks are longer than the whole file"));
    put_block(&file, &block, &handle);
    for (int i = 0; i < times; i++) put_entry(&index, 0, TFC_STR(""), tfc_text_view(&handle));
    put_footer(&file, &index);
    tfc_status s = tfc_table_read(tfc_text_view(&file), &arena, &entries, &count);
    if (times == 1) {
      assert_ok(s);
      assert_int_equal(count, 1);
      assert_true(tfc_str_is(entries[0].key, "key"));
    } else {
      assert_fails(s, TFC_INVALID_ARGUMENT, "its blocks overlap");
    }
    tfc_arena_deinit(&arena);
    tfc_text_deinit(&file);
    tfc_text_deinit(&handle);
  }
}

// Each key repeats the long one before it.
static void long_keys(void **state) {
  (void)state;
  enum { LONG = 1 << 20 };
  struct tfc_text file = {0}, block = {0}, index = {0}, handle = {0}, key = {0};
  struct tfc_arena arena = {0};
  struct tfc_table_entry *entries = NULL;
  size_t count = 0;
  for (int i = 0; i < LONG; i++) tfc_text_add(&key, TFC_STR("k"));
  put_entry(&block, 0, tfc_text_view(&key), TFC_STR(""));
  for (int i = 0; i < 3000; i++) put_entry(&block, LONG, TFC_STR(""), TFC_STR(""));
  put_block(&file, &block, &handle);
  put_entry(&index, 0, TFC_STR(""), tfc_text_view(&handle));
  put_footer(&file, &index);
  assert_fails(tfc_table_read(tfc_text_view(&file), &arena, &entries, &count), TFC_INVALID_ARGUMENT, "absurdly long");
  assert_true(arena.used < (size_t)200 << 20);
  tfc_arena_deinit(&arena);
  tfc_text_deinit(&file);
  tfc_text_deinit(&handle);
  tfc_text_deinit(&key);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_block_many_times), cmocka_unit_test(long_keys)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
