// Reads characters from UTF-8. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_STRING_UTF8_H
#define TFC_RUNTIME_OPS_STRING_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/none.h"

// Reads the character at s[*at] and moves *at behind it; TFC_NONE: no character begins there.
static inline uint32_t ops_next_utf8(const uint8_t *s, size_t size, size_t *at) {
  uint8_t lead = s[(*at)++], low = 0x80, high = 0xbf;
  if (lead < 0x80) return lead;
  int more = lead >= 0xc2 && lead <= 0xdf ? 1 : lead >= 0xe0 && lead <= 0xef ? 2 : lead >= 0xf0 && lead <= 0xf4 ? 3 : 0;
  if (more == 0) return TFC_NONE;
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  uint32_t v = lead & (0x3fu >> more);
  for (; more > 0; more--, low = 0x80, high = 0xbf) {
    if (*at == size || s[*at] < low || s[*at] > high) return TFC_NONE;
    v = v << 6 | (s[(*at)++] & 0x3fu);
  }
  return v;
}

#endif
