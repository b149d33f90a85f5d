// Lines of a text:
//
//   for (tfc_str line; tfc_line_next(&text, &line);) ...
#ifndef TFC_RUNTIME_BASE_LINE_H
#define TFC_RUNTIME_BASE_LINE_H

#include "runtime/base/str.h"

// Removes the first line from `text`, and returns it without its newline. False: `text` is empty.
static inline bool tfc_line_next(tfc_str *text, tfc_str *out_line) {
  if (!text->size) return false;
  const size_t end = tfc_str_find(*text, '\n');
  *out_line = tfc_str_sub(*text, 0, end);
  *text = end == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(*text, end + 1, SIZE_MAX);
  return true;
}

#endif
