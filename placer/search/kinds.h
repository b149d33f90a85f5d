// Kinds: two units are of one kind if they take the same time, send the same bytes, and their neighbours up to some
// distance do, too. The time steps and layers of an unrolled network consist of units of the same kinds. The names of
// nodes do not count. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_KINDS_H
#define TFC_PLACER_SEARCH_KINDS_H

#include "placer/model/problem.h"

struct tfc_kinds {
  uint32_t count;
  uint32_t *of;    // [unit] its kind
  uint32_t *first; // [count + 1] where each kind begins in `unit`
  uint32_t *unit;  // all units sorted by kind, those of one kind in topological order
  uint32_t *at;    // [unit] its index in `unit`
};
TFC_MUST_USE tfc_status tfc_kinds_find(struct tfc_kinds *kinds, const struct tfc_problem *problem);
void tfc_kinds_deinit(struct tfc_kinds *kinds);

#endif
