// Orders of units: by the first of their nodes in a topological order of the graph. Constants, parameters and nodes
// that are computed from a single one of them come right before the first node that needs them, not at the beginning,
// so that a split keeps them with their reader. Internal to the algorithms.
#ifndef TFC_PLACER_ALGO_ORDER_H
#define TFC_PLACER_ALGO_ORDER_H

#include "placer/model/problem.h"

// Fills out_order [unit_count]. depth_first: successors in the graph follow closely in the order; else breadth first.
TFC_MUST_USE tfc_status tfc_order_units(const struct tfc_problem *problem, bool depth_first, uint32_t *out_order);

#endif
