// Lower bounds from how a problem's units can be divided among devices.
#ifndef TFC_PLACER_EXACT_DIVISION_H
#define TFC_PLACER_EXACT_DIVISION_H

#include "placer/model/problem.h"

// Units are not divided. Of j m + 1 units on m devices one device gets at least j + 1, which take at least as long as
// the j + 1 shortest of them. Both objectives; ps; 0: out of memory.
int64_t tfc_division_crowding(const struct tfc_problem *problem);

// Throughput: devices that pay for what they receive and send. Units that are connected by nets of at least this cost
// are on one device, which is then too long busy, or each device with some of them pays for one such net. ps; 0:
// transfers may cost nothing, or out of memory.
int64_t tfc_division_severing(const struct tfc_problem *problem);

#endif
