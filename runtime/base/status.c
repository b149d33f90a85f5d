// An error is a record in one allocation: its code, then its text; annotating it makes a new record. Success is NULL,
// so checking a status is one comparison.
#include "runtime/base/status.h"
#include "runtime/base/no_memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tfc_status_record {
  tfc_code code;
  bool is_static;
  char message[];
};

static struct {
  struct tfc_status_record record;
  char text[32];
} out_of_memory = {{TFC_RESOURCE_EXHAUSTED, true}, "out of memory"};

static tfc_status allocate(tfc_code code, size_t length) {
  struct tfc_status_record *r = malloc(sizeof *r + length + 1);
  if (!r) return (tfc_status)&out_of_memory;
  r->code = code;
  r->is_static = false;
  r->message[length] = 0;
  return r;
}

static tfc_status make_v(tfc_code code, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (length < 0) length = 0;
  tfc_status s = allocate(code, (size_t)length);
  if (!s->is_static) vsnprintf(s->message, (size_t)length + 1, format, args);
  return s;
}

tfc_status tfc_status_make(tfc_code code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  tfc_status s = make_v(code, format, args);
  va_end(args);
  return s;
}

tfc_status tfc_status_no_memory(const char *what) {
  return what ? tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory: %s", what)
              : tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
}

tfc_status tfc_status_no_memory_for(const char *format, ...) {
  va_list args;
  va_start(args, format);
  tfc_status what = make_v(TFC_RESOURCE_EXHAUSTED, format, args);
  va_end(args);
  if (what->is_static) return what;
  tfc_status s = tfc_status_no_memory(what->message);
  tfc_status_free(what);
  return s;
}

tfc_status tfc_status_annotate(tfc_status status, const char *format, ...) {
  if (!status || status->is_static) return status;
  va_list args;
  va_start(args, format);
  tfc_status context = make_v(status->code, format, args);
  va_end(args);
  tfc_status s = tfc_status_make(status->code, "%s: %s", context->message, status->message);
  tfc_status_free(context);
  tfc_status_free(status);
  return s;
}

tfc_status tfc_status_caused_by(tfc_status status, tfc_status why) {
  tfc_status told = tfc_status_make(tfc_status_code(why), "%s; and so the step: %s", tfc_status_message(why),
                                    tfc_status_message(status));
  tfc_status_free(status);
  return told;
}

tfc_code tfc_status_code(tfc_status status) {
  return status ? status->code : TFC_OK;
}
int tfc_status_exit_code(tfc_status status) {
  switch (tfc_status_code(status)) {
  case TFC_OK: return 0;
  case TFC_CANCELLED: return 130;
  case TFC_INVALID_ARGUMENT:
  case TFC_UNIMPLEMENTED:
  case TFC_NOT_FOUND:
  case TFC_OUT_OF_RANGE:
  case TFC_FAILED_PRECONDITION: return 3;
  case TFC_UNAVAILABLE: return 4;
  case TFC_RESOURCE_EXHAUSTED: return 5;
  case TFC_DATA_LOSS: return 6;
  default: return 1;
  }
}
const char *tfc_status_message(tfc_status status) {
  return status ? status->message : "";
}

const char *tfc_code_name(tfc_code code) {
  static const char *const names[] = {
#define TFC_CODE_NAME(c, text) text,
      TFC_CODES(TFC_CODE_NAME)
#undef TFC_CODE_NAME
  };
  return (unsigned)code < sizeof names / sizeof *names ? names[code] : "unknown";
}

void tfc_status_free(tfc_status status) {
  if (status && !status->is_static) free(status);
}

tfc_status tfc_status_clone(tfc_status status) {
  if (!status || status->is_static) return status;
  return tfc_status_make(status->code, "%s", status->message);
}

tfc_status tfc_status_join(tfc_status first, tfc_status second) {
  if (!first) return second;
  tfc_status_free(second);
  return first;
}
