// What placements are compared by.
#ifndef TFC_PLACER_SIMULATE_SCORE_H
#define TFC_PLACER_SIMULATE_SCORE_H

#include "placer/simulate/simulate.h"

// The score of a placement, compared in this order: legal before illegal, fewer bytes above the limits, smaller value.
struct tfc_score {
  uint64_t excess;
  int64_t value; // TFC_TIME_MAX: illegal
};
#define TFC_SCORE_NONE ((struct tfc_score){UINT64_MAX, TFC_TIME_MAX})
static inline bool tfc_score_better(struct tfc_score a, struct tfc_score b) {
  if ((a.value == TFC_TIME_MAX) != (b.value == TFC_TIME_MAX)) return b.value == TFC_TIME_MAX;
  if (a.excess != b.excess) return a.excess < b.excess;
  return a.value < b.value;
}
static inline struct tfc_score tfc_score_of(const struct tfc_verdict *v) {
  return v->legal ? (struct tfc_score){v->excess, v->value} : TFC_SCORE_NONE;
}

#endif
