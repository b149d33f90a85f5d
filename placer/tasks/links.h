// Times the links between tasks by real transfers. A chain of element-wise operations sends a tensor to and fro between
// two tasks; the same chain is also run in one task. The difference of the two step times, divided by the number of
// transfers, is the time of a transfer. Both tasks look for messages meanwhile; a step after a pause, in which they
// have gone to sleep, tells what waking takes.
#ifndef TFC_PLACER_TASKS_LINKS_H
#define TFC_PLACER_TASKS_LINKS_H

#include "runtime/cluster/client.h"

enum { TFC_TASK_LINK_SIZES = 4, TFC_TASK_LINKS_ALL = 16 }; // with at most TFC_TASK_LINKS_ALL tasks, every pair is timed
struct tfc_task_link {
  uint32_t a, b; // ranks, a < b
  struct {
    double bytes, time_us;
  } point[TFC_TASK_LINK_SIZES]; // ascending in bytes, not falling in time
  double wake_us;               // how much longer a message takes if its receiver sleeps
};
// Times every pair of tasks if there are at most TFC_TASK_LINKS_ALL; otherwise each task with the next one and with
// task 0. out: has room for count * count links. After `end_s` (on tfc_now_ns's clock) each pair that is left gets
// only a few steps.
TFC_MUST_USE tfc_status tfc_task_links(struct tfc_member *member, const struct tfc_cluster_spec *spec, double end_s,
                                       struct tfc_task_link *out, uint32_t *out_count);

#endif
