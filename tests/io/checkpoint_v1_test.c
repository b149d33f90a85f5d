#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/io/checkpoint_v1.h"

#define TENSORFLOWS TFC_SOURCE_DIR "/tests/io/golden/first_format.ckpt" // this file has a compressed block

static void tensorflows_is_read(void **state) {
  (void)state;
  struct tfc_checkpoint_v1 *c = NULL;
  struct tfc_tensor t;
  assert_ok(tfc_checkpoint_v1_open(TENSORFLOWS, &c));
  assert_ok(tfc_checkpoint_v1_read(c, TFC_STR("repeated"), NULL, NULL, &t));
  assert_int_equal(t.dtype, TFC_FLOAT);
  assert_true(tfc_shape_equal(&t.shape, &TFC_SHAPE(40, 8)));
  for (int i = 0; i < 320; i++) assert_true(((float *)t.data)[i] == (float)(i % 8));
  tfc_tensor_release(&t);
  assert_ok(tfc_checkpoint_v1_read(c, TFC_STR("whole"), NULL, NULL, &t));
  assert_memory_equal(t.data, ((int64_t[]){1, -2, 3}), 24);
  tfc_tensor_release(&t);
  assert_ok(tfc_checkpoint_v1_read(c, TFC_STR("text"), NULL, NULL, &t));
  assert_true(tfc_str_equal(tfc_tensor_get_string(&t, 0), (tfc_str){"a\0b", 3}));
  tfc_tensor_release(&t);
  // Reads a tensor that is stored in two slices of columns: first all of it, then a part that needs both slices.
  assert_ok(tfc_checkpoint_v1_read(c, TFC_STR("parts"), NULL, NULL, &t));
  for (int i = 0; i < 24; i++) assert_true(((float *)t.data)[i] == (float)i);
  tfc_tensor_release(&t);
  assert_ok(tfc_checkpoint_v1_read(c, TFC_STR("parts"), (int64_t[]){1, 2}, (int64_t[]){2, 3}, &t));
  assert_memory_equal(t.data, ((float[]){8, 9, 10, 14, 15, 16}), 24);
  tfc_tensor_release(&t);
  assert_fails(tfc_checkpoint_v1_read(c, TFC_STR("parts"), (int64_t[]){1, 4}, (int64_t[]){2, 3}, &t),
               TFC_INVALID_ARGUMENT, "'parts'");
  assert_fails(tfc_checkpoint_v1_read(c, TFC_STR("nothing"), NULL, NULL, &t), TFC_NOT_FOUND, "nothing");
  tfc_checkpoint_v1_close(c);
  assert_fails(tfc_checkpoint_v1_open("/nonexistent/x*", &c), TFC_NOT_FOUND, "/nonexistent/x*");
  assert_fails(tfc_checkpoint_v1_open(TFC_SOURCE_DIR "/LICENSE", &c), TFC_INVALID_ARGUMENT, "LICENSE");
}

// Every type, an empty tensor, a name with unusual bytes, and slices are written and read back.
static void what_is_written_is_read(void **state) {
  (void)state;
  static const tfc_dtype types[] = {TFC_FLOAT, TFC_DOUBLE, TFC_INT32, TFC_INT64,    TFC_INT8,     TFC_INT16,
                                    TFC_UINT8, TFC_BOOL,   TFC_HALF,  TFC_BFLOAT16, TFC_COMPLEX64};
  enum { n = sizeof types / sizeof *types };
  struct tfc_checkpoint_item items[n + 3];
  struct tfc_tensor values[n + 3], t;
  const struct tfc_shape whole = TFC_SHAPE(300, 2);
  static const int64_t offsets[2][2] = {{0, 0}, {100, 0}};
  struct tfc_checkpoint_v1 *c = NULL;
  char names[n][16], path[] = "/tmp/tfc_checkpoint_v1_XXXXXX";
  assert_true(close(mkstemp(path)) == 0);
  for (int k = 0; k < n; k++) {
    assert_ok(tfc_tensor_create(types[k], &TFC_SHAPE(3, 70), &values[k]));
    for (size_t i = 0; i < values[k].size; i++)
      ((char *)values[k].data)[i] = (char)(types[k] == TFC_BOOL ? i & 1 : (i * 37 + i / 64) & 0x7f);
    snprintf(names[k], sizeof names[k], "%c\xff%d", 'z' - k, k);
    items[k] = (struct tfc_checkpoint_item){.name = tfc_str_from(names[k]), .tensor = &values[k]};
  }
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(0, 4), &values[n]));
  items[n] = (struct tfc_checkpoint_item){.name = TFC_STR("empty"), .tensor = &values[n]};
  for (int k = 0; k < 2; k++) { // [300, 2] in two slices of rows
    assert_ok(tfc_tensor_create(TFC_INT32, &TFC_SHAPE(k ? 200 : 100, 2), &values[n + 1 + k]));
    for (int i = 0; i < (k ? 400 : 200); i++) ((int32_t *)values[n + 1 + k].data)[i] = i + 200 * k - 150;
    items[n + 1 + k] = (struct tfc_checkpoint_item){
        .name = TFC_STR("rows"), .tensor = &values[n + 1 + k], .whole = &whole, .offsets = offsets[k]};
  }
  assert_ok(tfc_checkpoint_v1_write(path, items, n + 3));
  assert_ok(tfc_checkpoint_v1_open(path, &c));
  for (int k = 0; k <= n; k++) {
    assert_ok(tfc_checkpoint_v1_read(c, items[k].name, NULL, NULL, &t));
    assert_int_equal(t.dtype, values[k].dtype);
    assert_true(tfc_shape_equal(&t.shape, &values[k].shape));
    if (t.size) assert_memory_equal(t.data, values[k].data, t.size);
    tfc_tensor_release(&t);
  }
  assert_ok(tfc_checkpoint_v1_read(c, TFC_STR("rows"), (int64_t[]){99, 0}, (int64_t[]){2, 2}, &t));
  assert_memory_equal(t.data, ((int32_t[]){48, 49, 50, 51}), 16);
  tfc_tensor_release(&t);
  tfc_checkpoint_v1_close(c);
  unlink(path);
  for (int k = 0; k < n + 3; k++) tfc_tensor_release(&values[k]);
}

