// Rivals: placements that exist before the search (the graph's own device strings, given files, single devices). `auto`
// starts from the best of them, and its answer is never worse than any.
#ifndef TFC_PLACER_SEARCH_RIVALS_H
#define TFC_PLACER_SEARCH_RIVALS_H

#include "placer/search/search.h"

struct tfc_rival {
  const char *name; // its name in the outcome if it is the answer; the string must exist as long as the outcome
  struct tfc_solution solution; // legal or not; owned by the caller
};
// Like tfc_search, but `auto` also starts from the rivals. Algorithms that are given by name ignore them. Works for
// both objectives.
TFC_MUST_USE tfc_status tfc_search_beside(const struct tfc_problem *problem, const struct tfc_search_options *options,
                                          const struct tfc_rival *rivals, uint32_t count,
                                          struct tfc_search_outcome *out);

#endif
