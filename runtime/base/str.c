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

void tfc_text_deinit(struct tfc_text *text) {
  free(text->data);
  *text = (struct tfc_text){0};
}
