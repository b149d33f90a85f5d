// Tests which limit of memory counts, and how much it leaves: the files of the kernel and the limits of the process are
// played, so that each value follows by hand.
#include "tests/common/test.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

// A file of the kernel; NULL: it does not exist.
static struct { const char *path, *text; } files[16];
static struct rlimit limits[2]; // of the address space and of data

static bool played_read(const char *path, char *out, size_t size);
static int played_limit(int which, struct rlimit *out);

#define tfc_read_small played_read
#define getrlimit played_limit
#define tfc_cgroup_visit played_visit
#define tfc_memory_limit played_memory_limit
#define tfc_memory_bound played_memory_bound
#define tfc_memory_grant played_grant
#define tfc_memory_give_back played_give_back
#define tfc_memory_mark played_mark
#define tfc_memory_kills played_kills
#include "runtime/base/memory_left.c"
#undef tfc_read_small
#undef getrlimit

static bool played_read(const char *path, char *out, size_t size) {
  for (size_t i = 0; i < 16 && files[i].path; i++)
    if (strcmp(files[i].path, path) == 0 && files[i].text) {
      snprintf(out, size, "%s", files[i].text);
      return true;
    }
  return false;
}
static int played_limit(int which, struct rlimit *out) {
  *out = limits[which == RLIMIT_DATA];
  return 0;
}
void played_visit(const char *controller, void (*visit)(void *user, const char *folder, bool second), void *user) {
  assert_string_equal(controller, "memory");
  visit(user, "/g/own", true);
  visit(user, "/g/first", false);
}

static void put(const char *path, const char *text) {
  for (size_t i = 0; i < 16; i++)
    if (!files[i].path || strcmp(files[i].path, path) == 0) {
      files[i].path = path, files[i].text = text;
      return;
    }
  fail_msg("no room for %s", path);
}
static int reset(void **state) {
  (void)state;
  memset(files, 0, sizeof files);
  limits[0] = limits[1] = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
  played_memory_limit(UINT64_MAX);
  atomic_store(&granted, 0), atomic_store(&allowed, 0), other = 0;
  put("/proc/meminfo", "MemTotal:       1000000 kB\nMemFree:   5 kB\nMemAvailable:   400000 kB\nSwapTotal:  50000 kB\n"
                       "SwapFree: 20000 kB\n");
  put("/proc/self/statm", "5000 1000 10 10 0 3000 0\n"); // pages
  return 0;
}
static void bound_is(const char *what, uint64_t limit, uint64_t used) {
  struct tfc_memory_bound b = {0};
  played_memory_bound(&b);
  assert_string_equal(b.what, what);
  if (b.limit != limit || b.used != used || b.left != limit - used)
    fail_msg("limit %llu, used %llu, left %llu", (unsigned long long)b.limit, (unsigned long long)b.used,
             (unsigned long long)b.left);
}

static void test_machine(void **state) {
  (void)state;
  bound_is("this machine", 1024 * UINT64_C(1050000), 1024 * UINT64_C(630000));
  // Without a kernel that tells, nothing is known but what is in use.
  put("/proc/meminfo", "MemTotal: 1000000 kB\n");
  struct tfc_memory_bound b;
  played_memory_bound(&b);
  assert_true(b.left == UINT64_MAX && b.used == 1000 * (uint64_t)sysconf(_SC_PAGESIZE));
}

static void test_groups(void **state) {
  (void)state;
  put("/g/own/memory.max", "300000000\n");
  put("/g/own/memory.current", "100000000\n");
  bound_is("its control group", 300000000, 100000000);
  put("/g/own/memory.stat", "anon 1\nactive_file 7\ninactive_file 30000000\n"); // caches can be reclaimed
  bound_is("its control group", 300000000, 70000000);
  put("/g/own/memory.stat", "inactive_file 130000000\n");
  bound_is("its control group", 300000000, 0);
  put("/g/own/memory.max", "max\n");
  bound_is("this machine", 1024 * UINT64_C(1050000), 1024 * UINT64_C(630000));
  // Version 1 of control groups has other names for these files, and a large number for "no limit".
  put("/g/first/memory.limit_in_bytes", "9223372036854771712\n");
  put("/g/first/memory.usage_in_bytes", "5\n");
  bound_is("this machine", 1024 * UINT64_C(1050000), 1024 * UINT64_C(630000));
  put("/g/first/memory.limit_in_bytes", "90000000\n");
  put("/g/first/memory.usage_in_bytes", "50000000\n");
  put("/g/first/memory.stat", "inactive_file 9\ntotal_inactive_file 10000000\n");
  bound_is("its control group", 90000000, 40000000);
  put("/g/first/memory.usage_in_bytes", "95000000\n"); // more is in use than the limit allows
  put("/g/first/memory.stat", NULL);
  struct tfc_memory_bound b;
  played_memory_bound(&b);
  assert_true(b.limit == 90000000 && b.used == 95000000 && b.left == 0);
}

