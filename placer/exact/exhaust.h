// Trying everything: on tiny problems every placement, and under the step with every order in which its operations
// can start. Internal to the placer.
#ifndef TFC_PLACER_EXACT_EXHAUST_H
#define TFC_PLACER_EXACT_EXHAUST_H

#include "placer/search/local.h"

#define TFC_EXHAUST_NODES 32u           // at most
#define TFC_EXHAUST_EVALUATIONS 200000u // at most

// How many evaluations trying everything takes: up to `most`, UINT64_MAX: more than that. `orders` says whether orders
// are among it: where they alone are too many, every placement once, with the problem's own precedence, may still be
// few enough.
uint64_t tfc_exhaust_count(const struct tfc_problem *problem, uint64_t most, bool orders);

// Every allowed placement with the problem's own precedence; then, with `orders`, each of them with every order. Two
// orders in which no device starts its operations differently are one. What the simulator can make of a placement is
// what one of these orders makes of it: the order in which operations start is one. The first of the best stays in
// *solution (made by tfc_solution_init). *out_complete: nothing was left out, so no placement is better; else the
// budget ended it. `target` (ps): a fitting placement that is not above it is good enough.
TFC_MUST_USE tfc_status tfc_exhaust(const struct tfc_problem *problem, const struct tfc_budget *budget, bool orders,
                                    int64_t target, struct tfc_solution *solution, struct tfc_score *out_score,
                                    uint64_t *out_evaluations, bool *out_complete);

#endif
