// The guard of a task (cli/guard.h): a signal that comes to the child directly and through its guard counts once,
// however long its guard takes; and the guard says how its child died.
#include "tests/common/test.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/guard.h"
#include "runtime/base/clock.h"

static struct shared {
  _Atomic int child, heard;
  _Atomic bool end;
} * shared;

static void on_signal(int number) {
  (void)number;
  atomic_fetch_add(&shared->heard, 1);
}

// Ends a test that waits for something that never comes. Its guard and the guard's child must not outlive it.
static pid_t running;
static void give_up(const char *what) {
  kill(running, SIGKILL); // the child is killed with its guard
  fail_msg("%s", what);
}
static int64_t late(void) {
  return tfc_now_ns() + 120000000000; // far more than a busy machine takes
}

// Starts a guard whose child waits for signals. Returns the guard's process.
static pid_t start(void) {
  *shared = (struct shared){0};
  fflush(NULL);
  const pid_t pid = fork();
  if (pid) return running = pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL); // a test that fails leaves no process behind
  struct tfc_guard *guard = NULL;
  int code = 1;
  const struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGTERM, &action, NULL);
  if (!tfc_guard_enter("guard_test", &guard, &code)) _exit(code);
  snprintf(guard->name, sizeof guard->name, "a task");
  snprintf(guard->last, sizeof guard->last, "waited");
  atomic_store(&shared->child, (int)getpid());
  while (!atomic_load(&shared->end)) tfc_sleep_ns(1000000);
  _exit(0);
}

static bool reads(const char *text, const char *key, unsigned long long *out) {
  const char *at = strstr(text, key);
  return at && sscanf(at + strlen(key), "%llx", out) == 1;
}
// Whether a process sleeps and has no signal to handle.
static bool at_rest(const char *path) {
  char text[4096];
  unsigned long long own = 1, all = 1;
  FILE *f = fopen(path, "r");
  if (!f) give_up("a process has ended");
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  return strstr(text, "State:\tS") && reads(text, "SigPnd:", &own) && reads(text, "ShdPnd:", &all) && !own && !all;
}
// Waits until a process has handled the signals sent to it. It must be seen at rest twice: the kernel writes the state
// before the signals, and a process that waits for its child is "sleeping" for a moment while it leaves that wait for
// its handler. A process that is seen at rest once may be about to run its handler; one that is seen at rest again has
// run it.
static void settle(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  const int64_t end = late();
  for (int seen = 0; seen < 2;) {
    if (tfc_now_ns() > end) give_up("a process does not come to rest");
    seen = at_rest(path) ? seen + 1 : 0;
    if (seen < 2) tfc_sleep_ns(1000000);
  }
}
static void ready(pid_t guard) {
  for (const int64_t end = late(); !atomic_load(&shared->child); tfc_sleep_ns(1000000))
    if (tfc_now_ns() > end) give_up("the guard has no child");
  settle(guard); // waits until the guard waits for its child: then its signal handlers are installed
}

static void a_signal_counts_once(void **state) {
  (void)state;
  const pid_t guard = start();
  ready(guard);
  const pid_t child = (pid_t)atomic_load(&shared->child);
  for (int i = 1; i <= 3; i++) { // first to the child, later to its guard
    kill(child, SIGTERM);
    settle(child);
    assert_int_equal(atomic_load(&shared->heard), i);
    kill(guard, SIGTERM);
    settle(guard);
    settle(child);
    assert_int_equal(atomic_load(&shared->heard), i);
  }
  kill(guard, SIGTERM); // now first to the guard
  settle(guard);
  settle(child);
  kill(child, SIGTERM);
  settle(child);
  assert_int_equal(atomic_load(&shared->heard), 4);
  atomic_store(&shared->end, true);
  int status = 0;
  assert_int_equal(waitpid(guard, &status, 0), guard);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_killed_child_is_exit_code_4(void **state) {
  (void)state;
  const pid_t guard = start();
  ready(guard);
  int status = 0;
  kill((pid_t)atomic_load(&shared->child), SIGKILL);
  assert_int_equal(waitpid(guard, &status, 0), guard);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_signal_counts_once),
                                     cmocka_unit_test(a_killed_child_is_exit_code_4)};
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
