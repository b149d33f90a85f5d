// The plan of a step: which tasks run parts of it, and for each part the feeds, the fetches and the targets: the step's
// own targets, and the _Send nodes of tensors that other tasks need.
#ifndef TFC_RUNTIME_CLUSTER_PLANS_H
#define TFC_RUNTIME_CLUSTER_PLANS_H

#include "runtime/cluster/cut.h"
#include "runtime/exec/session.h"

struct tfc_cluster_part { // the part of a plan that one task runs
  uint32_t rank;
  TFC_ARRAY(uint32_t) feeds, fetches; // indices into the feeds and fetches of the step
  struct tfc_text feed_names, fetch_names, target_names;
  struct tfc_text crossings; // as in a message (struct tfc_head_plan)
  uint32_t target_count, crossing_count;
};
struct tfc_cluster_plan {
  uint32_t id;
  struct tfc_output *feeds, *fetches;
  uint32_t *targets;
  uint32_t feed_count, fetch_count, target_count;
  struct tfc_cluster_part *parts;
  uint32_t *ranks; // ranks of the other tasks that run parts
  uint32_t part_count, foreign_count;
  uint32_t own; // index of this task's part, TFC_NONE: none
  // All tasks may run it by static plans, for feeds of these shapes. NULL: ready order, for any shapes.
  struct tfc_shape *feed_shapes;
  bool *wanted; // [runner] queue runners whose queues the step uses, or NULL
};

// A step may run by static plans if it is estimated to take `static_us` and nothing in it needs ready order, in any
// task. That needs spec->feed_shapes; INFINITY: no step. `own`: this task's rank; `tasks`: how many there are;
// `queues`: the graph's queue runners, or NULL.
struct tfc_cluster_queues;
TFC_MUST_USE tfc_status tfc_cluster_plan_make(const struct tfc_cut *cut, uint32_t own, uint32_t tasks,
                                              const struct tfc_cluster_queues *queues, const struct tfc_run_spec *spec,
                                              double static_us, struct tfc_cluster_plan **out);
void tfc_cluster_plan_free(struct tfc_cluster_plan *p); // NULL is fine
// Whether the plan has these feeds, fetches and targets, and, if it is for such alone, these shapes.
bool tfc_cluster_plan_is_for(const struct tfc_cluster_plan *p, const struct tfc_run_spec *spec);
bool tfc_cluster_plan_has_names(const struct tfc_cluster_plan *p, const struct tfc_run_spec *spec); // of any shapes

#endif
