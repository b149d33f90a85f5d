// Rivals: placements that were there before the search (the graph's own device strings, files that were given, single
// devices). `auto` begins at the best of them, and what it answers is never worse than any.
#ifndef TFC_PLACER_SEARCH_RIVALS_H
#define TFC_PLACER_SEARCH_RIVALS_H

#include "placer/search/search.h"

struct tfc_rival {
  const char *name;             // what the outcome's `algorithm` says where it is the answer; lives as long as that
  struct tfc_solution solution; // legal or not; owned by the caller
};
// tfc_search, with rivals under `auto`; algorithms that were named run by themselves. Both objectives.
TFC_MUST_USE tfc_status tfc_search_beside(const struct tfc_problem *problem, const struct tfc_search_options *options,
                                          const struct tfc_rival *rivals, uint32_t count,
                                          struct tfc_search_outcome *out);

#endif
