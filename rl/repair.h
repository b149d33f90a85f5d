// Repair: what a policy samples need not fit into the devices' memory, and where few placements do, none of its samples
// would: there is nothing to learn from then. What is on a device that is too full is moved to the one with the most
// room that may have it, until the simulated peaks keep to the limits: what belongs to one actor together where it
// fits, since what is torn apart holds its tensors twice, else unit by unit. The policy still answers for what it
// chose: the repair is part of the world that it learns about.
#ifndef TFC_RL_REPAIR_H
#define TFC_RL_REPAIR_H

#include "placer/simulate/simulate.h"
#include "rl/actors.h"

struct tfc_repair {
  const struct tfc_problem *problem;
  const struct tfc_actors *actors;
  struct tfc_simulator *simulator;
  double ratio;        // of what was needed to what was simulated, lately
  uint64_t *limit;     // [device] what is aimed at: the limits, divided by that
  uint64_t *memory;    // [device] simulated peaks
  uint64_t *together;  // [actor] scratch: bytes on the fullest device
  uint64_t *weight;    // [unit] bytes that it holds
  uint32_t *order;     // [unit] heaviest first
  tfc_device_id *best; // [unit] scratch: the best seen
};
TFC_MUST_USE tfc_status tfc_repair_init(struct tfc_repair *repair, const struct tfc_problem *problem,
                                        const struct tfc_actors *actors);
void tfc_repair_deinit(struct tfc_repair *repair);
// Changes device[unit] until it fits, as far as it can; true: it does, as simulated. Deterministic.
bool tfc_repair_fit(struct tfc_repair *repair, tfc_device_id *device);
// What the devices needed when it was run: memory that is freed late (a step's tensors are only reused where that adds
// no wait) makes it more than simulated, and what is aimed at less.
void tfc_repair_observe(struct tfc_repair *repair, const tfc_device_id *device, const uint64_t *memory);

#endif
