// Exchange: sends numbers from a task to task 0. The task runs a step that assigns them to a variable of task 0. So no
// other messages are needed than those for running a graph.
//
//   TFC_TRY(s, tfc_task_give(member, spec, us, count));       // every task but 0
//   TFC_TRY(s, tfc_member_barrier(member, "given", cancel));  // all
//   TFC_TRY(s, tfc_task_take(member, spec, rank, count, us)); // task 0, for each rank
#ifndef TFC_PLACER_TASKS_EXCHANGE_H
#define TFC_PLACER_TASKS_EXCHANGE_H

#include "runtime/cluster/client.h"

TFC_MUST_USE tfc_status tfc_task_give(struct tfc_member *member, const struct tfc_cluster_spec *spec,
                                      const double *values, uint32_t count);
TFC_MUST_USE tfc_status tfc_task_take(struct tfc_member *member, const struct tfc_cluster_spec *spec, uint32_t rank,
                                      uint32_t count, double *out);

#endif