static void test_process(void **state) {
  (void)state;
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  limits[0].rlim_cur = 6000 * page;
  bound_is("ulimit -v", 6000 * page, 5000 * page);
  limits[1].rlim_cur = 3500 * page;
  bound_is("ulimit -d", 3500 * page, 3000 * page);
  played_memory_limit(1400 * page);
  bound_is("this process", 1400 * page, 1000 * page);
  put("/proc/self/statm", "nothing");
  bound_is("this process", 1400 * page, 0);
}

// 100 MB in all, of which 20 MB are in use. A margin of 8 MB stays; what is granted and not touched is kept free.
static void test_granted(void **state) {
  (void)state;
  put("/g/own/memory.max", "100000000\n");
  put("/g/own/memory.current", "20000000\n");
  const uint64_t margin = 8 << 20;
  played_mark();
  assert_false(played_grant(80000000 - margin + 1));
  assert_true(played_grant(80000000 - margin));
  assert_false(played_grant(1));
  played_give_back(40000000);
  assert_true(played_grant(30000000));
  assert_false(played_grant(10000001));
  // After a look, a quarter of what is left can be granted without another.
  played_give_back(80000000 - margin - 10000000);
  assert_true(atomic_load(&granted) == 0);
  played_mark();
  assert_true(played_grant(1000000));
  assert_true(atomic_load(&allowed) == 1000000 + (80000000 - margin - 1000000) / 4);
  put("/g/own/memory.current", "100000000\n");
  assert_true(played_grant((80000000 - margin - 1000000) / 4));
  assert_false(played_grant(1));
}

// Pages that were granted and touched are resident: they are in use already, and count once.
static void test_touched(void **state) {
  (void)state;
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), margin = 8 << 20;
  put("/g/own/memory.max", "100000000\n");
  put("/g/own/memory.current", "20000000\n");
  played_mark(); // 1000 pages are resident
  assert_true(played_grant(2000 * page));
  put("/proc/self/statm", "9000 3000 10 10 0 3000 0\n"); // all 2000 touched
  char used[32];
  snprintf(used, sizeof used, "%llu\n", (unsigned long long)(20000000 + 2000 * page));
  put("/g/own/memory.current", used);
  const uint64_t left = 100000000 - 20000000 - 2000 * page;
  assert_false(played_grant(left - margin + 1));
  assert_true(played_grant(left - margin));
}

// Pages of files that become resident meanwhile, of libraries that are read when a step first needs them, are not
// granted memory that was touched: all that was granted is still to come.
static void test_libraries(void **state) {
  (void)state;
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), margin = 8 << 20;
  put("/g/own/memory.max", "100000000\n");
  put("/g/own/memory.current", "20000000\n");
  played_mark(); // 1000 pages are resident, 10 of them of files
  assert_true(played_grant(5000 * page));
  put("/proc/self/statm", "9000 6000 5010 10 0 3000 0\n"); // 5000 more pages, all of files
  assert_false(played_grant(80000000 - margin - 5000 * page + 1));
  assert_true(played_grant(80000000 - margin - 5000 * page));
}

static void test_kills(void **state) {
  (void)state;
  assert_true(played_kills() == 0); // the kernel does not tell
  put("/proc/vmstat", "nr_free_pages 5\noom_kill_disable 3\noom_kill 42\nballoon_inflate 0\n");
  assert_true(played_kills() == 42);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_machine, reset), cmocka_unit_test_setup(test_groups, reset),
      cmocka_unit_test_setup(test_process, reset), cmocka_unit_test_setup(test_granted, reset),
      cmocka_unit_test_setup(test_touched, reset), cmocka_unit_test_setup(test_libraries, reset),
      cmocka_unit_test_setup(test_kills, reset)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
