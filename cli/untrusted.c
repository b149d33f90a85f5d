#include "cli/untrusted.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/program.h"
#include "profiler/lock.h"
#include "runtime/base/array.h"
#include "runtime/base/clock.h"
#include "runtime/base/interrupt.h"
#include "runtime/base/sandbox.h"
#include "runtime/base/units.h"

enum { GRACE = 5 }; // seconds after the time limit in which the program may still report what it was doing

static int64_t end_ns;

int64_t cli_untrusted_left(int64_t own) {
  if (!end_ns) return own;
  int64_t left = end_ns - tfc_now_ns();
  left = left > 1 ? left : 1;
  return own && own < left ? own : left;
}

static void on_alarm(int number) {
  (void)number;
  static const char text[] = "error: the time of --untrusted is over, and an operation does not end\n";
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(1);
  _exit(1);
}

// Is called at the end of time= in programs that end by themselves: they get SIGTERM, so that they save what they have
// found, and GRACE seconds later on_alarm kills them.
static void on_end(int number) {
  (void)number;
  static const char text[] = "the time of --untrusted is over\n";
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(1);
  signal(SIGALRM, on_alarm);
  alarm(GRACE);
  raise(SIGTERM);
}

// Parses limits such as "memory=1GiB,time=10s,nodes=1000". *timed: they contain a time.
static bool parse_limits(const char *text, struct tfc_sandbox_rules *rules, double *seconds, bool *timed) {
  while (*text) {
    const size_t size = strcspn(text, ","), name = strcspn(text, "=");
    if (name >= size) return false;
    tfc_str key = {text, name}, value = {text + name + 1, size - name - 1};
    tfc_status s = NULL;
    double us = 0;
    int64_t count = 0;
    if (tfc_str_is(key, "memory"))
      s = tfc_parse_bytes(value, &rules->memory);
    else if (tfc_str_is(key, "time"))
      s = tfc_parse_time_us(value, &us), *seconds = us * 1e-6, *timed = true;
    else if (tfc_str_is(key, "nodes"))
      s = tfc_parse_i64(value, &count), rules->nodes = (uint64_t)count;
    else
      return false;
    const bool wrong = s || *seconds <= 0 || *seconds > 1e7 || (int64_t)rules->nodes <= 0 || !rules->memory;
    tfc_status_free(s);
    if (wrong) return false;
    text += size + (text[size] == ',');
  }
  return true;
}

typedef TFC_ARRAY(struct tfc_sandbox_path) path_list;

static bool add(path_list *list, const char *path, tfc_sandbox_access access) {
  char *copy = strdup(path);
  return copy && tfc_array_push(list, ((struct tfc_sandbox_path){copy, access}));
}

static bool add_value(path_list *list, tfc_flag_path kind, const char *value) {
  const char *pair = strrchr(value, '=');
  switch (kind) {
  case TFC_PATH_NONE: return true;
  case TFC_PATH_READ: return add(list, value, TFC_SANDBOX_READ);
  case TFC_PATH_READ_PAIR: return !pair || add(list, pair + 1, TFC_SANDBOX_READ);
  case TFC_PATH_DATABASE:
  case TFC_PATH_WRITE: return add(list, value, TFC_SANDBOX_WRITE);
  case TFC_PATH_WRITE_PAIR: return !pair || add(list, pair + 1, TFC_SANDBOX_WRITE);
  case TFC_PATH_FOLDER: return add(list, value, TFC_SANDBOX_FOLDER);
  case TFC_PATH_BESIDE: {
    char *folder = strdup(value), *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash) slash[slash == folder] = 0;
    const bool ok = folder && add(list, slash ? folder : ".", TFC_SANDBOX_READ);
    free(folder);
    return ok;
  }
  case TFC_PATH_PREFIX: {
    char *pattern = tfc_format("%s*", value);
    glob_t found = {0};
    bool ok = pattern != NULL;
    if (ok && glob(pattern, 0, NULL, &found) == 0)
      for (size_t i = 0; i < found.gl_pathc; i++) ok &= add(list, found.gl_pathv[i], TFC_SANDBOX_READ);
    globfree(&found);
    free(pattern);
    return ok;
  }
  }
  return true;
}

