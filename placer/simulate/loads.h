// Loads: the throughput objective, updated while units move. Internal to the placer.
//
// Stored for each net: how many of its consuming units are on each device, and the set of devices with any; for each
// device: its load and memory. Moving a unit changes only the nets that it produces or consumes, and the effect of a
// move can be computed without making it.
#ifndef TFC_PLACER_SIMULATE_LOADS_H
#define TFC_PLACER_SIMULATE_LOADS_H

#include "placer/model/problem.h"

struct tfc_loads {
  const struct tfc_problem *problem;
  tfc_device_id *device;                       // [unit]
  int64_t *load;                               // [device] ps
  uint64_t *memory;                            // [device]
  uint32_t *count;                             // [net * device_count + device] how many consuming units are there
  uint64_t *ends;                              // [net * words] set of devices with consuming units
  uint32_t words;                              // of a set of devices
  uint64_t transfers, transfer_bytes, missing; // missing: how many transfers have no link
  tfc_device_id *source;                       // [net] its producer's device
  int64_t *time;                               // [net] its time on a wire; only if `sends` is not NULL
  int64_t *peek;                               // [device] loads after the move that tfc_loads_peek evaluated last
  uint64_t peek_missing;
  // [from] the set of destinations whose link occupies the sender, or the receiver. Only if each tensor takes the same
  // time between all pairs of at most 64 devices; otherwise NULL.
  uint64_t *sends, *receives;
};
TFC_MUST_USE tfc_status tfc_loads_init(struct tfc_loads *loads, const struct tfc_problem *problem);
void tfc_loads_deinit(struct tfc_loads *loads);
void tfc_loads_reset(struct tfc_loads *loads, const tfc_device_id *device); // every unit must be allowed on its device
void tfc_loads_move(struct tfc_loads *loads, uint32_t unit, tfc_device_id to);
int64_t tfc_loads_value(const struct tfc_loads *loads); // the largest load; TFC_TIME_MAX: a link is missing
uint64_t tfc_loads_excess(const struct tfc_loads *loads);
// Fills `peek` and `peek_missing` with the result of moving the unit, without moving it.
void tfc_loads_peek(struct tfc_loads *loads, uint32_t unit, tfc_device_id to);
uint64_t tfc_loads_peek_excess(const struct tfc_loads *loads, uint32_t unit, tfc_device_id to);

#endif
