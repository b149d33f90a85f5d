// Conversion follows the schema in text_schema.c. If the schema lacks a field, reading fails with an error that names
// the line, and writing leaves the field out, because no reader of the text would accept it.
#include "runtime/graph/text_format.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/base/interrupt.h"
#include "runtime/graph/import_internal.h"
#include "runtime/graph/text_schema.h"

enum { depth_limit = 64 };

static const struct tfc_text_message *find_message(const char *name) {
  for (size_t i = 0; i < tfc_text_message_count; i++)
    if (strcmp(tfc_text_messages[i].name, name) == 0) return &tfc_text_messages[i];
  return NULL;
}

static bool is_message(const char *type) {
  return type[0] >= 'A' && type[0] <= 'Z';
}

// --- Reading -------------------------------------------------------------------------------------------------------
struct scanner {
  const char *at, *end;
  size_t line;
};

static tfc_status bad(const struct scanner *s, const char *what, tfc_str near) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "line %zu: %s '%.*s'", s->line, what,
                         TFC_STR_ARG(tfc_str_sub(near, 0, 60)));
}

static void skip_blank(struct scanner *s) {
  while (s->at < s->end) {
    char c = *s->at;
    if (c == '\n') s->line++;
    if (c == '#') {
      while (s->at < s->end && *s->at != '\n') s->at++;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      s->at++;
    } else {
      return;
    }
  }
}

static bool accept(struct scanner *s, char c) {
  skip_blank(s);
  if (s->at == s->end || *s->at != c) return false;
  s->at++;
  return true;
}

static tfc_str rest_of_line(const struct scanner *s) {
  const char *p = s->at;
  while (p < s->end && *p != '\n') p++;
  return (tfc_str){s->at, (size_t)(p - s->at)};
}

