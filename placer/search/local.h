// What all local searches need: a meter for the budget, repair and clusters. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_LOCAL_H
#define TFC_PLACER_SEARCH_LOCAL_H

#include "placer/algo/algo.h"
#include "placer/simulate/delta.h"
#include "runtime/base/clock.h"
#include "runtime/base/random.h"

// Counts evaluations against a budget.
struct tfc_meter {
  const struct tfc_budget *budget;
  uint64_t used;
  double begin; // the time when the work began, in seconds
  uint32_t countdown;
  bool over;
};
void tfc_meter_init(struct tfc_meter *meter, const struct tfc_budget *budget);
// Counts one evaluation; false: the budget is spent. Checks the clock now and then.
bool tfc_meter_spend(struct tfc_meter *meter, uint32_t clock_every);
// How much of the budget is spent, from 0 to 1, by the limit that is closest.
double tfc_meter_share(const struct tfc_meter *meter);

// Repairs a placement: moves and exchanges units, as long as each change makes it better, until every tensor has a link
// and every device's memory suffices, if that is possible. Units must be on allowed devices, and remain on such. `kept`
// (optional) [unit]: units that must not move. True: the placement is legal and within memory (by the sum of the nodes'
// memory, not by live bytes).
bool tfc_local_repair(const struct tfc_problem *problem, struct tfc_random *random, tfc_device_id *device,
                      const bool *kept);
// Makes a placement for a search to begin with: all units on one device as far as that is allowed, then repaired. If
// that exceeds memory, it tries the other devices in turn, and then a random device for each unit. True: the placement
// is legal and within memory.
bool tfc_local_any(const struct tfc_problem *problem, struct tfc_random *random, tfc_device_id *device);

// Makes clusters of units: out_cluster[unit] is in [0, return value). Units are joined along heavy nets (transfer time,
// divided by the work of the units) until about `target` clusters are left, none with more than twice the average work
// unless one of its units alone has nearly that much. `device` (optional) [unit]: only units of one device are joined.
// Units pinned or limited to different devices are never joined. 0: out of memory.
uint32_t tfc_local_coarsen(const struct tfc_problem *problem, struct tfc_random *random, const tfc_device_id *device,
                           uint32_t target, uint32_t *out_cluster);

// Chooses precedences that fit the placement: the longest remaining path, with the times of the devices that the
// placement uses and the transfers (the upward rank of Topcuoglu et al. 2002 once everything is placed). Of nodes whose
// paths are equally long, the one with the smaller `tie` [unit] comes first (NULL: the one with the smaller number).
// out_rank [node].
TFC_MUST_USE tfc_status tfc_local_rerank(const struct tfc_problem *problem, const tfc_device_id *device,
                                         const int32_t *tie, uint32_t *out_rank);
// Evaluates the solution with the problem's rank and, for the step objective, also with its own rank (if it has one)
// and with the rank of tfc_local_rerank; keeps the best of these. Adds 1 to 3 to *evaluations.
TFC_MUST_USE tfc_status tfc_local_settle(const struct tfc_problem *problem, struct tfc_simulator *simulator,
                                         struct tfc_solution *solution, struct tfc_score *out_score,
                                         uint64_t *evaluations);
#define TFC_SETTLE_MOST 3 // evaluations that tfc_local_settle takes at most
// The same with at most `most` evaluations, for one or two of them without the less promising ranks. 0: it changes
// nothing, and the score is TFC_SCORE_NONE.
TFC_MUST_USE tfc_status tfc_local_settle_within(const struct tfc_problem *problem, struct tfc_simulator *simulator,
                                                uint64_t most, struct tfc_solution *solution,
                                                struct tfc_score *out_score, uint64_t *evaluations);
// Returns how many evaluations are left of a budget of which `used` are spent; UINT64_MAX: it does not limit them.
static inline uint64_t tfc_budget_left(const struct tfc_budget *budget, uint64_t used) {
  if (!budget->evaluations) return UINT64_MAX;
  return budget->evaluations > used ? budget->evaluations - used : 0;
}

#endif
