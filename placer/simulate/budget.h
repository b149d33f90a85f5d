// What limits a proposal: it ends as soon as one of the limits is reached; a heuristic returns as soon as it is ready.
// If `evaluations` is the only limit, the outcome depends on the seed alone, not on time or the number of cores.
#ifndef TFC_PLACER_SIMULATE_BUDGET_H
#define TFC_PLACER_SIMULATE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "placer/simulate/score.h"

struct tfc_guide;
struct tfc_guide_samples;
struct tfc_budget {
  double deadline;      // seconds on tfc_now_ns()'s clock (1e-9 * ns), 0: none
  uint64_t evaluations; // simulated or measured placements, 0: no limit
  uint64_t seed;
  uint32_t threads;              // at least 1
  const atomic_bool *cancel;     // set by another thread to cancel (say, one that handles signals); NULL: never
  const struct tfc_guide *guide; // the learned policy, for algorithms that use one; NULL: none
  // An algorithm that is a learned policy says here what its own placements were so far, before each of them is
  // measured and when it ends (placer/search/guide.h). NULL: nobody asks.
  struct tfc_guide_samples *samples;
  // An algorithm that measures placements may simulate so many to choose them (0: no limit), and adds to *simulated how
  // many it did (NULL: nobody asks).
  uint64_t simulations, *simulated;
  // Called when an algorithm finds a better placement, on the thread that found it, with the bytes above the memory
  // limits and the value in ps. NULL: not called.
  void (*found)(void *user, uint64_t excess, int64_t value);
  void *found_user;
};
bool tfc_budget_over(const struct tfc_budget *budget); // cancelled, or the deadline has passed

// Calls the budget's `found` function, if there is one.
static inline void tfc_budget_found(const struct tfc_budget *budget, struct tfc_score score) {
  if (budget->found && score.value != TFC_TIME_MAX) budget->found(budget->found_user, score.excess, score.value);
}

#endif
