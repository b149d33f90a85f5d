// Formats, parses and compares execution options. All options are rows of one X-macro list, from which this code is
// generated, so it names no option.
#include "runtime/exec/execution.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/instructions.h"

static const struct choice {
  const char *flag, *values;
  size_t offset;
} choices[] = {
#define CHOICE(member, flag, values, help) {flag, values, offsetof(struct tfc_execution, member)},
    TFC_EXECUTION_CHOICES(CHOICE)
#undef CHOICE
};
enum { CHOICES = sizeof choices / sizeof *choices };

static int value_of(const struct tfc_execution *e, const struct choice *c) {
  int value;
  memcpy(&value, (const char *)e + c->offset, sizeof value);
  return value;
}

// Returns the text of a number, from a list like "exact|all"; empty: the list has no such number.
static tfc_str name_of(const struct choice *c, int number) {
  tfc_str rest = tfc_str_from(c->values);
  for (int i = 0; rest.size; i++) {
    const tfc_str name = tfc_str_take(&rest, '|');
    if (i == number) return name;
  }
  return (tfc_str){0};
}

tfc_status tfc_execution_apply(const struct tfc_execution *e, const struct tfc_device_set *devices) {
  TFC_RETURN_IF_ERROR(tfc_instructions_limit((tfc_instructions)e->cpu));
  tfc_devices_configure(devices, &(struct tfc_device_settings){
                                     .capture = e->captures != TFC_CAPTURES_OFF,
                                     .math = tfc_math_resolve((tfc_math)e->gpu_math, e->rewrites == TFC_REWRITES_ALL)});
  return NULL;
}

// --- Text ------------------------------------------------------------------------------------------------------------
// Words are separated by spaces, so spaces and unprintable characters in a limit's pattern are written as %20 etc.
static void add_pattern(struct tfc_text *out, const char *pattern) {
  for (const unsigned char *c = (const unsigned char *)pattern; *c; c++) {
    if (*c > ' ' && *c < 127 && *c != '%')
      tfc_text_printf(out, "%c", *c);
    else
      tfc_text_printf(out, "%%%02x", *c);
  }
}

void tfc_execution_format(const struct tfc_execution *e, struct tfc_text *out) {
  const char *space = "";
  for (size_t i = 0; i < CHOICES; i++) {
    int value = value_of(e, &choices[i]);
    if (!value) continue;
    tfc_text_printf(out, "%s--%s %.*s", space, choices[i].flag, TFC_STR_ARG(name_of(&choices[i], value))), space = " ";
  }
  if (e->seed) tfc_text_printf(out, "%s--seed %" PRId64, space, e->seed), space = " ";
  if (e->threads) tfc_text_printf(out, "%s--threads %" PRId64, space, e->threads), space = " ";
  for (uint32_t i = 0; i < e->limit_count; i++) {
    tfc_text_printf(out, "%s--memory ", space), space = " ";
    add_pattern(out, e->limits[i].pattern);
    tfc_text_printf(out, "=%" PRIu64, e->limits[i].bytes);
  }
}

static bool read_number(tfc_str word, int64_t *out) {
  char text[24], *end;
  if (!word.size || word.size >= sizeof text) return false;
  memcpy(text, word.data, word.size);
  text[word.size] = 0;
  *out = strtoll(text, &end, 10);
  return *end == 0;
}

static int digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static tfc_status read_limit(tfc_str word, struct tfc_memory_limit *limits, uint32_t *count) {
  size_t equals = tfc_str_rfind(word, '='), n = 0;
  char text[24], *end;
  const size_t size = equals == SIZE_MAX ? 0 : word.size - equals - 1;
  if (!size || size >= sizeof text) goto broken;
  memcpy(text, word.data + equals + 1, size);
  text[size] = 0;
  uint64_t bytes = strtoull(text, &end, 10);
  if (*end) goto broken;
  char *pattern = malloc(equals + 1);
  if (!pattern) return tfc_status_no_memory(NULL);
  for (size_t i = 0; i < equals; i++) {
    int high = 0, low = 0;
    if (word.data[i] == '%' && i + 2 < equals + 1 && (high = digit(word.data[i + 1])) >= 0 &&
        (low = digit(word.data[i + 2])) >= 0)
      pattern[n++] = (char)(16 * high + low), i += 2;
    else
      pattern[n++] = word.data[i];
  }
  pattern[n] = 0;
  limits[(*count)++] = (struct tfc_memory_limit){.pattern = pattern, .bytes = bytes};
  return NULL;
broken:
  return tfc_status_make(TFC_INVALID_ARGUMENT, "'--memory %.*s' is not DEVICE=BYTES", TFC_STR_ARG(word));
}

static tfc_status read_choice(tfc_str flag, tfc_str value, struct tfc_execution *e) {
  for (size_t i = 0; i < CHOICES; i++) {
    if (!tfc_str_is(flag, choices[i].flag)) continue;
    for (int number = 0; name_of(&choices[i], number).size; number++)
      if (tfc_str_equal(name_of(&choices[i], number), value)) {
        memcpy((char *)e + choices[i].offset, &number, sizeof number);
        return NULL;
      }
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'--%.*s %.*s': it is one of %s", TFC_STR_ARG(flag),
                           TFC_STR_ARG(value), choices[i].values);
  }
  return tfc_status_make(TFC_INVALID_ARGUMENT, "there is no way of running '--%.*s %.*s'", TFC_STR_ARG(flag),
                         TFC_STR_ARG(value));
}

tfc_status tfc_execution_parse(tfc_str text, struct tfc_execution *out) {
  tfc_status s = NULL;
  struct tfc_execution e = {0};
  uint32_t most = 0;
  for (size_t i = 0; i < text.size; i++) most += text.data[i] == '=';
  struct tfc_memory_limit *limits = calloc(most + 1u, sizeof *limits);
  if (!limits) return tfc_status_no_memory(NULL);
  e.limits = limits;
  for (tfc_str rest = text; rest.size;) {
    tfc_str flag = tfc_str_take(&rest, ' '), value = tfc_str_take(&rest, ' ');
    bool number = true;
    if (!tfc_str_starts(flag, "--")) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "'%.*s' is no flag of a run", TFC_STR_ARG(flag));
    if (tfc_str_is(flag, "--seed"))
      number = read_number(value, &e.seed);
    else if (tfc_str_is(flag, "--threads"))
      number = read_number(value, &e.threads);
    else if (tfc_str_is(flag, "--memory"))
      TFC_TRY(s, read_limit(value, limits, &e.limit_count));
    else
      TFC_TRY(s, read_choice(tfc_str_sub(flag, 2, flag.size), value, &e));
    if (!number) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "'%.*s %.*s' has no number", TFC_STR_ARG(flag), TFC_STR_ARG(value));
  }
  *out = e, e = (struct tfc_execution){0};
out:
  tfc_execution_deinit(&e);
  return s;
}

void tfc_execution_deinit(struct tfc_execution *e) {
  for (uint32_t i = 0; i < e->limit_count; i++) free((void *)(uintptr_t)e->limits[i].pattern);
  free((void *)(uintptr_t)e->limits);
  *e = (struct tfc_execution){0};
}

bool tfc_execution_alike(const struct tfc_execution *a, const struct tfc_execution *b) {
  for (size_t i = 0; i < CHOICES; i++)
    if (value_of(a, &choices[i]) != value_of(b, &choices[i])) return false;
  return true;
}
