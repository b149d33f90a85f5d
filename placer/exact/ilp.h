// The placement problem as an integer program, on clusters of units. Internal to the placer.
//
// Throughput: x[cluster, device], the loads with what is received and sent over links of any times; the largest load is
// minimised. Exact on units, but for memory that tensors hold for a while (`live`), which it does not see. Step: the
// same choice, with starts along the edges (transfers where the ends differ) and the work of each device below the
// span, without an order on devices: a relaxation.
#ifndef TFC_PLACER_EXACT_ILP_H
#define TFC_PLACER_EXACT_ILP_H

#include "placer/exact/solver.h"
#include "placer/search/local.h"

#define TFC_ILP_UNITS 64 // a program on so many units, unjoined, is worth trying

struct tfc_ilp_answer {
  bool found;   // `device` was filled
  bool optimal; // the program was solved to the end
  bool infeasible;
  bool gave_up;  // the solver died of the program's numbers
  int64_t bound; // ps, 0: none. Holds for the problem only if every unit was its own cluster.
};
// cluster [unit], count of them; start [unit] (optional) is a placement that fits: nothing worse is looked for.
// device [unit] is written where a placement was found. Of `limits`, `start` is not read.
TFC_MUST_USE tfc_status tfc_ilp_solve(const struct tfc_problem *problem, const uint32_t *cluster, uint32_t count,
                                      const struct tfc_program_limits *limits, const tfc_device_id *start,
                                      tfc_device_id *device, struct tfc_ilp_answer *out);

#endif
