// Units in the order in which their first node comes in a depth-first topological order of the graph: neighbours in
// the graph are neighbours in the order. Internal to the algorithms.
#ifndef TFC_PLACER_ALGO_ORDER_H
#define TFC_PLACER_ALGO_ORDER_H

#include "placer/problem.h"

// out_order [unit_count]; depth_first false: breadth first (the graph's own topological order).
TFC_MUST_USE tfc_status tfc_order_units(const struct tfc_problem *problem, bool depth_first, uint32_t *out_order);

#endif
