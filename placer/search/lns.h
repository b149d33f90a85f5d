// Large-neighbourhood search. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_LNS_H
#define TFC_PLACER_SEARCH_LNS_H

#include "placer/search/local.h"

// Improves `solution` until the budget ends; *score is its score, on entry and on return. Each round takes a
// neighbourhood (operations that run in one window of time, or units around one) out of the placement and puts its
// units back one by one, each where the placement is then best; the round's result is kept if it is not worse.
TFC_MUST_USE tfc_status tfc_local_lns(const struct tfc_problem *problem, const struct tfc_budget *budget,
                                      struct tfc_solution *solution, struct tfc_score *score,
                                      uint64_t *out_evaluations);

#endif