// Reads a word or a number: characters up to a blank or punctuation.
static tfc_str word(struct scanner *s) {
  skip_blank(s);
  const char *from = s->at;
  while (s->at < s->end) {
    char c = *s->at;
    bool part = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
                c == '-' || c == '+';
    if (!part) break;
    s->at++;
  }
  return (tfc_str){from, (size_t)(s->at - from)};
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Reads adjacent "..." or '...' as one string.
static tfc_status read_string(struct scanner *s, struct tfc_text *out) {
  skip_blank(s);
  bool any = false;
  while (s->at < s->end && (*s->at == '"' || *s->at == '\'')) {
    char quote = *s->at++;
    any = true;
    for (;;) {
      if (s->at == s->end || *s->at == '\n') return bad(s, "a string does not end", TFC_STR(""));
      char c = *s->at++;
      if (c == quote) break;
      if (c == '\\') {
        if (s->at == s->end) return bad(s, "a string does not end", TFC_STR(""));
        c = *s->at++;
        int value = 0, digits = 0;
        static const char names[] = "abfnrtv", codes[] = "\a\b\f\n\r\t\v";
        const char *named = c ? strchr(names, c) : NULL;
        if (named) {
          c = codes[named - names];
        } else if (c >= '0' && c <= '7') {
          value = c - '0';
          for (digits = 1; digits < 3 && s->at < s->end && *s->at >= '0' && *s->at <= '7'; digits++)
            value = value * 8 + (*s->at++ - '0');
          c = (char)value;
        } else if (c == 'x' || c == 'X') {
          for (; digits < 2 && s->at < s->end && hex_digit(*s->at) >= 0; digits++)
            value = value * 16 + hex_digit(*s->at++);
          c = (char)value;
        }
      }
      tfc_text_add(out, (tfc_str){&c, 1});
    }
    skip_blank(s);
  }
  return any ? NULL : bad(s, "a string is wanted, not", rest_of_line(s));
}

static tfc_status read_enum(const struct scanner *s, const char *type, tfc_str text, int64_t *out) {
  if (strcmp(type, "DataType") == 0) {
    tfc_dtype t = tfc_dtype_parse(text);
    if (tfc_str_starts(text, "DT_") && t != TFC_DTYPE_NONE) {
      *out = t;
      return NULL;
    }
    static const struct {
      const char *name;
      int number;
    } others[] = {{"DT_INVALID", 0}, {"DT_FLOAT8_E5M2", 24},      {"DT_FLOAT8_E4M3FN", 25},     {"DT_INT4", 29},
                  {"DT_UINT4", 30},  {"DT_FLOAT8_E5M2_REF", 124}, {"DT_FLOAT8_E4M3FN_REF", 125}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
      if (tfc_str_is(text, others[i].name)) {
        *out = others[i].number;
        return NULL;
      }
    return bad(s, "unknown element type", text);
  }
  for (size_t i = 0; i < tfc_text_enum_count; i++)
    if (strcmp(tfc_text_enums[i].type, type) == 0 && tfc_str_is(text, tfc_text_enums[i].name)) {
      *out = tfc_text_enums[i].number;
      return NULL;
    }
  return bad(s, "unknown value", text);
}

static tfc_status read_integer(const struct scanner *s, tfc_str text, uint64_t *out) {
  char copy[40];
  bool negative = text.size && text.data[0] == '-';
  tfc_str digits = tfc_str_sub(text, negative, text.size);
  if (!digits.size || digits.size >= sizeof copy || digits.data[0] < '0' || digits.data[0] > '9')
    return bad(s, "a whole number is wanted, not", text);
  memcpy(copy, digits.data, digits.size);
  copy[digits.size] = 0;
  char *end;
  errno = 0;
  uint64_t value = strtoull(copy, &end, 0);
  if (*end || errno) return bad(s, "a whole number is wanted, not", text);
  *out = negative ? (uint64_t)0 - value : value;
  return NULL;
}

static tfc_status read_scalar(struct scanner *s, const struct tfc_text_field *f, struct tfc_text *out) {
  if (strcmp(f->type, "string") == 0) {
    struct tfc_text value = {0};
    tfc_status status = read_string(s, &value);
    if (!status) tfc_wire_put_bytes(out, f->number, tfc_text_view(&value));
    out->failed |= value.failed;
    tfc_text_deinit(&value);
    return status;
  }
  bool minus = accept(s, '-'); // "- 1" is allowed
  tfc_str text = word(s);
  char copy[64];
  uint64_t value = 0;
  if (!text.size || text.size + 2 >= sizeof copy) return bad(s, "a value is wanted, not", rest_of_line(s));
  copy[0] = '-';
  memcpy(copy + 1, text.data, text.size);
  copy[text.size + 1] = 0;
  tfc_str full = minus ? (tfc_str){copy, text.size + 1} : (tfc_str){copy + 1, text.size};
  if (strcmp(f->type, "float") == 0 || strcmp(f->type, "double") == 0) {
    char *end;
    double d = strtod(full.data, &end);
    if (*end == 'f' || *end == 'F') end++;
    if (*end || end == full.data) return bad(s, "a number is wanted, not", full);
    if (f->type[0] == 'f') {
      tfc_wire_put_float(out, f->number, (float)d);
    } else {
      tfc_wire_put_varint(out, (uint64_t)f->number << 3 | TFC_WIRE_64);
      tfc_text_add(out, (tfc_str){(const char *)&d, 8});
    }
    return NULL;
  }
  if (strcmp(f->type, "bool") == 0) {
    bool yes = tfc_str_is(full, "true") || tfc_str_is(full, "True") || tfc_str_is(full, "t") || tfc_str_is(full, "1");
    bool no = tfc_str_is(full, "false") || tfc_str_is(full, "False") || tfc_str_is(full, "f") || tfc_str_is(full, "0");
    if (!yes && !no) return bad(s, "true or false is wanted, not", full);
    tfc_wire_put_int(out, f->number, yes);
    return NULL;
  }
  char first = full.data[0];
  if (f->type[0] == '@' && !(first == '-' || (first >= '0' && first <= '9'))) {
    int64_t number = 0;
    TFC_RETURN_IF_ERROR(read_enum(s, f->type + 1, full, &number));
    value = (uint64_t)number;
  } else {
    TFC_RETURN_IF_ERROR(read_integer(s, full, &value));
  }
  tfc_wire_put_int(out, f->number, value);
  return NULL;
}

static tfc_status read_message(struct scanner *s, const struct tfc_text_message *m, char close, int depth,
                               struct tfc_text *out);

static tfc_status read_value(struct scanner *s, const struct tfc_text_field *f, int depth, struct tfc_text *out) {
  TFC_RETURN_IF_ERROR(tfc_interrupted("reading text"));
  if (!is_message(f->type)) return read_scalar(s, f, out);
  char close = accept(s, '{') ? '}' : accept(s, '<') ? '>' : 0;
  if (!close) return bad(s, "'{' is wanted, not", rest_of_line(s));
  struct tfc_text inner = {0};
  tfc_status status = read_message(s, find_message(f->type), close, depth + 1, &inner);
  if (!status) tfc_wire_put_bytes(out, f->number, tfc_text_view(&inner));
  out->failed |= inner.failed;
  tfc_text_deinit(&inner);
  return status;
}

static tfc_status read_message(struct scanner *s, const struct tfc_text_message *m, char close, int depth,
                               struct tfc_text *out) {
  if (depth > depth_limit) return bad(s, "messages are nested too deeply", TFC_STR(""));
  for (;;) {
    skip_blank(s);
    if (s->at == s->end) return close ? bad(s, "a message does not end", tfc_str_from(m->name)) : NULL;
    if (close && accept(s, close)) return NULL;
    tfc_str name = word(s);
    const struct tfc_text_field *f = NULL;
    for (size_t i = 0; i < m->field_count && !f; i++)
      if (tfc_str_is(name, m->fields[i].name)) f = &m->fields[i];
    if (!f) {
      if (!name.size) return bad(s, "a field's name is wanted, not", rest_of_line(s));
      return tfc_status_make(TFC_INVALID_ARGUMENT, "line %zu: %s has no field '%.*s'", s->line, m->name,
                             TFC_STR_ARG(tfc_str_sub(name, 0, 60)));
    }
    bool colon = accept(s, ':');
    if (!colon && !is_message(f->type)) return bad(s, "':' is missing after", name);
    if (accept(s, '[')) {
      if (!accept(s, ']')) {
        do TFC_RETURN_IF_ERROR(read_value(s, f, depth, out));
        while (accept(s, ','));
        if (!accept(s, ']')) return bad(s, "']' is wanted, not", rest_of_line(s));
      }
    } else {
      TFC_RETURN_IF_ERROR(read_value(s, f, depth, out));
    }
    if (!accept(s, ',')) accept(s, ';');
  }
}

tfc_status tfc_text_to_wire(tfc_str text, const char *message, struct tfc_text *out) {
  struct scanner s = {text.data, text.data + text.size, 1};
  struct tfc_text wire = {0};
  tfc_status status = read_message(&s, find_message(message), 0, 0, &wire);
  if (!status && wire.failed) status = tfc_status_no_memory("reading text");
  if (status) {
    tfc_text_deinit(&wire);
    return status;
  }
  *out = wire;
  return NULL;
}

// --- Writing -------------------------------------------------------------------------------------------------------
static void indent(struct tfc_text *out, int depth) {
  for (int i = 0; i < depth; i++) tfc_text_add(out, TFC_STR("  "));
}

static void write_string(struct tfc_text *out, tfc_str s) {
  tfc_text_add(out, TFC_STR("\""));
  for (size_t i = 0; i < s.size; i++) {
    unsigned char c = (unsigned char)s.data[i];
    if (c == '\n')
      tfc_text_add(out, TFC_STR("\\n"));
    else if (c == '"' || c == '\\')
      tfc_text_printf(out, "\\%c", c);
    else if (c < 32 || c >= 127)
      tfc_text_printf(out, "\\%03o", c);
    else
      tfc_text_add(out, (tfc_str){s.data + i, 1});
  }
  tfc_text_add(out, TFC_STR("\""));
}

static void write_number(struct tfc_text *out, const char *type, uint64_t value) {
  if (type[0] == '@') {
    const char *name = NULL;
    if (strcmp(type, "@DataType") == 0 && tfc_dtype_valid((int64_t)value)) {
      static const char *const names[] = {
#define TFC_DTYPE_TEXT(name, number, text, size, npy) [number] = "DT_" #name,
          TFC_DTYPES(TFC_DTYPE_TEXT)
#undef TFC_DTYPE_TEXT
      };
      tfc_text_printf(out, "%s%s", names[tfc_dtype_base((tfc_dtype)value)],
                      tfc_dtype_is_ref((tfc_dtype)value) ? "_REF" : "");
      return;
    }
    for (size_t i = 0; i < tfc_text_enum_count; i++)
      if (strcmp(tfc_text_enums[i].type, type + 1) == 0 && tfc_text_enums[i].number == (int64_t)value)
        name = tfc_text_enums[i].name;
    if (name)
      tfc_text_printf(out, "%s", name);
    else
      tfc_text_printf(out, "%lld", (long long)value);
  } else if (strcmp(type, "bool") == 0) {
    tfc_text_printf(out, "%s", value ? "true" : "false");
  } else if (strcmp(type, "float") == 0) {
    float x = tfc_wire_float(value);
    if (x != x)
      tfc_text_printf(out, "nan");
    else
      tfc_text_printf(out, "%.9g", (double)x);
  } else if (strcmp(type, "double") == 0) {
    double x = tfc_wire_double(value);
    if (x != x)
      tfc_text_printf(out, "nan");
    else
      tfc_text_printf(out, "%.17g", x);
  } else if (type[0] == 'u' || type[0] == 'f') {
    tfc_text_printf(out, "%llu", (unsigned long long)value);
  } else {
    tfc_text_printf(out, "%lld", (long long)value);
  }
}

static tfc_status write_message(struct tfc_text *out, tfc_str bytes, const struct tfc_text_message *m, int depth) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  if (depth > depth_limit) return tfc_status_make(TFC_INVALID_ARGUMENT, "messages are nested too deeply for text");
  while (tfc_wire_next(&w, &f)) {
    const struct tfc_text_field *t = NULL;
    for (size_t i = 0; i < m->field_count && !t; i++)
      if (m->fields[i].number == f.number) t = &m->fields[i];
    if (!t) continue;
    bool text = strcmp(t->type, "string") == 0;
    if (is_message(t->type) && f.type == TFC_WIRE_BYTES) {
      indent(out, depth);
      tfc_text_printf(out, "%s {\n", t->name);
      TFC_RETURN_IF_ERROR(write_message(out, f.bytes, find_message(t->type), depth + 1));
      indent(out, depth);
      tfc_text_add(out, TFC_STR("}\n"));
    } else if (text && f.type == TFC_WIRE_BYTES) {
      indent(out, depth);
      tfc_text_printf(out, "%s: ", t->name);
      write_string(out, f.bytes);
      tfc_text_add(out, TFC_STR("\n"));
    } else if (f.type == TFC_WIRE_BYTES && !is_message(t->type)) { // packed numbers
      struct tfc_wire p = tfc_wire_of(f.bytes);
      bool is_float = strcmp(t->type, "float") == 0, is_double = strcmp(t->type, "double") == 0;
      while (p.at != p.end) {
        uint64_t value = 0;
        tfc_str raw;
        if (is_float || is_double) {
          if (!tfc_wire_take(&p, is_float ? 4 : 8, &raw)) break;
          memcpy(&value, raw.data, raw.size);
        } else if (!tfc_wire_varint(&p, &value)) {
          break;
        }
        indent(out, depth);
        tfc_text_printf(out, "%s: ", t->name);
        write_number(out, t->type, value);
        tfc_text_add(out, TFC_STR("\n"));
      }
      if (p.error) w.error = p.error;
    } else if (!text && !is_message(t->type)) {
      indent(out, depth);
      tfc_text_printf(out, "%s: ", t->name);
      write_number(out, t->type, f.value);
      tfc_text_add(out, TFC_STR("\n"));
    }
  }
  return w.error ? tfc_status_make(TFC_INVALID_ARGUMENT, "%s: %s", m->name, w.error) : NULL;
}

tfc_status tfc_wire_to_text(tfc_str bytes, const char *message, struct tfc_text *out) {
  return write_message(out, bytes, find_message(message), 0);
}
