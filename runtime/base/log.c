#include "runtime/base/log.h"

#include <stdarg.h>
#include <stdio.h>

static tfc_log_fn sink;
static void *sink_user;

void tfc_log_set(tfc_log_fn fn, void *user) {
  sink = fn;
  sink_user = user;
}

void tfc_log(tfc_log_level level, const char *format, ...) {
  if (!sink) return;
  char text[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  sink(sink_user, level, text);
}
