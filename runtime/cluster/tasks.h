// Chooses the task in which each node of a graph runs. Device strings decide, as in TensorFlow: a node with state is in
// the task that its device string names, and the operations that use the state are in the same task.
#ifndef TFC_RUNTIME_CLUSTER_TASKS_H
#define TFC_RUNTIME_CLUSTER_TASKS_H

#include "runtime/cluster/spec.h"
#include "runtime/graph/graph.h"

// Chooses in the same way a device of this task for each node: out_devices [node_count], indices into `devices`. If a
// device string names a device that the task does not have, the node gets the first device.
struct tfc_device_set;
TFC_MUST_USE tfc_status tfc_member_place(const struct tfc_graph *g, const struct tfc_device_set *devices,
                                         uint16_t *out_devices);
// Chooses the task of each node: out_ranks [node_count]. `own`: the rank for nodes whose device string names no task.
// UNAVAILABLE: a device string names a task that does not exist. INVALID_ARGUMENT: a device string cannot be read.
TFC_MUST_USE tfc_status tfc_cluster_place(const struct tfc_graph *g, const struct tfc_cluster_spec *spec, uint32_t own,
                                          uint32_t *out_ranks);

#endif
