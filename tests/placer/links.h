// The link between two devices, written only from the text of the format's rules: the last row that matches the ordered
// pair. It looks at one pair at a time, so it is slow and easy to check.
#ifndef TFC_TESTS_PLACER_LINKS_H
#define TFC_TESTS_PLACER_LINKS_H

#include <stdlib.h>

#include "placer/model/links.h"
#include "runtime/base/none.h"

// '*' stands for any characters.
static inline bool pattern_matches(tfc_str pattern, tfc_str text) {
  if (!pattern.size) return !text.size;
  const tfc_str rest = tfc_str_sub(pattern, 1, SIZE_MAX);
  if (pattern.data[0] == '*') {
    for (size_t i = 0; i <= text.size; i++)
      if (pattern_matches(rest, tfc_str_sub(text, i, SIZE_MAX))) return true;
    return false;
  }
  return text.size && text.data[0] == pattern.data[0] && pattern_matches(rest, tfc_str_sub(text, 1, SIZE_MAX));
}

// NULL: these two devices cannot exchange data.
static inline const struct tfc_link *link_between(const struct tfc_machine *m, uint32_t from, uint32_t to) {
  const struct tfc_machine_device *a = &m->devices[from], *b = &m->devices[to];
  const tfc_hosts other = tfc_str_equal(a->host, b->host) ? TFC_HOSTS_DIFFERENT : TFC_HOSTS_SAME;
  const struct tfc_link *last = NULL;
  for (uint32_t i = 0; i < m->link_count; i++) {
    const struct tfc_link *l = &m->links[i];
    if (l->hosts != other && pattern_matches(l->from, a->name) && pattern_matches(l->to, b->name)) last = l;
  }
  return last;
}

// Whether the links of all pairs are those that are found pair by pair.
static inline bool links_agree(const struct tfc_machine *m) {
  uint32_t *row = calloc((size_t)m->device_count * m->device_count + 1, sizeof *row);
  bool agree = row && !tfc_machine_links(m, row);
  for (uint32_t from = 0; from < m->device_count && agree; from++)
    for (uint32_t to = 0; to < m->device_count && agree; to++) {
      const uint32_t i = row[(size_t)from * m->device_count + to];
      agree = (i == TFC_NONE ? NULL : &m->links[i]) == link_between(m, from, to);
    }
  free(row);
  return agree;
}

#endif
