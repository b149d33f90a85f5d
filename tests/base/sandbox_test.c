// Tests what the kernel denies under --untrusted. Each attempt runs in a process of its own, because a process cannot
// leave the sandbox.
#include "tests/common/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/memory_left.h"
#include "runtime/base/sandbox.h"
#include "tests/common/folder.h"

static bool opens(const char *path, int flags) {
  int fd = open(path, flags | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

// Returns a bit for each failed check; 64: not supported by this kernel or build.
static int inside(const char *folder) {
  char input[128], link[128], output[128], secret[128];
  snprintf(input, sizeof input, "%s/input", folder);
  snprintf(link, sizeof link, "%s/link", folder);
  snprintf(secret, sizeof secret, "%s/secret", folder);
  snprintf(output, sizeof output, "%s/out/result", folder);
  const struct tfc_sandbox_path paths[] = {{input, TFC_SANDBOX_READ}, {output, TFC_SANDBOX_WRITE}};
  const struct tfc_sandbox_rules rules = {.paths = paths, .path_count = 2, .memory = UINT64_C(1) << 30, .nodes = 7};
  struct tfc_text missing = {0};
  if (tfc_sandbox_enter(&rules, &missing)) return 32;
  const bool landlock = !missing.size || !strstr(missing.data, "Landlock"),
             seccomp = !missing.size || !strstr(missing.data, "libseccomp");
  int wrong = landlock && seccomp ? 0 : 64;
  if (!opens(input, O_RDONLY) || !opens(output, O_WRONLY | O_CREAT) || !opens("/proc/self/statm", O_RDONLY)) wrong |= 1;
  if (landlock && (opens(secret, O_RDONLY) || opens(link, O_RDONLY) || opens(input, O_WRONLY) ||
                   opens("/etc/passwd", O_RDONLY) || opens(secret, O_WRONLY | O_CREAT)))
    wrong |= 2;
  if (seccomp && (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM)) wrong |= 4;
  char *const none[] = {NULL};
  if (execve("/bin/true", none, none) == 0 || (errno != EPERM && errno != EACCES)) wrong |= landlock || seccomp ? 8 : 0;
  struct tfc_memory_bound memory;
  tfc_memory_bound(&memory);
  if (!tfc_untrusted() || tfc_untrusted_nodes() != 7 || memory.left > UINT64_C(1) << 30) wrong |= 16;
  tfc_text_deinit(&missing);
  return wrong;
}

static void test_denied(void **state) {
  (void)state;
  char folder[TEST_FOLDER_SIZE], line[512];
  int status = -1;
  assert_int_equal(test_folder_make(folder, "sandbox"), 0);
  snprintf(line, sizeof line, "cd %s && mkdir out && echo a > input && echo b > secret && ln -s secret link", folder);
  assert_int_equal(system(line), 0);
  pid_t pid = fork();
  if (pid == 0) _exit(inside(folder));
  assert_true(pid > 0);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(test_folder_remove(folder), 0);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status) & ~64, 0);
  if (WEXITSTATUS(status) & 64) skip();
}

static void test_trusted(void **state) { // without --untrusted nothing is refused
  (void)state;
  assert_false(tfc_untrusted());
  assert_true(tfc_untrusted_nodes() == UINT64_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_trusted), cmocka_unit_test(test_denied)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
