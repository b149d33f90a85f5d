// Ideals of the graph of runs (dp.h).
#ifndef TFC_PLACER_ALGO_DP_IDEALS_H
#define TFC_PLACER_ALGO_DP_IDEALS_H

#include "placer/algo/dp.h"

// All ideals of the graph of runs with forward edges, the full one last; *out_all false: there are too many.
TFC_MUST_USE tfc_status tfc_dp_find_ideals(const struct tfc_dp *dp, struct tfc_dp_ideals *ideals, bool *out_all);
// Makes only the ideals that are prefixes of the linear order.
TFC_MUST_USE tfc_status tfc_dp_linear_ideals(const struct tfc_dp *dp, struct tfc_dp_ideals *ideals);

#endif
