#include "runtime/base/nearest.h"

// Returns the edit distance, in which swapping neighbours is one edit (optimal string alignment); SIZE_MAX: a name is
// too long.
static size_t edit_distance(tfc_str a, tfc_str b) {
  const size_t m = a.size, n = b.size;
  size_t rows[3][TFC_NEAREST_MOST + 1], *before = rows[0], *last = rows[1], *now = rows[2];
  if (m > TFC_NEAREST_MOST || n > TFC_NEAREST_MOST) return SIZE_MAX;
  for (size_t j = 0; j <= n; j++) last[j] = j;
  for (size_t i = 1; i <= m; i++) {
    now[0] = i;
    for (size_t j = 1; j <= n; j++) {
      size_t best = last[j - 1] + (a.data[i - 1] != b.data[j - 1]);
      if (last[j] + 1 < best) best = last[j] + 1;
      if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
      if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1] &&
          before[j - 2] + 1 < best)
        best = before[j - 2] + 1;
      now[j] = best;
    }
    size_t *spare = before;
    before = last, last = now, now = spare;
  }
  return last[n];
}

void tfc_nearest_try(struct tfc_nearest *nearest, tfc_str candidate) {
  const tfc_str text = nearest->text;
  const size_t bar = text.size / 3 + 1;
  const size_t apart = candidate.size > text.size ? candidate.size - text.size : text.size - candidate.size;
  size_t d = SIZE_MAX;
  if (text.size >= 3 && tfc_str_equal(tfc_str_sub(candidate, 0, text.size), text))
    d = 1; // the text is an abbreviation of the candidate
  else if (apart <= bar)
    d = edit_distance(text, candidate);
  if (d > bar || (nearest->best.data && d >= nearest->distance)) return;
  nearest->best = candidate, nearest->distance = d;
}
