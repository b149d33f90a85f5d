// Devices of one class (of equal times), or all devices together, called inner here; the others are outer. Bounds ask
// what units take and what transfers cost on them.
#ifndef TFC_PLACER_EXACT_INNER_H
#define TFC_PLACER_EXACT_INNER_H

#include "placer/model/problem.h"

enum { TFC_INNER_MOST_CLASSES = 16 }; // with more classes, bounds look at all devices together only

// Whether a device is inner. `class` TFC_NONE: all are.
static inline bool tfc_inner_is(const struct tfc_problem *p, uint32_t class, uint32_t device) {
  return class == TFC_NONE || p->device_class[device] == class;
}
uint32_t tfc_inner_count(const struct tfc_problem *problem, uint32_t class);

struct tfc_inner_times {
  int64_t inner, outer; // a unit's shortest times on inner and on outer devices, in ps; INT64_MAX: none may have it
};
struct tfc_inner_times tfc_inner_times_of(const struct tfc_problem *problem, uint32_t class, uint32_t unit);

// If every load is at most T, outer devices take over at most T times this much of the units' `work` ([unit] ps on
// inner devices, 0: none may have it). INFINITY: an outer device has a unit for nothing.
double tfc_inner_relief(const struct tfc_problem *problem, uint32_t class, const double *work);

// Sets out_cost[net] to the least time, in ps, that an inner device is charged for a net if some of its units are there
// and others are not. False: there may be a transfer that charges none, or out of memory.
bool tfc_inner_net_costs(const struct tfc_problem *problem, uint32_t class, int64_t *out_cost);

#endif
