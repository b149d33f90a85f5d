// Workload: what one replica does in a step. It computes on its device, reads parameters from where they are kept, and
// sends gradients there. Parameters are the units of a problem that hold a variable: tensors that go from them to other
// units count as read, and tensors that come back count as sent, as if these units were on a parameter server and all
// other units on the replica's device.
//
//   struct tfc_workload w = {0};
//   TFC_TRY(s, tfc_workload_make(problem, device, &w));
//   ... w.step_us, w.pull[i], w.push[i] ...
//   tfc_workload_deinit(&w);
#ifndef TFC_PLACER_REPLICAS_WORKLOAD_H
#define TFC_PLACER_REPLICAS_WORKLOAD_H

#include "placer/model/problem.h"

enum { TFC_WORKLOAD_PIECES = 32 }; // equal parts of the step's time

struct tfc_workload {
  double step_us;   // on the device alone, without any exchange
  double update_us; // the part of step_us that the operations in the parameters' units take, which update them
  // Bytes for each piece: pull must arrive before the piece can begin; push can be sent when it has ended.
  double pull[TFC_WORKLOAD_PIECES], push[TFC_WORKLOAD_PIECES];
  double pulled, pushed;    // the sums of `pull` and of `push`
  uint32_t parameter_count; // units that hold variables and exchange something
  double *parameter;        // [parameter_count] bytes that each of these units exchanges, the largest first
};
// Makes the workload of the step on this device of the problem; a unit that cannot run there is put on the first device
// that can run it. INVALID_ARGUMENT: the step cannot run so.
TFC_MUST_USE tfc_status tfc_workload_make(const struct tfc_problem *problem, uint32_t device, struct tfc_workload *out);
void tfc_workload_deinit(struct tfc_workload *workload);
// Returns how unequally servers are filled if each parameter, the largest first, goes to the server with the fewest
// bytes: the share of the fullest server divided by the mean. 1: all are equally full.
double tfc_workload_imbalance(const struct tfc_workload *workload, uint32_t servers);

#endif
