// The queue runners of a client's graph: threads that fill its queues, as TensorFlow's coordinator starts them. They
// are started by the first step that waits for long and uses one of these queues, and end with the session.
#ifndef TFC_RUNTIME_CLUSTER_QUEUES_H
#define TFC_RUNTIME_CLUSTER_QUEUES_H

#include "runtime/exec/session.h"

struct tfc_cluster_queues;
// *out is NULL where the graph has no queue runners. `run` runs one operation of it.
struct tfc_cluster_filler {
  tfc_status (*run)(void *arg, uint32_t node, const _Atomic bool *cancel);
  void *arg;
};
TFC_MUST_USE tfc_status tfc_cluster_queues_create(const struct tfc_graph *graph,
                                                  const struct tfc_cluster_filler *filler,
                                                  struct tfc_cluster_queues **out);
void tfc_cluster_queues_free(struct tfc_cluster_queues *q); // cancels and joins the threads
// Which runners a step of the `needed` [node] nodes may wait for; malloc'd [runners], NULL: none, or no memory.
bool *tfc_cluster_queues_wanted(const struct tfc_cluster_queues *q, const bool *needed);
void tfc_cluster_queues_start(struct tfc_cluster_queues *q, const bool *wanted); // any thread; those that do not run
// Why a queue runner ended, where that is why a step did: added to the step's error.
TFC_MUST_USE tfc_status tfc_cluster_queues_explain(struct tfc_cluster_queues *q, tfc_status status);

#endif
