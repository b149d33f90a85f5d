// Records calls as text. A suite includes this file, and then the file of cli/ that it tests: that file's calls of
// tfc_progress_begin, _update and _end are recorded in `calls` instead of shown. The suite's own stand-ins record
// theirs with called().
#ifndef TFC_TESTS_CLI_CALLS_H
#define TFC_TESTS_CLI_CALLS_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/progress.h"

static char calls[2000]; // one line for each call
static void called(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void called(const char *format, ...) {
  va_list args;
  const size_t at = strlen(calls);
  va_start(args, format);
  vsnprintf(calls + at, sizeof calls - at, format, args);
  va_end(args);
}
#define tfc_progress_begin(phase) called("begin %s\n", phase)
#define tfc_progress_update(fraction, left, ...)                                                                       \
  (called("%g of %g: ", fraction, (double)(left)), called(__VA_ARGS__), called("\n"))
#define tfc_progress_end(...) (called("end "), called(__VA_ARGS__), called("\n"))

#endif
