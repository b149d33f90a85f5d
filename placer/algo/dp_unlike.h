// The search for the best split if links differ (dp.h).
#ifndef TFC_PLACER_ALGO_DP_UNLIKE_H
#define TFC_PLACER_ALGO_DP_UNLIKE_H

#include "placer/algo/dp.h"

// Finds the best split if links differ. value [ideal * state_count + state]: lower bounds for exactly the devices of
// that state; changed. `all`: ideals are sets (bits); otherwise they are prefixes, given by their length. *out_load
// INFINITY: no split was found; *out_done: it is certain that there is none, or that the split found is the best one.
TFC_MUST_USE tfc_status tfc_dp_split_unlike(struct tfc_dp *dp, const struct tfc_dp_ideals *ideals, bool all,
                                            double *value, tfc_device_id *device, double *out_load, bool *out_done);

#endif
