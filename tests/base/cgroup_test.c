// Tests which folders of control groups are visited, for lists of groups in both versions, and how small files are
// read.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *groups; // what /proc/self/cgroup says; NULL: there is no such file
static FILE *played_open(const char *path, const char *mode) {
  if (strcmp(path, "/proc/self/cgroup") != 0) return fopen(path, mode);
  return groups ? fmemopen((char *)(uintptr_t)groups, strlen(groups), "r") : NULL;
}

#define fopen played_open
#define tfc_read_small played_read_small
#define tfc_cgroup_visit played_cgroup_visit
#include "runtime/base/cgroup.c"

static void add(void *user, const char *folder, bool second) {
  tfc_text_printf(user, "%s %d\n", folder, second ? 2 : 1);
}
static void visits(const char *controller, const char *expected) {
  struct tfc_text text = {0};
  played_cgroup_visit(controller, add, &text);
  assert_string_equal(text.data, expected);
  tfc_text_deinit(&text);
}

static void test_visited(void **state) {
  (void)state;
  groups = "12:cpu,cpuacct:/a/b\n5:cpuset:/q\n3:memory:/docker/x\n7:name=systemd:/z\nnonsense\n4:memory\n0::/user/y\n";
#define SECOND "/sys/fs/cgroup/user/y 2\n/sys/fs/cgroup/user 2\n/sys/fs/cgroup/ 2\n/sys/fs/cgroup 2\n"
  visits("memory", "/sys/fs/cgroup/memory/docker/x 1\n/sys/fs/cgroup/memory/docker 1\n/sys/fs/cgroup/memory/ 1\n" SECOND
                   "/sys/fs/cgroup/memory 1\n");
  visits("cpu",
         "/sys/fs/cgroup/cpu/a/b 1\n/sys/fs/cgroup/cpu/a 1\n/sys/fs/cgroup/cpu/ 1\n" SECOND "/sys/fs/cgroup/cpu 1\n");
  visits("cpuacct", "/sys/fs/cgroup/cpuacct/a/b 1\n/sys/fs/cgroup/cpuacct/a 1\n/sys/fs/cgroup/cpuacct/ 1\n" SECOND
                    "/sys/fs/cgroup/cpuacct 1\n");
  visits("pids", SECOND "/sys/fs/cgroup/pids 1\n");
  groups = "0::/\n";
  visits("memory", "/sys/fs/cgroup/ 2\n/sys/fs/cgroup 2\n/sys/fs/cgroup/memory 1\n");
  groups = NULL;
  visits("memory", "/sys/fs/cgroup 2\n/sys/fs/cgroup/memory 1\n");
}

static void test_small_files(void **state) {
  (void)state;
  char path[] = "/tmp/tfc-cgroup-XXXXXX", text[8] = "before";
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_false(played_read_small(path, text, sizeof text)); // empty
  assert_int_equal(write(fd, "123\n", 4), 4);
  assert_true(played_read_small(path, text, sizeof text));
  assert_string_equal(text, "123\n");
  assert_int_equal(write(fd, "456789", 6), 6);
  assert_true(played_read_small(path, text, sizeof text)); // only the beginning
  assert_string_equal(text, "123\n456");
  close(fd);
  unlink(path);
  assert_false(played_read_small(path, text, sizeof text));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_visited), cmocka_unit_test(test_small_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
