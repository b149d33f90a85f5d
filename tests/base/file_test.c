// Tests tfc_file with paths that are not regular files, and with files or links that already have a temporary file's
// name.
#include "tests/common/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "tests/common/folder.h"

static char folder[64];

static void pipes_do_not_block(void **state) {
  (void)state;
  char path[128];
  struct tfc_file file;
  snprintf(path, sizeof path, "%s/pipe", folder);
  assert_int_equal(mkfifo(path, 0600), 0);
  alarm(20); // ends the suite if a call never returns
  assert_fails(tfc_file_map(path, &file), TFC_INVALID_ARGUMENT, "not a regular file");
  assert_fails(tfc_file_write(path, TFC_STR("text")), TFC_DATA_LOSS, "nobody reads");
  int reader = open(path, O_RDONLY | O_NONBLOCK);
  char text[8] = "";
  assert_ok(tfc_file_write(path, TFC_STR("text")));
  assert_int_equal(read(reader, text, sizeof text), 4);
  assert_string_equal(text, "text");
  close(reader);
  unlink(path);
  alarm(0);
}

static void links_are_not_written_through(void **state) {
  (void)state;
  char path[128], temporary[160], precious[128], text[16] = "";
  snprintf(path, sizeof path, "%s/out", folder);
  snprintf(temporary, sizeof temporary, "%s.%d.tmp", path, (int)getpid());
  snprintf(precious, sizeof precious, "%s/precious", folder);
  assert_ok(tfc_file_write(precious, TFC_STR("precious")));
  assert_int_equal(symlink(precious, temporary), 0);
  assert_ok(tfc_file_write(path, TFC_STR("text")));
  FILE *f = fopen(precious, "r");
  assert_true(fgets(text, sizeof text, f) && !strcmp(text, "precious"));
  fclose(f);
  f = fopen(path, "r");
  assert_true(fgets(text, sizeof text, f) && !strcmp(text, "text"));
  fclose(f);
  unlink(path), unlink(precious);
}

// A file with a hole may be larger than any disk. As a document it is refused at once; as a file it is mapped.
static void a_document_is_no_larger_than_2_gib(void **state) {
  (void)state;
  char path[128];
  struct tfc_file file;
  snprintf(path, sizeof path, "%s/large", folder);
  const int fd = open(path, O_CREAT | O_WRONLY, 0600);
  assert_true(fd >= 0);
  assert_int_equal(ftruncate(fd, (off_t)2 << 30), 0);
  assert_ok(tfc_file_map_document(path, &file));
  assert_true(file.size == (size_t)2 << 30);
  tfc_file_unmap(&file);
  assert_int_equal(ftruncate(fd, ((off_t)2 << 30) + 1), 0);
  assert_fails(tfc_file_map_document(path, &file), TFC_INVALID_ARGUMENT, "large: larger than 2 GiB");
  assert_ok(tfc_file_map(path, &file));
  tfc_file_unmap(&file);
  close(fd);
  unlink(path);
}

// The last test of this suite, because what it forbids stays forbidden for the process.
static void nothing_is_written_where_that_is_forbidden(void **state) {
  (void)state;
  char path[128], parents[160];
  struct tfc_file file;
  snprintf(path, sizeof path, "%s/there", folder);
  snprintf(parents, sizeof parents, "%s/folder/file", folder);
  assert_ok(tfc_file_write(path, TFC_STR("text")));
  tfc_file_forbid_writing();
  assert_fails(tfc_file_write(path, TFC_STR("other")), TFC_FAILED_PRECONDITION, path);
  assert_fails(tfc_file_make_parents(parents), TFC_FAILED_PRECONDITION, parents);
  assert_int_equal(tfc_os.open(parents, O_WRONLY | O_CREAT, 0600), -1);
  assert_int_equal(tfc_os.open(path, O_RDWR, 0), -1);
  assert_int_equal(tfc_os.rename(path, parents), -1);
  assert_ok(tfc_file_map(path, &file));
  assert_true(tfc_str_is((tfc_str){(const char *)file.data, file.size}, "text"));
  tfc_file_unmap(&file);
  unlink(path);
}

static int set_up(void **state) {
  (void)state;
  return test_folder_make(folder, "file");
}
static int tear_down(void **state) {
  (void)state;
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pipes_do_not_block),
      cmocka_unit_test(links_are_not_written_through),
      cmocka_unit_test(a_document_is_no_larger_than_2_gib),
      cmocka_unit_test(nothing_is_written_where_that_is_forbidden),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
