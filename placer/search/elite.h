// Elite: the few best placements of a search, the best first, no two with the same score. Late in a long search these
// would be nearly the same placement, so that combining two of them gives nothing new; an elite may therefore be
// varied. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_ELITE_H
#define TFC_PLACER_SEARCH_ELITE_H

#include "placer/search/local.h"

#define TFC_ELITE 8

struct tfc_elite {
  struct tfc_solution solution[TFC_ELITE];
  struct tfc_score score[TFC_ELITE];
  uint32_t count;
  bool varied; // of placements that differ in hardly any unit, only the best joins or stays when another one joins
};
// Copies the placement into the elite at its rank, if it is good enough.
TFC_MUST_USE tfc_status tfc_elite_join(struct tfc_elite *elite, const struct tfc_problem *problem,
                                       const struct tfc_solution *solution, struct tfc_score score);
TFC_MUST_USE tfc_status tfc_elite_join_all(struct tfc_elite *to, const struct tfc_elite *from,
                                           const struct tfc_problem *problem);
void tfc_elite_clear(struct tfc_elite *elite);

#endif
