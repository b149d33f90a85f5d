// Loads: the throughput objective, kept up to date while units move. Internal to the placer.
//
// For each net, how many of its consuming units are on each device; for each device, its load and memory. Moving a unit
// touches the nets that it produces or consumes and nothing else.
#ifndef TFC_PLACER_LOADS_H
#define TFC_PLACER_LOADS_H

#include "placer/problem.h"

struct tfc_loads {
  const struct tfc_problem *problem;
  tfc_device_id *device;                       // [unit]
  int64_t *load;                               // [device] ps
  uint64_t *memory;                            // [device]
  uint32_t *count;                             // [net * device_count + device] consuming units there
  uint64_t transfers, transfer_bytes, missing; // missing: transfers without a link
};
TFC_MUST_USE tfc_status tfc_loads_init(struct tfc_loads *loads, const struct tfc_problem *problem);
void tfc_loads_deinit(struct tfc_loads *loads);
void tfc_loads_reset(struct tfc_loads *loads, const tfc_device_id *device); // units must be allowed where they are
void tfc_loads_move(struct tfc_loads *loads, uint32_t unit, tfc_device_id to);
int64_t tfc_loads_value(const struct tfc_loads *loads); // the largest load; TFC_TIME_MAX with missing links
uint64_t tfc_loads_excess(const struct tfc_loads *loads);

#endif
