#include "runtime/base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

char *tfc_str_dup(tfc_str a) {
  char *copy = malloc(a.size + 1);
  if (!copy) return NULL;
  if (a.size) memcpy(copy, a.data, a.size);
  copy[a.size] = 0;
  return copy;
}

char *tfc_format(const char *format, ...) {
  char *text = NULL;
  va_list args;
  va_start(args, format);
  int n = vasprintf(&text, format, args);
  va_end(args);
  return n < 0 ? NULL : text;
}

static bool reserve(struct tfc_text *text, size_t more) {
  if (text->failed) return false;
  if (text->size + more + 1 <= text->capacity) return true;
  size_t capacity = text->capacity ? text->capacity * 2 : 256;
  while (capacity < text->size + more + 1) capacity *= 2;
  char *data = realloc(text->data, capacity);
  if (!data) return text->failed = true, false;
  text->data = data;
  text->capacity = capacity;
  return true;
}

void tfc_text_add(struct tfc_text *text, tfc_str piece) {
  if (!reserve(text, piece.size)) return;
  if (piece.size) memcpy(text->data + text->size, piece.data, piece.size);
  text->size += piece.size;
  text->data[text->size] = 0;
}

void tfc_text_printf(struct tfc_text *text, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (n > 0 && reserve(text, (size_t)n)) {
    vsnprintf(text->data + text->size, (size_t)n + 1, format, args);
    text->size += (size_t)n;
  }
  va_end(args);
}

static bool goes_on(char c) { // a byte within a character of UTF-8
  return ((unsigned char)c & 0xc0) == 0x80;
}

// The bytes of a character that controls terminals, or 0. In UTF-8, those from U+0080 to U+009F have two bytes.
static size_t control_at(tfc_str text, size_t at) {
  const unsigned char c = (unsigned char)text.data[at];
  if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f) return 1;
  return c == 0xc2 && at + 1 < text.size && (unsigned char)text.data[at + 1] >= 0x80 &&
                 (unsigned char)text.data[at + 1] < 0xa0
             ? 2
             : 0;
}

static void add_safe(struct tfc_text *text, tfc_str piece) {
  size_t begin = 0;
  for (size_t i = 0; i < piece.size;) {
    const size_t control = control_at(piece, i);
    if (!control) {
      i++;
      continue;
    }
    tfc_text_add(text, tfc_str_sub(piece, begin, i));
    for (size_t k = 0; k < control; k++) tfc_text_printf(text, "\\x%02x", (unsigned char)piece.data[i + k]);
    begin = i += control;
  }
  tfc_text_add(text, tfc_str_sub(piece, begin, SIZE_MAX));
}

void tfc_text_add_shown(struct tfc_text *text, tfc_str piece) {
  static const char middle[] = "...";
  const size_t half = (TFC_SHOWN_WORD - sizeof middle + 1) / 2;
  for (size_t at = 0; at < piece.size;) {
    const bool blank = piece.data[at] == ' ' || piece.data[at] == '\n';
    size_t end = at;
    while (end < piece.size && (piece.data[end] == ' ' || piece.data[end] == '\n') == blank) end++;
    if (blank || end - at <= TFC_SHOWN_WORD) {
      add_safe(text, tfc_str_sub(piece, at, end));
    } else {
      size_t first = at + half, last = end - half;
      while (first > at && goes_on(piece.data[first])) first--;
      while (last < end && goes_on(piece.data[last])) last++;
      add_safe(text, tfc_str_sub(piece, at, first));
      tfc_text_add(text, TFC_STR("..."));
      add_safe(text, tfc_str_sub(piece, last, end));
    }
    at = end;
  }
}

void tfc_text_deinit(struct tfc_text *text) {
  free(text->data);
  *text = (struct tfc_text){0};
}
