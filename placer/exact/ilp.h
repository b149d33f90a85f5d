// The placement problem as an integer program, on clusters of units. Internal to the placer.
//
// Throughput: 0-1 variables x[cluster, device]; each device's load with what it receives and sends; the largest load is
// minimised. If every unit is its own cluster this is exact, except that memory which tensors hold for part of a step
// (`live`) is not in the program.
//
// Step: the same variables, and a start time of each cluster. A consumer starts after its producer has ended, and after
// a transfer if the two are on different devices; the work of no device is longer than the step. The order of the work
// on a device is left out, so the optimum is a lower bound.
#ifndef TFC_PLACER_EXACT_ILP_H
#define TFC_PLACER_EXACT_ILP_H

#include "placer/exact/solver.h"
#include "placer/model/problem.h"

#define TFC_ILP_UNITS 64 // callers give each unit its own cluster if there are no more units than this

struct tfc_ilp_answer {
  bool found;   // `device` was filled
  bool optimal; // the program was solved to the end
  bool infeasible;
  bool gave_up;  // the solver failed: nothing is known
  int64_t bound; // lower bound in ps, 0: none. It holds for the problem only if every unit was a cluster of its own.
};
// cluster [unit]: numbers below `count`. start [unit] (optional): a placement that fits; only faster ones are searched
// for. device [unit] is written if a placement was found. `limits->start` is ignored.
TFC_MUST_USE tfc_status tfc_ilp_solve(const struct tfc_problem *problem, const uint32_t *cluster, uint32_t count,
                                      const struct tfc_program_limits *limits, const tfc_device_id *start,
                                      tfc_device_id *device, struct tfc_ilp_answer *out);

#endif
