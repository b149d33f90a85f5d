// List scheduling, for HEFT, PEFT, m-ETF, m-TOPO and m-SCT. It stores when each device becomes free, where tensors are
// and how much memory is left, and places node by node; the first node of a unit places the whole unit. Its times are
// estimates in which transfers do not wait for each other; the value of the result comes from the simulator. Internal
// to the algorithms.
#ifndef TFC_PLACER_ALGO_LISTER_H
#define TFC_PLACER_ALGO_LISTER_H

#include "placer/search/local.h"

struct tfc_lister {
  const struct tfc_problem *problem;
  uint32_t *device;        // [unit] or TFC_NONE
  int64_t *free_at;        // [device] ps
  uint64_t *memory;        // [device] bytes used
  int64_t *start, *finish; // [node] ps; finish < 0: not scheduled
  uint32_t *waiting;       // [node] producers, counted by input tensors, that are not scheduled yet
  uint32_t *ready;         // nodes whose producers are all scheduled, in the order in which they became ready
  uint32_t ready_count;
  bool insert; // operations may go into gaps (HEFT); false: only after all others
  struct tfc_gap_list {
    int64_t *begin, *end;
    size_t count, capacity;
  } * gaps; // [device] idle times, with `insert`
};
TFC_MUST_USE tfc_status tfc_lister_init(struct tfc_lister *lister, const struct tfc_problem *problem, bool insert);
void tfc_lister_deinit(struct tfc_lister *lister);
// Whether the node may go on the device: its unit is there or not placed yet, memory suffices, and links to its placed
// neighbours exist.
bool tfc_lister_can(const struct tfc_lister *lister, uint32_t node, uint32_t device);
// Returns the earliest start of the node on the device, ps. The node's producers must be scheduled.
int64_t tfc_lister_start(const struct tfc_lister *lister, uint32_t node, uint32_t device);
// Schedules the node on the device; consumers that become ready are appended to `ready`. False: out of memory.
bool tfc_lister_put(struct tfc_lister *lister, uint32_t node, uint32_t device);
// For the case that tfc_lister_can is false for every device: returns the device with the most memory left, among those
// that may run the unit.
uint32_t tfc_lister_last_resort(const struct tfc_lister *lister, uint32_t node);
// Makes the solution: units are moved where memory limits or missing links ask for it, and the precedence is the best
// of three: the order of the schedule's starts, the problem's own, and that of tfc_local_rerank (or of as many of these
// as the budget has evaluations).
TFC_MUST_USE tfc_status tfc_lister_finish(struct tfc_lister *lister, const struct tfc_budget *budget,
                                          struct tfc_solution *out, uint64_t *evaluations);
// These return the mean time of a node over the devices that can run it, and the mean time of a tensor on the wire
// between two devices, ps.
double tfc_lister_mean_time(const struct tfc_problem *problem, uint32_t node);
double tfc_lister_mean_wire(const struct tfc_problem *problem, uint32_t tensor);
// Computes the upward rank (Topcuoglu et al. 2002, eq. 8): the node's mean time plus the maximum, over its consumers,
// of the mean transfer time plus the consumer's rank. out_rank [node] ps.
void tfc_lister_upward(const struct tfc_problem *problem, double *out_rank);

#endif
