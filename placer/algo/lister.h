// List scheduling: what HEFT, PEFT, m-ETF, m-TOPO and m-SCT share. It keeps when each device is free, where data is,
// and what memory is left, and places node by node; the first node of a unit places the unit. Times are estimates
// without waiting for wires; the simulator has the last word. Internal to the algorithms.
#ifndef TFC_PLACER_ALGO_LISTER_H
#define TFC_PLACER_ALGO_LISTER_H

#include "placer/search/local.h"

struct tfc_lister {
  const struct tfc_problem *problem;
  uint32_t *device;        // [unit] or TFC_NONE
  int64_t *free_at;        // [device] ps
  uint64_t *memory;        // [device]
  int64_t *start, *finish; // [node] ps; finish < 0: not scheduled
  uint32_t *waiting;       // [node] producers (by input tensors) that are not scheduled
  uint32_t *ready;         // nodes whose producers are scheduled, in the order in which they became so
  uint32_t ready_count;
  bool insert; // into gaps (HEFT), else behind what is there
  struct tfc_gap_list {
    int64_t *begin, *end;
    size_t count, capacity;
  } * gaps; // [device], with insert
};
TFC_MUST_USE tfc_status tfc_lister_init(struct tfc_lister *lister, const struct tfc_problem *problem, bool insert);
void tfc_lister_deinit(struct tfc_lister *lister);
// Whether the node may go there: its unit is there or free to go, memory fits, links to placed neighbours exist.
bool tfc_lister_can(const struct tfc_lister *lister, uint32_t node, uint32_t device);
// Earliest start there, ps. The node's producers must be scheduled.
int64_t tfc_lister_start(const struct tfc_lister *lister, uint32_t node, uint32_t device);
// Schedules it there; consumers that become ready are appended to `ready`. False: out of memory.
bool tfc_lister_put(struct tfc_lister *lister, uint32_t node, uint32_t device);
// A device for the node where none can take it by the rules: an allowed one, with the most memory left.
uint32_t tfc_lister_last_resort(const struct tfc_lister *lister, uint32_t node);
// The solution with the schedule's starts as precedence, repaired where memory or links were broken.
TFC_MUST_USE tfc_status tfc_lister_finish(struct tfc_lister *lister, uint64_t seed, struct tfc_solution *out,
                                          uint64_t *evaluations);
// Mean time of a node over the devices that can run it, and mean time on the wire of a tensor between two devices, ps.
double tfc_lister_mean_time(const struct tfc_problem *problem, uint32_t node);
double tfc_lister_mean_wire(const struct tfc_problem *problem, uint32_t tensor);
// Upward rank (Topcuoglu et al. 2002, eq. 8): mean time plus the longest of mean transfer and rank of consumers.
void tfc_lister_upward(const struct tfc_problem *problem, double *out_rank);

#endif
