#include "tests/common/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/random.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/events.h"
#include "tests/common/folder.h"
#include "tests/common/scalar.h"

static char directory[TEST_FOLDER_SIZE];
static char path_buffer[4096];
static const char *in_directory(const char *name) {
  snprintf(path_buffer, sizeof path_buffer, "%s/%s", directory, name);
  return path_buffer;
}

// Tests the published check value of CRC-32C, the same text in two pieces whose lengths are not multiples of 8, and a
// text of no bytes.
static void checksums_are_castagnolis(void **state) {
  (void)state;
  assert_int_equal(tfc_crc32c(0, "123456789", 9), 0xe3069283u);
  assert_int_equal(tfc_crc32c(tfc_crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
  assert_int_equal(tfc_crc32c(0, "", 0), 0);
}

// tfc can read a checkpoint that TensorFlow wrote.
static void tensorflows_is_read(void **state) {
  (void)state;
  struct tfc_checkpoint *c = NULL;
  size_t n;
  assert_ok(tfc_checkpoint_open(TFC_SOURCE_DIR "/examples/checkpoint/mlp-5", &c));
  const struct tfc_checkpoint_entry *entries = tfc_checkpoint_entries(c, &n);
  assert_true(n >= 6);
  for (size_t i = 0; i < n; i++) {
    struct tfc_tensor t;
    assert_ok(tfc_checkpoint_read(c, entries[i].name, &t));
    assert_true(tfc_shape_equal(&t.shape, &entries[i].shape));
    tfc_tensor_release(&t);
  }
  const struct tfc_checkpoint_entry *kernel = tfc_checkpoint_find(c, TFC_STR("hidden1/kernel"));
  assert_non_null(kernel);
  assert_int_equal(kernel->dtype, TFC_FLOAT);
  assert_true(tfc_shape_equal(&kernel->shape, &TFC_SHAPE(784, 256)));
  struct tfc_tensor t;
  assert_fails(tfc_checkpoint_read(c, TFC_STR("nothing"), &t), TFC_NOT_FOUND, "'nothing'");
  tfc_checkpoint_close(c);
  assert_fails(tfc_checkpoint_open("/nonexistent/x", &c), TFC_NOT_FOUND, "/nonexistent/x.index");
}

static void write_sample(const char *prefix) {
  struct tfc_tensor numbers, texts, empty, parts[3];
  assert_ok(tfc_tensor_create(TFC_INT64, &TFC_SHAPE(2, 3), &numbers));
  for (int i = 0; i < 6; i++) ((int64_t *)numbers.data)[i] = i * 1000003 - 7;
  assert_ok(tfc_tensor_create(TFC_STRING, &TFC_SHAPE(2), &texts));
  assert_ok(tfc_tensor_set_string(&texts, 1, TFC_STR("a\0b")));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(0, 4), &empty));
  // A matrix [300, 2] in three slices of rows.
  struct tfc_shape whole = TFC_SHAPE(300, 2);
  int64_t starts[3][2] = {{0, 0}, {100, 0}, {170, 0}}, rows[3] = {100, 70, 130};
  struct tfc_checkpoint_item items[8] = {{TFC_STR("z/numbers"), &numbers, NULL, NULL},
                                         {TFC_STR("texts"), &texts, NULL, NULL},
                                         {TFC_STR("empty"), &empty, NULL, NULL}};
  for (int p = 0; p < 3; p++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(rows[p], 2), &parts[p]));
    for (int64_t i = 0; i < rows[p] * 2; i++) ((float *)parts[p].data)[i] = (float)(starts[p][0] * 2 + i);
    items[3 + p] = (struct tfc_checkpoint_item){TFC_STR("parts"), &parts[p], &whole, starts[p]};
  }
  assert_ok(tfc_checkpoint_write(prefix, items, 6));
  for (int p = 0; p < 3; p++) tfc_tensor_release(&parts[p]);
  tfc_tensor_release(&numbers);
  tfc_tensor_release(&texts);
  tfc_tensor_release(&empty);
}

static void ours_is_read(void **state) {
  (void)state;
  struct tfc_checkpoint *c = NULL;
  struct tfc_tensor t;
  size_t n;
  write_sample(in_directory("ours"));
  assert_ok(tfc_checkpoint_open(in_directory("ours"), &c));
  tfc_checkpoint_entries(c, &n);
  assert_int_equal(n, 4);
  assert_ok(tfc_checkpoint_read(c, TFC_STR("z/numbers"), &t));
  for (int i = 0; i < 6; i++) assert_int_equal(((int64_t *)t.data)[i], i * 1000003 - 7);
  tfc_tensor_release(&t);
  assert_ok(tfc_checkpoint_read(c, TFC_STR("texts"), &t));
  assert_int_equal(tfc_tensor_get_string(&t, 0).size, 0);
  assert_true(tfc_str_equal(tfc_tensor_get_string(&t, 1), TFC_STR("a\0b")));
  tfc_tensor_release(&t);
  assert_ok(tfc_checkpoint_read(c, TFC_STR("empty"), &t));
  tfc_tensor_release(&t);
  assert_ok(tfc_checkpoint_read(c, TFC_STR("parts"), &t));
  assert_true(tfc_shape_equal(&t.shape, &TFC_SHAPE(300, 2)));
  for (int i = 0; i < 600; i++) assert_true(((float *)t.data)[i] == (float)i);
  tfc_tensor_release(&t);
  tfc_checkpoint_close(c);
}

