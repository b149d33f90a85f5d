// Search: runs algorithms under a budget on all cores and keeps the best. `auto` runs heuristics first,
// then local searches that start from the best placements and share what they find (search.c).
#ifndef TFC_PLACER_SEARCH_SEARCH_H
#define TFC_PLACER_SEARCH_SEARCH_H

#include "placer/algo/algo.h"
#include "placer/exact/bound.h"
#include "placer/search/account.h"

struct tfc_search_progress {
  const char *algorithm;         // the running algorithm
  double seconds, seconds_total; // total 0: no time limit
  uint64_t evaluations, evaluations_total;
  int64_t best; // ps; TFC_TIME_MAX: no legal placement yet
  bool feasible;
  int64_t bound;
};

// How to search: what the flags of tfc-place set for every search of a run, wherever the graph runs.
struct tfc_search_settings {
  const char *algorithms;              // "auto" (also NULL), or names separated by commas
  const struct tfc_algo *const *extra; // more algorithms to choose from, ended by NULL; may be NULL
  const struct tfc_guide *guide;       // the learned policy that `auto` uses too; NULL: none
};

struct tfc_search_options {
  struct tfc_search_settings settings;
  double seconds;       // 0: no time limit; then `evaluations` must be set
  uint64_t evaluations; // 0: no limit
  uint64_t seed;
  uint32_t threads;                 // 0: as many as this process may use
  const atomic_bool *cancel;        // may be NULL
  const struct tfc_solution *start; // a placement to begin from, may be NULL
  bool prove;                       // throughput: raise the lower bound, too (prover.h); takes time of its own
  struct tfc_evaluator *evaluator;  // for algorithms that need one; NULL: simulated
  void (*progress)(void *user, const struct tfc_search_progress *progress); // called from the calling thread, may be
                                                                            // NULL
  void *user;
  // For resuming. Whenever the search reaches a point from which it can be resumed, it calls `kept` with its state, on
  // the calling thread; NULL: the state is not kept. `state`: the last state of an interrupted search on the same
  // problem with the same settings; size 0: the search starts from the beginning. If only evaluations limit a search,
  // the resumed search ends bit-identical to one that was not interrupted. An algorithm that was named and was
  // interrupted begins again.
  tfc_status (*kept)(void *user, tfc_str state);
  void *kept_user;
  tfc_str state;
};

// The result of one algorithm.
struct tfc_search_entry {
  const char *algorithm;
  int64_t value;   // ps; TFC_TIME_MAX: nothing legal
  uint64_t excess; // bytes above limits
  uint64_t evaluations;
  double seconds;
  struct tfc_solution solution; // device NULL: no placement
  char *note;                   // why it did not run, or NULL
};
struct tfc_search_outcome {
  struct tfc_solution best; // device NULL: no legal placement was found
  int64_t value;            // ps
  uint64_t excess;          // 0: it fits
  const char *algorithm;    // the algorithm that found the best
  uint64_t evaluations;
  double seconds;          // how long it took; of a resumed search, all parts together
  bool cancelled, optimal; // optimal: the value equals the lower bound
  struct tfc_bound bound;
  uint32_t entry_count;
  struct tfc_search_account learned; // what a learned policy did
  struct tfc_search_entry *entries;  // one for each algorithm that ran, in the order given
};
// A cancelled search returns no error: the outcome says that it was cancelled. INVALID_ARGUMENT: an algorithm is
// unknown, or `state` belongs to another search.
TFC_MUST_USE tfc_status tfc_search(const struct tfc_problem *problem, const struct tfc_search_options *options,
                                   struct tfc_search_outcome *out);
void tfc_search_outcome_deinit(struct tfc_search_outcome *outcome);

#endif
