// Cutting an order of units into one run for each device. Internal to the algorithms.
#ifndef TFC_PLACER_ALGO_SPLIT_H
#define TFC_PLACER_ALGO_SPLIT_H

#include "placer/search/local.h"

// device [unit]: the devices in turn, each with a run of `order` that takes it about as long as the others theirs, and
// no more than it holds; repaired where memory or missing links ask for it.
void tfc_split_order(const struct tfc_problem *problem, struct tfc_random *random, const uint32_t *order,
                     tfc_device_id *device);

#endif
