// The link between two devices, written only from the text of the format's rules: the last row that matches the ordered
// pair. It looks at one pair at a time, so it is slow and easy to check.
#ifndef TFC_TESTS_PLACER_LINKS_H
#define TFC_TESTS_PLACER_LINKS_H

#include "placer/model/machine.h"

// NULL: these two devices cannot exchange data.
static inline const struct tfc_link *link_between(const struct tfc_machine *m, uint32_t from, uint32_t to) {
  const struct tfc_machine_device *a = &m->devices[from], *b = &m->devices[to];
  const tfc_hosts other = tfc_str_equal(a->host, b->host) ? TFC_HOSTS_DIFFERENT : TFC_HOSTS_SAME;
  const struct tfc_link *last = NULL;
  for (uint32_t i = 0; i < m->link_count; i++) {
    const struct tfc_link *l = &m->links[i];
    if (l->hosts != other && tfc_glob_match(l->from, a->name) && tfc_glob_match(l->to, b->name)) last = l;
  }
  return last;
}

#endif
