#include "placer/model/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tfc_json_has_mark(tfc_str text) {
  return text.size >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0;
}

tfc_status tfc_json_document(tfc_str text, const char *path, const char *format, json_t **out) {
  tfc_status s = NULL;
  json_error_t error;
  if (tfc_json_has_mark(text)) text = tfc_str_sub(text, 3, text.size);
  json_t *root = json_loadb(text.data ? text.data : "", text.size, JSON_REJECT_DUPLICATES, &error);
  if (!root)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: line %d, column %d: %s", path, error.line, error.column, error.text);
  if (!json_is_object(root))
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: not a JSON object: expected one with \"format\": \"%s\"", path, format);
  tfc_str name = {0};
  int64_t version = 1;
  TFC_TRY(s, tfc_status_annotate(tfc_json_string(root, "format", &name), "%s", path));
  if (!name.data) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: no \"format\" field: expected \"%s\"", path, format);
  if (!tfc_str_is(name, format))
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: format is '%.*s': expected '%s'", path,
             TFC_STR_ARG(tfc_str_sub(name, 0, 80)), format);
  TFC_TRY(s, tfc_status_annotate(tfc_json_i64(root, "version", &version), "%s", path));
  if (version != 1)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: version %lld of '%s' is not known: only 1 is", path, (long long)version,
             format);
  *out = root, root = NULL;
out:
  json_decref(root);
  return s;
}

json_t *tfc_json_field(const json_t *object, const char *name) {
  json_t *value = json_object_get(object, name);
  return value && !json_is_null(value) ? value : NULL;
}

tfc_status tfc_json_string(const json_t *object, const char *name, tfc_str *out) {
  const json_t *value = tfc_json_field(object, name);
  if (!value) return NULL;
  if (!json_is_string(value)) return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\" is not a string", name);
  *out = (tfc_str){json_string_value(value), json_string_length(value)};
  return NULL;
}

tfc_status tfc_json_number(const json_t *object, const char *name, double *out) {
  const json_t *value = tfc_json_field(object, name);
  if (!value) return NULL;
  if (!json_is_number(value) || !isfinite(json_number_value(value)))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\" is not a finite number", name);
  *out = json_number_value(value);
  return NULL;
}

tfc_status tfc_json_i64(const json_t *object, const char *name, int64_t *out) {
  const json_t *value = tfc_json_field(object, name);
  if (!value) return NULL;
  if (json_is_integer(value)) {
    *out = json_integer_value(value);
  } else if (json_is_real(value) && rint(json_real_value(value)) == json_real_value(value) &&
             fabs(json_real_value(value)) < 0x1p62) {
    *out = (int64_t)json_real_value(value);
  } else {
    return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\" is not a whole number", name);
  }
  return NULL;
}

tfc_status tfc_json_whole(const json_t *object, const char *name, uint64_t *out) {
  int64_t value = 0;
  if (!tfc_json_field(object, name)) return NULL;
  tfc_status s = tfc_json_i64(object, name, &value);
  if (s || value < 0) {
    tfc_status_free(s);
    return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\" is not a whole number of at least 0", name);
  }
  *out = (uint64_t)value;
  return NULL;
}

tfc_status tfc_json_bool(const json_t *object, const char *name, bool *out) {
  const json_t *value = tfc_json_field(object, name);
  if (!value) return NULL;
  if (!json_is_boolean(value)) return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\" is neither true nor false", name);
  *out = json_is_true(value);
  return NULL;
}

// Returns the number of bytes of the UTF-8 character that `s` begins with; 0: these bytes are no UTF-8, as in a file
// name in another encoding.
static size_t character(tfc_str s) {
  const unsigned char *c = (const unsigned char *)s.data;
  const size_t size = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;
  if (size > s.size) return 0;
  for (size_t i = 1; i < size; i++)
    if ((c[i] & 0xc0) != 0x80) return 0;
  if (size > 2 && ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) || (c[0] == 0xf0 && c[1] < 0x90) ||
                   (c[0] == 0xf4 && c[1] > 0x8f)))
    return 0; // the encoding is overlong, half of a surrogate pair, or beyond U+10FFFF
  return size;
}

void tfc_json_add_string(struct tfc_text *text, tfc_str value) {
  tfc_text_add(text, TFC_STR("\""));
  size_t from = 0;
  for (size_t i = 0; i < value.size; i++) {
    unsigned char c = (unsigned char)value.data[i];
    const size_t size = character(tfc_str_sub(value, i, value.size));
    if (c >= 0x20 && c != '"' && c != '\\' && size) {
      i += size - 1;
      continue;
    }
    tfc_text_add(text, tfc_str_sub(value, from, i));
    if (!size) // JSON must be UTF-8, so a byte that is not gets replaced
      tfc_text_add(text, TFC_STR("?"));
    else if (c == '"' || c == '\\')
      tfc_text_printf(text, "\\%c", c);
    else
      tfc_text_printf(text, "\\u%04x", c);
    from = i + 1;
  }
  tfc_text_add(text, tfc_str_sub(value, from, value.size));
  tfc_text_add(text, TFC_STR("\""));
}

void tfc_json_add_number(struct tfc_text *text, double value) {
  char buffer[40];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(buffer, sizeof buffer, "%.*g", digits, value);
    if (strtod(buffer, NULL) == value) break;
  }
  tfc_text_add(text, tfc_str_from(buffer));
}

void tfc_json_add_ps(struct tfc_text *text, int64_t ps) {
  char buffer[48];
  uint64_t size = ps < 0 ? 0 - (uint64_t)ps : (uint64_t)ps;
  int n = snprintf(buffer, sizeof buffer, "%s%llu.%06llu", ps < 0 ? "-" : "", (unsigned long long)(size / 1000000),
                   (unsigned long long)(size % 1000000));
  while (buffer[n - 1] == '0' && buffer[n - 2] != '.') n--;
  tfc_text_add(text, (tfc_str){buffer, (size_t)n});
}