// Adds gnuplot, if it is in PATH.
static bool add_gnuplot(path_list *list) {
  const char *path = getenv("PATH");
  bool ok = true;
  for (const char *at = path ? path : "/usr/bin"; ok && *at; at += strcspn(at, ":"), at += *at == ':') {
    char *file = tfc_format("%.*s/gnuplot", (int)strcspn(at, ":"), at);
    if (file && access(file, X_OK) == 0) ok = add(list, file, TFC_SANDBOX_RUN);
    free(file);
  }
  return ok;
}

static bool add_all(path_list *list, const struct tfc_program *program, const void *options,
                    const struct cli_untrusted_needs *needs) {
  bool ok = true;
  for (size_t i = 0; ok && i < program->flag_count; i++) {
    const struct tfc_flag *flag = &program->flags[i];
    const void *place = (const char *)options + flag->offset;
    if (flag->path == TFC_PATH_NONE) continue;
    if (flag->kind == TFC_FLAG_TEXTS) {
      const struct tfc_texts *texts = place;
      for (uint32_t k = 0; ok && k < texts->count; k++) ok = add_value(list, flag->path, texts->items[k]);
    } else if (*(const char *const *)place) {
      ok = add_value(list, flag->path, *(const char *const *)place);
    }
  }
  if (ok && needs->beside) ok = add(list, needs->beside, TFC_SANDBOX_WRITE);
  if (ok && needs->programs) ok = add_gnuplot(list);
  char self[4096], *slash; // installed files are in ../share, relative to the program's folder
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 32);
  if (ok && size > 0) {
    self[size] = 0;
    if ((slash = strrchr(self, '/')) != NULL) strcpy(slash, "/../share/tfc"), ok = add(list, self, TFC_SANDBOX_READ);
  }
  char *lock = NULL; // the locks of databases and machines are in one folder, which is created if it is missing
  tfc_status s = tfc_lock_path("lock", &lock);
  tfc_status_free(s);
  if (ok && lock) ok = add(list, lock, TFC_SANDBOX_WRITE);
  free(lock);
  return ok;
}

int cli_untrusted_enter(const struct tfc_program *program, const void *options,
                        const struct cli_untrusted_needs *needs) {
  static char said[64];
  const struct tfc_common *common = options;
  if (!common->untrusted) return -1;
  struct tfc_sandbox_rules rules = {
      .memory = TFC_UNTRUSTED_MEMORY, .nodes = TFC_UNTRUSTED_NODES, .starts_programs = needs->programs};
  double seconds = TFC_UNTRUSTED_SECONDS;
  bool timed = false;
  if (!parse_limits(common->untrusted, &rules, &seconds, &timed))
    return tfc_flags_error(program, "--untrusted takes memory=SIZE, time=T and nodes=N, not '%s'", common->untrusted);
  path_list list = {0};
  struct tfc_text missing = {0};
  tfc_status s = NULL;
  if (!add_all(&list, program, options, needs)) TFC_TRY(s, tfc_status_no_memory(NULL));
  rules.paths = list.data, rules.path_count = (uint32_t)list.count;
  setenv("SQLITE_TMPDIR", ".", 0); // SQLite's temporary files go where writing is allowed
  if (needs->ends_with_time) {
    snprintf(said, sizeof said, "--untrusted, time=%.6gs", seconds);
    end_ns = tfc_now_ns() + (int64_t)(1e9 * seconds);
    tfc_interrupt_at(end_ns, said);
    signal(SIGALRM, on_alarm);
    alarm((unsigned)seconds + 1 + GRACE);
  } else if (timed) {
    signal(SIGALRM, on_end);
    alarm(seconds < 1 ? 1 : (unsigned)seconds);
  }
  TFC_TRY(s, tfc_sandbox_enter(&rules, &missing));
  if (missing.size) tfc_warn("--untrusted: %.*s", (int)missing.size - 1, missing.data);
out:
  for (size_t i = 0; i < list.count; i++) free((char *)(uintptr_t)list.data[i].path);
  tfc_array_free(&list);
  tfc_text_deinit(&missing);
  return s ? tfc_program_fail(s) : -1;
}
