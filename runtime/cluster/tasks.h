// Which task each node of a graph runs in, by device strings, as TensorFlow places: what holds state is where its
// device says, and what works on it is there too.
#ifndef TFC_RUNTIME_CLUSTER_TASKS_H
#define TFC_RUNTIME_CLUSTER_TASKS_H

#include "runtime/cluster/spec.h"
#include "runtime/graph/graph.h"

// out_ranks [node_count]; `own`: the rank of nodes whose device says nothing. UNAVAILABLE: a device names a task that
// there is not. INVALID_ARGUMENT: a device string is none.
// The same within a task: out_devices [node_count], indices of its devices. A device that it has not is its first one.
struct tfc_device_set;
TFC_MUST_USE tfc_status tfc_member_place(const struct tfc_graph *g, const struct tfc_device_set *devices,
                                         uint16_t *out_devices);
TFC_MUST_USE tfc_status tfc_cluster_place(const struct tfc_graph *g, const struct tfc_cluster_spec *spec, uint32_t own,
                                          uint32_t *out_ranks);

#endif
