// Cuts an order of units into one run for each device. Internal to the algorithms.
#ifndef TFC_PLACER_ALGO_SPLIT_H
#define TFC_PLACER_ALGO_SPLIT_H

#include "placer/search/local.h"

// Fills device [unit]: cuts `order` into one run for each device, in the order of the devices. All runs take about the
// same time, and none needs more memory than its device has; units are moved if memory limits or missing links still
// require it.
void tfc_split_order(const struct tfc_problem *problem, struct tfc_random *random, const uint32_t *order,
                     tfc_device_id *device);

#endif
