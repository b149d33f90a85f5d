// Exhaustive search, for tiny problems: every placement and, for the step objective, every order in which its
// operations can start. Internal to the placer.
#ifndef TFC_PLACER_EXACT_EXHAUST_H
#define TFC_PLACER_EXACT_EXHAUST_H

#include "placer/simulate/budget.h"

#define TFC_EXHAUST_NODES 32u           // larger problems are refused
#define TFC_EXHAUST_EVALUATIONS 200000u // the limit that callers use, because more evaluations take too long

// Returns the number of evaluations that an exhaustive search takes, if it is at most `most`, otherwise UINT64_MAX.
// `orders`: with all orders of each placement. If that is too many, the caller asks again without `orders`, because one
// evaluation of each placement, with the problem's own precedence, may still be few enough.
uint64_t tfc_exhaust_count(const struct tfc_problem *problem, uint64_t most, bool orders);

// Tries every allowed placement with the problem's own precedence; then, with `orders`, each of them with every order.
// Orders that start the operations of each device in the same sequence count as one. This covers all schedules that the
// simulator can produce for a placement, because the sequence of starts of each schedule is one of the orders.
// *solution (made by tfc_solution_init) becomes the first of the best. *out_complete: everything was tried, so no
// placement is better; false: the budget ended the search. `target` (ps): the search stops at a placement that fits and
// is not above it.
TFC_MUST_USE tfc_status tfc_exhaust(const struct tfc_problem *problem, const struct tfc_budget *budget, bool orders,
                                    int64_t target, struct tfc_solution *solution, struct tfc_score *out_score,
                                    uint64_t *out_evaluations, bool *out_complete);

#endif
