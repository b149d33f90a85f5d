// The folded order of units, in which the backward pass of a training graph lies beside the forward pass instead of
// behind it. Then a piece of the order holds both passes of the same layers, whose weights, activations and gradients
// stay on one device. Internal to the algorithms.
#ifndef TFC_PLACER_ALGO_FOLD_H
#define TFC_PLACER_ALGO_FOLD_H

#include "placer/model/problem.h"

// Fills out_order [unit_count]. Units that belong only to the backward pass are put next to the units with which they
// exchange most data, and not after all others. *out_folded false: there is no backward pass, and the order is breadth
// first (order.h).
TFC_MUST_USE tfc_status tfc_order_folded(const struct tfc_problem *problem, bool *out_folded, uint32_t *out_order);

#endif
