#include "runtime/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct unit {
  const char *name;
  double factor;
};

static const struct unit byte_units[] = {
    {"", 1},      {"B", 1},        {"kB", 1e3},        {"MB", 1e6},           {"GB", 1e9},
    {"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
    {0}};
static const struct unit time_units[] = {{"", 1},     {"us", 1},     {"ns", 1e-3},  {"ms", 1e3}, {"s", 1e6},
                                         {"m", 60e6}, {"min", 60e6}, {"h", 3600e6}, {0}};

// Parses the number at the front of `text`, and the unit behind it, without blanks.
static tfc_status number_and_unit(tfc_str text, double *out, char unit[16]) {
  char copy[64];
  while (text.size && text.data[0] == ' ') text = tfc_str_sub(text, 1, text.size);
  while (text.size && text.data[text.size - 1] == ' ') text.size--;
  if (text.size == 0 || text.size >= sizeof copy)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not a number", TFC_STR_ARG(tfc_str_sub(text, 0, 60)));
  memcpy(copy, text.data, text.size);
  copy[text.size] = 0;
  char *end;
  bool numeric = (copy[0] >= '0' && copy[0] <= '9') || copy[0] == '.' || copy[0] == '-' || copy[0] == '+';
  double value = strtod(copy, &end);
  if (!numeric || end == copy || !isfinite(value) || (copy[0] == '0' && (copy[1] == 'x' || copy[1] == 'X')))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%s' is not a number", copy);
  while (*end == ' ') end++;
  if (strlen(end) >= 16) return tfc_status_make(TFC_INVALID_ARGUMENT, "'%s' has an unknown unit", copy);
  strcpy(unit, end);
  *out = value;
  return NULL;
}

static const struct unit *find_unit(const struct unit *units, const char *name) {
  for (; units->name; units++)
    if (strcmp(units->name, name) == 0) return units;
  return NULL;
}

tfc_status tfc_parse_double(tfc_str text, double *out) {
  char unit[16];
  double value;
  TFC_RETURN_IF_ERROR(number_and_unit(text, &value, unit));
  if (unit[0]) return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not a number", TFC_STR_ARG(text));
  *out = value;
  return NULL;
}

tfc_status tfc_parse_i64(tfc_str text, int64_t *out) {
  char copy[32], *end;
  if (text.size == 0 || text.size >= sizeof copy)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not a whole number", TFC_STR_ARG(tfc_str_sub(text, 0, 60)));
  memcpy(copy, text.data, text.size);
  copy[text.size] = 0;
  errno = 0;
  long long value = strtoll(copy, &end, 10);
  if (*end || end == copy || errno || copy[0] == ' ')
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%s' is not a whole number", copy);
  *out = value;
  return NULL;
}

tfc_status tfc_parse_bytes(tfc_str text, uint64_t *out_bytes) {
  char unit[16];
  double value;
  TFC_RETURN_IF_ERROR(number_and_unit(text, &value, unit));
  const struct unit *u = find_unit(byte_units, unit);
  if (!u)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s': unknown unit '%s' (B kB MB GB TB KiB MiB GiB TiB)",
                           TFC_STR_ARG(text), unit);
  value = value * u->factor;
  if (value < 0 || value >= 9.2e18)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not a size", TFC_STR_ARG(text));
  if (u->factor == 1 && value != floor(value))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not a whole number of bytes", TFC_STR_ARG(text));
  *out_bytes = (uint64_t)round(value); // adding 0.5 would round odd numbers above 2^52
  return NULL;
}

tfc_status tfc_parse_bandwidth(tfc_str text, double *out_bytes_per_s) {
  char unit[16];
  double value;
  TFC_RETURN_IF_ERROR(number_and_unit(text, &value, unit));
  size_t n = strlen(unit);
  if (n >= 2 && strcmp(unit + n - 2, "/s") == 0)
    unit[n - 2] = 0;
  else if (n)
    unit[0] = '?', unit[1] = 0;
  const struct unit *u = find_unit(byte_units, unit);
  if (!u || !(value > 0) || !isfinite(value * u->factor))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not a bandwidth (as in 12GB/s)", TFC_STR_ARG(text));
  *out_bytes_per_s = value * u->factor;
  return NULL;
}

tfc_status tfc_parse_time_us(tfc_str text, double *out_us) {
  char unit[16];
  double value;
  TFC_RETURN_IF_ERROR(number_and_unit(text, &value, unit));
  const struct unit *u = find_unit(time_units, unit);
  if (!u || value < 0 || !isfinite(value * u->factor))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not a time (as in 10us, 90s, 10m)", TFC_STR_ARG(text));
  *out_us = value * u->factor;
  return NULL;
}

const char *tfc_show_bytes(char *buffer, double bytes) {
  static const char *const names[] = {"B", "kB", "MB", "GB", "TB"};
  int i = 0;
  while (fabs(bytes) >= 999.5 && i < 4) bytes /= 1000, i++;
  snprintf(buffer, 32, i == 0 || fabs(bytes) >= 99.95 ? "%.0f %s" : "%.1f %s", bytes, names[i]);
  return buffer;
}

const char *tfc_show_us(char *buffer, double us) {
  if (us < 1000)
    snprintf(buffer, 32, us < 10 ? "%.2f us" : "%.1f us", us);
  else if (us < 1e6)
    snprintf(buffer, 32, us < 1e4 ? "%.3f ms" : us < 1e5 ? "%.2f ms" : "%.1f ms", us / 1e3);
  else
    snprintf(buffer, 32, "%.2f s", us / 1e6);
  return buffer;
}
