// Simulator: what a step would cost under a placement. There is one definition for all of tfc (docs/guide.md, "How a
// step is simulated"), exact in whole picoseconds.
//
// A simulator is a workspace for one problem and one thread; make one per thread and reuse it.
#ifndef TFC_PLACER_SIMULATE_SIMULATE_H
#define TFC_PLACER_SIMULATE_SIMULATE_H

#include <stdio.h>

#include "placer/model/problem.h"

// The result of one evaluation. The caller provides the arrays; NULL: the array is not filled.
struct tfc_verdict {
  int64_t value; // ps; TFC_TIME_MAX: illegal, or not below the cutoff (then `cut`)
  bool legal, feasible, cut;
  uint64_t excess; // bytes above the limits, summed over devices
  uint64_t transfers, transfer_bytes;
  int64_t *busy;    // [device] ps: operations, plus the time in which transfers occupy the device; for throughput this
                    // is the load
  uint64_t *memory; // [device] peak bytes
};

// When everything happened: for reports, critical paths, plans and the exported order.
struct tfc_transfer {
  uint32_t tensor;
  tfc_device_id from, to;
  int64_t ready, start, end; // ps; ready: when the tensor was produced
};
struct tfc_timeline {
  uint32_t node_count, transfer_count, path_count, transfer_capacity;
  int64_t *start, *end;           // [node] ps
  uint32_t *sequence;             // [node] position in the sequence of starts: the executed order
  struct tfc_transfer *transfers; // in the order in which they joined the waiting list
  // The critical path: a chain of operations and transfers, each of which began when its predecessor ended, from time 0
  // to the end of the step. Values below node_count are nodes, others are node_count + index of a transfer.
  uint32_t *path;
};

struct tfc_simulator;
TFC_MUST_USE tfc_status tfc_simulator_create(const struct tfc_problem *problem, struct tfc_simulator **out);
void tfc_simulator_free(struct tfc_simulator *simulator); // NULL is fine

// Evaluates the problem's objective. `rank` NULL: the problem's own precedence. Stops as soon as the value cannot be
// below `cutoff` (TFC_TIME_MAX: never): then value is TFC_TIME_MAX and `cut` is set. An illegal placement has value
// TFC_TIME_MAX. Memory above a limit is counted in `excess`; the value is computed in spite of it.
void tfc_simulate(struct tfc_simulator *simulator, const tfc_device_id *device, const uint32_t *rank, int64_t cutoff,
                  struct tfc_verdict *out);
// As tfc_simulate, but also gives a timeline (always of a step, whatever the objective). RESOURCE_EXHAUSTED: out of
// memory.
TFC_MUST_USE tfc_status tfc_simulate_timeline(struct tfc_simulator *simulator, const tfc_device_id *device,
                                              const uint32_t *rank, struct tfc_timeline *out);
void tfc_timeline_deinit(struct tfc_timeline *timeline);

#endif
