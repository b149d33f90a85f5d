// The queue runners of a client's graph: threads that fill its queues, as TensorFlow's coordinator starts them. They
// are started when a step uses one of these queues and has waited for long, and they end with the session.
#ifndef TFC_RUNTIME_CLUSTER_QUEUES_H
#define TFC_RUNTIME_CLUSTER_QUEUES_H

#include "runtime/exec/session.h"

struct tfc_cluster_queues;
// Runs one operation of the graph as a step. (If the graph has no queue runners, tfc_cluster_queues_create sets *out to
// NULL.)
struct tfc_cluster_filler {
  tfc_status (*run)(void *arg, uint32_t node, const _Atomic bool *cancel);
  void *arg;
  _Atomic uint32_t *active; // counts the threads that begin, run or end a step
};
TFC_MUST_USE tfc_status tfc_cluster_queues_create(const struct tfc_graph *graph,
                                                  const struct tfc_cluster_filler *filler,
                                                  struct tfc_cluster_queues **out);
void tfc_cluster_queues_free(struct tfc_cluster_queues *q); // cancels and joins the threads
// Finds which queue runners fill the queues that a step uses. `needed` [node]: the nodes that the step runs. Returns a
// malloc'd array [runner], or NULL if there are none or memory ran out.
bool *tfc_cluster_queues_wanted(const struct tfc_cluster_queues *q, const bool *needed);
// Starts the wanted runners that do not run yet. Any thread.
void tfc_cluster_queues_start(struct tfc_cluster_queues *q, const bool *wanted);
// Between these calls no thread begins a step; steps that have begun go on.
void tfc_cluster_queues_pause(struct tfc_cluster_queues *q);
void tfc_cluster_queues_go_on(struct tfc_cluster_queues *q);
// If a step failed because a queue runner had failed, adds that reason to the step's error.
TFC_MUST_USE tfc_status tfc_cluster_queues_explain(struct tfc_cluster_queues *q, tfc_status status);

#endif
