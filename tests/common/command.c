#include "tests/common/command.h"
#include "tests/common/test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void read_file(const char *path, char *out, size_t size) {
  FILE *file = fopen(path, "rb");
  size_t n = file ? fread(out, 1, size - 1, file) : 0;
  out[n] = 0;
  if (file) fclose(file);
}

const struct command_result *command_run(const char *bin, const char *format, ...) {
  static struct command_result result;
  char line[8192], whole[9216], folder[] = "/tmp/tfc-command-XXXXXX", path[64];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (!mkdtemp(folder)) abort();
  snprintf(whole, sizeof whole, "{ PATH='%s':\"$PATH\"; %s\n} >%s/out 2>%s/err </dev/null", bin, line, folder, folder);
  int state = 0;
  // Only one run may measure on a machine at a time: this waits while another suite or a user measures.
  for (int tries = 0; tries < 120; tries++) {
    fflush(NULL);
    state = system(whole);
    snprintf(path, sizeof path, "%s/err", folder);
    read_file(path, result.err, sizeof result.err);
    if (!strstr(result.err, "another run measures on this machine")) break;
    sleep(2);
  }
  result.code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  snprintf(path, sizeof path, "%s/out", folder);
  read_file(path, result.out, sizeof result.out);
  unlink(path);
  snprintf(path, sizeof path, "%s/err", folder);
  unlink(path);
  rmdir(folder);
  return &result;
}

void command_put(const char *folder, const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}
