// String views. The bytes belong to other code. They do not end with a zero byte, and may contain zero bytes.
#ifndef TFC_RUNTIME_BASE_STR_H
#define TFC_RUNTIME_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tfc_str {
  const char *data;
  size_t size;
} tfc_str;

#define TFC_STR(literal) ((tfc_str){"" literal, sizeof(literal) - 1})
// For printf: printf("%.*s", TFC_STR_ARG(name)).
#define TFC_STR_ARG(s) (int)(s).size, (s).data ? (s).data : ""

static inline tfc_str tfc_str_from(const char *text) {
  return (tfc_str){text, text ? strlen(text) : 0};
}
static inline bool tfc_str_equal(tfc_str a, tfc_str b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
static inline bool tfc_str_is(tfc_str a, const char *text) {
  return tfc_str_equal(a, tfc_str_from(text));
}
static inline bool tfc_str_starts(tfc_str a, const char *prefix) {
  size_t n = strlen(prefix);
  return a.size >= n && memcmp(a.data, prefix, n) == 0;
}
static inline bool tfc_str_ends(tfc_str a, const char *suffix) {
  size_t n = strlen(suffix);
  return a.size >= n && memcmp(a.data + a.size - n, suffix, n) == 0;
}
static inline int tfc_str_compare(tfc_str a, tfc_str b) { // order of bytes
  size_t n = a.size < b.size ? a.size : b.size;
  int c = n ? memcmp(a.data, b.data, n) : 0;
  return c ? c : (a.size > b.size) - (a.size < b.size);
}
// Returns the index of the first or the last `c`; SIZE_MAX: there is none.
static inline size_t tfc_str_find(tfc_str a, char c) {
  const char *p = a.size ? memchr(a.data, c, a.size) : NULL;
  return p ? (size_t)(p - a.data) : SIZE_MAX;
}
static inline size_t tfc_str_rfind(tfc_str a, char c) {
  for (size_t i = a.size; i-- > 0;)
    if (a.data[i] == c) return i;
  return SIZE_MAX;
}
static inline tfc_str tfc_str_sub(tfc_str a, size_t from, size_t to) { // [from, to), clamped
  if (to > a.size) to = a.size;
  if (from > to) from = to;
  return (tfc_str){a.data ? a.data + from : NULL, to - from};
}
// Takes the first of several parts: returns the text before the first `separator`, and leaves what follows it in *rest.
// Without a separator, the whole text is the part, and nothing is left.
static inline tfc_str tfc_str_take(tfc_str *rest, char separator) {
  const size_t end = tfc_str_find(*rest, separator);
  const tfc_str part = tfc_str_sub(*rest, 0, end);
  *rest = end == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(*rest, end + 1, SIZE_MAX);
  return part;
}
// Returns a heap copy with a terminating zero; NULL when memory is out. free() it.
char *tfc_str_dup(tfc_str a);
// As printf, but returns the text in memory that the caller frees. NULL: out of memory.
char *tfc_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Text that grows, always terminated once something was added. If memory runs out, `failed` is set and later adds do
// nothing, so that a writer checks only once, at the end.
struct tfc_text {
  char *data;
  size_t size, capacity;
  bool failed;
};
void tfc_text_add(struct tfc_text *text, tfc_str piece);
void tfc_text_printf(struct tfc_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Adds a text for people, in which names that came from files may be of any length and contain anything. A word of more
// than TFC_SHOWN_WORD bytes loses its middle ("..." stands there). A character that could control a terminal, except
// line ends and tabs, becomes \xNN for each of its bytes.
enum { TFC_SHOWN_WORD = 240 };
void tfc_text_add_shown(struct tfc_text *text, tfc_str piece);
void tfc_text_deinit(struct tfc_text *text);

#endif
