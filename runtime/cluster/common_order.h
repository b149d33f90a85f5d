// The common order of the edges between tasks: tasks send and receive in it, so that plans that each task makes for
// itself cannot wait for each other in a circle (runtime/exec/plan/build.c).
#ifndef TFC_RUNTIME_CLUSTER_COMMON_ORDER_H
#define TFC_RUNTIME_CLUSTER_COMMON_ORDER_H

#include "runtime/pass/pass.h"

// An estimate of a node's time, from its FLOP and bytes, in us; 0 for what has no operation.
double tfc_cluster_node_us(const struct tfc_graph *g, uint32_t node, const struct tfc_shapes *shapes);
// Makes a topological order of the whole graph: position [node]. `ranks` [node]: the task of each node. In a loop,
// edges that lead back to its begin do not count.
TFC_MUST_USE tfc_status tfc_cluster_order(const struct tfc_graph *g, const uint32_t *ranks, uint32_t tasks,
                                          uint32_t *position);

#endif
