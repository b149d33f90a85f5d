#include "runtime/graph/device_spec.h"

#include <ctype.h>
#include <strings.h>

#include "runtime/base/units.h"

// Whether TensorFlow accepts this as a job or a type of device: a letter, then letters, digits and underscores.
static bool is_word(tfc_str text) {
  for (size_t i = 0; i < text.size; i++)
    if (i ? !isalnum((unsigned char)text.data[i]) && text.data[i] != '_' : !isalpha((unsigned char)text.data[0]))
      return false;
  return text.size > 0;
}

static tfc_status number(tfc_str text, tfc_str whole, int *out) {
  int64_t n;
  if (tfc_str_is(text, "*")) {
    *out = -1;
    return NULL;
  }
  tfc_status s = tfc_parse_i64(text, &n);
  tfc_status_free(s);
  if (s || n < 0 || n > INT32_MAX)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "device '%.*s': '%.*s' is not a number", TFC_STR_ARG(whole),
                           TFC_STR_ARG(text));
  *out = (int)n;
  return NULL;
}

// Parses "GPU:0", "GPU:*" or "GPU".
static tfc_status type_and_index(tfc_str text, tfc_str whole, struct tfc_device_spec *spec) {
  size_t colon = tfc_str_find(text, ':');
  tfc_str type = tfc_str_sub(text, 0, colon);
  if (type.size >= sizeof spec->type)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "device '%.*s': the type is too long", TFC_STR_ARG(whole));
  if (colon != SIZE_MAX) TFC_RETURN_IF_ERROR(number(tfc_str_sub(text, colon + 1, text.size), whole, &spec->index));
  if (tfc_str_is(type, "*")) return NULL;
  if (!is_word(type))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "device '%.*s': '%.*s' is not a type of device", TFC_STR_ARG(whole),
                           TFC_STR_ARG(type));
  for (size_t i = 0; i < type.size; i++) spec->type[i] = (char)toupper((unsigned char)type.data[i]);
  spec->type[type.size] = 0;
  return NULL;
}

// Whether the string starts with a key that is written out; then the first '/' may be missing.
static bool starts_with_key(tfc_str text) {
  return tfc_str_starts(text, "job:") || tfc_str_starts(text, "replica:") || tfc_str_starts(text, "task:") ||
         tfc_str_starts(text, "device:");
}

tfc_status tfc_device_spec_parse(tfc_str text, struct tfc_device_spec *out) {
  struct tfc_device_spec spec = {.replica = -1, .task = -1, .index = -1};
  if (text.size && text.data[0] != '/' && !starts_with_key(text))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "device '%.*s' does not start with '/'", TFC_STR_ARG(text));
  for (size_t at = 0; at < text.size;) {
    tfc_str rest = tfc_str_sub(text, at + (text.data[at] == '/'), text.size);
    tfc_str part = tfc_str_sub(rest, 0, tfc_str_find(rest, '/'));
    at = (size_t)(part.data + part.size - text.data);
    size_t colon = tfc_str_find(part, ':');
    tfc_str key = tfc_str_sub(part, 0, colon), value = {0};
    if (colon != SIZE_MAX) value = tfc_str_sub(part, colon + 1, part.size);
    if (part.size == 0) continue;
    if (tfc_str_is(key, "job")) {
      if (!tfc_str_is(value, "*") && !is_word(value))
        return tfc_status_make(TFC_INVALID_ARGUMENT, "device '%.*s': '%.*s' is not the name of a job",
                               TFC_STR_ARG(text), TFC_STR_ARG(value));
      spec.job = tfc_str_is(value, "*") ? (tfc_str){0} : value;
    } else if (tfc_str_is(key, "replica"))
      TFC_RETURN_IF_ERROR(number(value, text, &spec.replica));
    else if (tfc_str_is(key, "task"))
      TFC_RETURN_IF_ERROR(number(value, text, &spec.task));
    else if (tfc_str_is(key, "device"))
      TFC_RETURN_IF_ERROR(type_and_index(value, text, &spec));
    else if ((key.size == 3 && (!strncasecmp(key.data, "cpu", 3) || !strncasecmp(key.data, "gpu", 3) ||
                                !strncasecmp(key.data, "tpu", 3))))
      TFC_RETURN_IF_ERROR(type_and_index(part, text, &spec)); // the old short form, "/gpu:0"
    else
      return tfc_status_make(TFC_INVALID_ARGUMENT, "device '%.*s': '%.*s' is not known", TFC_STR_ARG(text),
                             TFC_STR_ARG(part));
  }
  *out = spec;
  return NULL;
}
