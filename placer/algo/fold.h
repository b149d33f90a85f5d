// The folded order of units: for graphs with a backward pass whose groups tie it to the forward pass (gradients and
// their weights, say). Internal to the algorithms.
#ifndef TFC_PLACER_ALGO_FOLD_H
#define TFC_PLACER_ALGO_FOLD_H

#include "placer/model/problem.h"

// Fills out_order [unit_count]. Units that belong only to the backward pass are put next to the units with which they
// exchange most data, and not after all others. *out_folded false: there is no backward pass, and the order is breadth
// first (order.h).
TFC_MUST_USE tfc_status tfc_order_folded(const struct tfc_problem *problem, bool *out_folded, uint32_t *out_order);

#endif
