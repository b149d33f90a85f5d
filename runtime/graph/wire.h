// Reads and writes protocol buffers' wire format. The reader checks all bounds; the writer appends to a text.
//
//   struct tfc_wire w = tfc_wire_of(bytes);
//   struct tfc_field f;
//   while (tfc_wire_next(&w, &f)) switch (f.number) ...
//   if (w.error) ... // the text of the error; f.number is the field with the error
//
// Never reads outside of the bytes, whatever they contain.
#ifndef TFC_RUNTIME_GRAPH_WIRE_H
#define TFC_RUNTIME_GRAPH_WIRE_H

#include "runtime/base/str.h"

enum tfc_wire_type { TFC_WIRE_VARINT = 0, TFC_WIRE_64 = 1, TFC_WIRE_BYTES = 2, TFC_WIRE_32 = 5 };

struct tfc_wire {
  const uint8_t *at, *end;
  const char *error; // static text; NULL: no error
};
struct tfc_field {
  uint32_t number;
  enum tfc_wire_type type;
  uint64_t value;       // VARINT, 64, 32
  tfc_str bytes;        // BYTES
  const uint8_t *start; // start of the tag; the field ends at the reader's position
};

static inline struct tfc_wire tfc_wire_of(tfc_str bytes) {
  const uint8_t *p = (const uint8_t *)bytes.data;
  return (struct tfc_wire){p, p ? p + bytes.size : p, NULL};
}

static inline bool tfc_wire_varint_slow(struct tfc_wire *w, uint64_t *out) {
  uint64_t value = 0;
  const uint8_t *p = w->at;
  for (int shift = 0; shift < 70; shift += 7) {
    if (p == w->end) {
      w->error = "it ends inside a number";
      return false;
    }
    uint8_t c = *p++;
    value |= shift < 64 ? (uint64_t)(c & 0x7f) << shift : 0;
    if (c < 0x80) {
      w->at = p;
      *out = value;
      return true;
    }
  }
  w->error = "a number is longer than 10 bytes";
  return false;
}

static inline bool tfc_wire_varint(struct tfc_wire *w, uint64_t *out) {
  if (__builtin_expect(w->at != w->end && *w->at < 0x80, 1)) {
    *out = *w->at++;
    return true;
  }
  return tfc_wire_varint_slow(w, out);
}

static inline bool tfc_wire_take(struct tfc_wire *w, uint64_t size, tfc_str *out) {
  if (size > (uint64_t)(w->end - w->at)) {
    w->error = "it is shorter than its length says";
    return false;
  }
  *out = (tfc_str){(const char *)w->at, (size_t)size};
  w->at += size;
  return true;
}

static inline bool tfc_wire_next(struct tfc_wire *w, struct tfc_field *f) {
  uint64_t tag, size;
  if (w->error || w->at == w->end) return false;
  f->start = w->at;
  f->number = 0;
  if (!tfc_wire_varint(w, &tag)) return false;
  if (tag >> 32 || tag < 8) {
    w->error = "a field has no valid number";
    return false;
  }
  f->number = (uint32_t)(tag >> 3);
  f->type = (enum tfc_wire_type)(tag & 7);
  f->value = 0;
  f->bytes = (tfc_str){0};
  switch (f->type) {
  case TFC_WIRE_VARINT: return tfc_wire_varint(w, &f->value);
  case TFC_WIRE_BYTES: return tfc_wire_varint(w, &size) && tfc_wire_take(w, size, &f->bytes);
  case TFC_WIRE_32:
  case TFC_WIRE_64: {
    tfc_str raw;
    if (!tfc_wire_take(w, f->type == TFC_WIRE_32 ? 4 : 8, &raw)) return false;
    for (size_t i = raw.size; i-- > 0;) f->value = f->value << 8 | (uint8_t)raw.data[i];
    return true;
  }
  default: w->error = "a field has an unknown wire type"; return false;
  }
}

static inline float tfc_wire_float(uint64_t value) {
  union {
    uint32_t u;
    float f;
  } x = {(uint32_t)value};
  return x.f;
}
static inline double tfc_wire_double(uint64_t value) {
  union {
    uint64_t u;
    double d;
  } x = {value};
  return x.d;
}

// --- Writing -------------------------------------------------------------------------------------------------------
void tfc_wire_put_varint(struct tfc_text *out, uint64_t value);
void tfc_wire_put_int(struct tfc_text *out, uint32_t number, uint64_t value); // writes even the value 0
void tfc_wire_put_float(struct tfc_text *out, uint32_t number, float value);
void tfc_wire_put_bytes(struct tfc_text *out, uint32_t number, tfc_str bytes);
static inline tfc_str tfc_text_view(const struct tfc_text *t) {
  return (tfc_str){t->data ? t->data : "", t->size};
}

#endif
