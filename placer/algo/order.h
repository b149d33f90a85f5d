// Units in the order in which their first node comes in a topological order of the graph. Constants, parameters and
// what is made from one of them alone come right before the first node that needs them, not at the beginning.
// Internal to the algorithms.
#ifndef TFC_PLACER_ALGO_ORDER_H
#define TFC_PLACER_ALGO_ORDER_H

#include "placer/model/problem.h"

// out_order [unit_count]; depth_first: neighbours in the graph are neighbours in the order; else breadth first.
TFC_MUST_USE tfc_status tfc_order_units(const struct tfc_problem *problem, bool depth_first, uint32_t *out_order);

// Where groups tie the way back to the way there (gradients and weights, say): units that are on the way back alone
// stand beside those that they exchange most with, not behind everything. *out_folded false: there is no way back, and
// the order is breadth first.
TFC_MUST_USE tfc_status tfc_order_folded(const struct tfc_problem *problem, bool *out_folded, uint32_t *out_order);

#endif