static char *copy_file(const char *name, size_t *size) {
  struct tfc_file file;
  assert_ok(tfc_file_map(in_directory(name), &file));
  char *copy = malloc(file.size + 1);
  memcpy(copy, file.data, file.size);
  *size = file.size;
  tfc_file_unmap(&file);
  return copy;
}

// A flipped bit or a missing end gives an error; in the index, it may also have no effect.
static void damage_is_noticed(void **state) {
  (void)state;
  struct tfc_random random;
  size_t index_size, data_size, failures = 0;
  tfc_random_init(&random, 1);
  write_sample(in_directory("ours"));
  char *index = copy_file("ours.index", &index_size), *data = copy_file("ours.data-00000-of-00001", &data_size);
  for (int round = 0; round < 400; round++) {
    struct tfc_checkpoint *c = NULL;
    bool in_index = round % 2;
    size_t size = in_index ? index_size : data_size, at = (size_t)tfc_random_below(&random, size);
    char *bytes = in_index ? index : data, bit = (char)(1 << tfc_random_below(&random, 8));
    size_t cut = round % 7 == 0 ? at : size;
    bytes[at] ^= bit;
    assert_ok(
        tfc_file_write(in_directory(in_index ? "ours.index" : "ours.data-00000-of-00001"), (tfc_str){bytes, cut}));
    bytes[at] ^= bit;
    tfc_status s = tfc_checkpoint_open(in_directory("ours"), &c);
    size_t n = 0;
    const struct tfc_checkpoint_entry *entries = s ? NULL : tfc_checkpoint_entries(c, &n);
    for (size_t i = 0; i < n && !s; i++) {
      struct tfc_tensor t;
      s = tfc_checkpoint_read(c, entries[i].name, &t);
      if (!s) tfc_tensor_release(&t);
    }
    failures += s != NULL;
    if (!in_index) assert_non_null(s); // every byte of data belongs to a tensor
    tfc_status_free(s);
    tfc_checkpoint_close(c);
    assert_ok(tfc_file_write(in_directory("ours.index"), (tfc_str){index, index_size}));
    assert_ok(tfc_file_write(in_directory("ours.data-00000-of-00001"), (tfc_str){data, data_size}));
  }
  assert_true(failures > 300);
  free(index);
  free(data);
}

static int fail_after;
static ssize_t failing_write(int fd, const void *data, size_t size) {
  if (fail_after-- > 0) return write(fd, data, size);
  errno = ENOSPC;
  return -1;
}
static void full_disk_keeps_the_old(void **state) {
  (void)state;
  struct tfc_os_calls saved = tfc_os;
  struct tfc_tensor t, back;
  struct tfc_checkpoint *c = NULL;
  write_sample(in_directory("kept"));
  assert_ok(scalar_f32(1, &t));
  struct tfc_checkpoint_item item = {TFC_STR("t"), &t, NULL, NULL};
  tfc_os.write = failing_write;
  fail_after = 0;
  assert_fails(tfc_checkpoint_write(in_directory("kept"), &item, 1), TFC_DATA_LOSS, "kept.data-00000-of-00001");
  tfc_os = saved;
  assert_ok(tfc_checkpoint_open(in_directory("kept"), &c));
  assert_ok(tfc_checkpoint_read(c, TFC_STR("parts"), &back));
  tfc_tensor_release(&back);
  tfc_checkpoint_close(c);
  tfc_tensor_release(&t);
}

static void events_are_records(void **state) {
  (void)state;
  struct tfc_events *e = NULL;
  assert_ok(tfc_events_create(in_directory("logs"), &e));
  assert_ok(tfc_events_scalar(e, 1, TFC_STR("loss"), 0.5f));
  assert_ok(tfc_events_scalar(e, 2, TFC_STR("loss"), 0.25f));
  assert_ok(tfc_events_close(e));
  assert_fails(tfc_events_create("/proc/nothing/here", &e), TFC_DATA_LOSS, "/proc/nothing/here");
}

static int make_directory(void **state) {
  (void)state;
  return test_folder_make(directory, "checkpoint");
}
static int remove_directory(void **state) {
  (void)state;
  return getenv("TFC_KEEP") ? (puts(directory), 0) : test_folder_remove(directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(checksums_are_castagnolis),
      cmocka_unit_test(tensorflows_is_read),
      cmocka_unit_test(ours_is_read),
      cmocka_unit_test(damage_is_noticed),
      cmocka_unit_test(full_disk_keeps_the_old),
      cmocka_unit_test(events_are_records),
  };
  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