// Slices that overlap are an error: a short file could name a long one again and again.
static void slices_overlap(void **state) {
  (void)state;
  struct tfc_checkpoint_item items[2];
  struct tfc_tensor values[2], t;
  const struct tfc_shape whole = TFC_SHAPE(300, 2);
  static const int64_t offsets[2][2] = {{0, 0}, {100, 0}};
  struct tfc_checkpoint_v1 *c = NULL;
  char path[] = "/tmp/tfc_checkpoint_v1_XXXXXX";
  assert_true(close(mkstemp(path)) == 0);
  for (int k = 0; k < 2; k++) {
    assert_ok(tfc_tensor_create(TFC_INT32, &TFC_SHAPE(200, 2), &values[k]));
    for (int i = 0; i < 400; i++) ((int32_t *)values[k].data)[i] = i;
    items[k] = (struct tfc_checkpoint_item){
        .name = TFC_STR("rows"), .tensor = &values[k], .whole = &whole, .offsets = offsets[k]};
  }
  assert_ok(tfc_checkpoint_v1_write(path, items, 2));
  assert_ok(tfc_checkpoint_v1_open(path, &c));
  assert_fails(tfc_checkpoint_v1_read(c, TFC_STR("rows"), NULL, NULL, &t), TFC_INVALID_ARGUMENT,
               "tensor 'rows': its slices overlap");
  // a part that only one of them has
  assert_ok(tfc_checkpoint_v1_read(c, TFC_STR("rows"), (int64_t[]){10, 0}, (int64_t[]){2, 2}, &t));
  assert_memory_equal(t.data, ((int32_t[]){20, 21, 22, 23}), 16);
  tfc_tensor_release(&t);
  tfc_checkpoint_v1_close(c);
  unlink(path);
  for (int k = 0; k < 2; k++) tfc_tensor_release(&values[k]);
}

// A file with a changed byte gives an error or can be opened; a file without its end gives an error. None crashes.
static void damage_is_found(void **state) {
  (void)state;
  struct tfc_file file;
  char path[] = "/tmp/tfc_checkpoint_v1_XXXXXX";
  assert_true(close(mkstemp(path)) == 0);
  assert_ok(tfc_file_map(TENSORFLOWS, &file));
  char *copy = malloc(file.size);
  assert_non_null(copy);
  for (size_t i = 0; i < 2 * file.size; i++) {
    struct tfc_checkpoint_v1 *c = NULL;
    memcpy(copy, file.data, file.size);
    if (i < file.size) copy[i] = (char)(copy[i] ^ 0x41);
    assert_ok(tfc_file_write(path, (tfc_str){copy, i < file.size ? file.size : i - file.size}));
    tfc_status s = tfc_checkpoint_v1_open(path, &c);
    if (i >= file.size) assert_non_null(s);
    tfc_status_free(s);
    tfc_checkpoint_v1_close(c);
  }
  free(copy);
  tfc_file_unmap(&file);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tensorflows_is_read), cmocka_unit_test(what_is_written_is_read),
                                     cmocka_unit_test(slices_overlap), cmocka_unit_test(damage_is_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
