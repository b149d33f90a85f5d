// The common order of the edges between tasks. Each task makes its own plan of a step. All of them send and receive in
// the common order, so that tasks cannot wait for each other in a circle (runtime/exec/plan/build.c).
#ifndef TFC_RUNTIME_CLUSTER_COMMON_ORDER_H
#define TFC_RUNTIME_CLUSTER_COMMON_ORDER_H

#include "runtime/pass/pass.h"

// Estimates a node's time in us, from its FLOP and bytes. 0: the node computes nothing (a no-op, a view, a variable).
double tfc_cluster_node_us(const struct tfc_graph *g, uint32_t node, const struct tfc_shapes *shapes);
// Makes a topological order of the whole graph; position [node]: the node's place in it. ranks [node]: the task that
// runs the node. Edges from the end of a loop back to its beginning are left out.
TFC_MUST_USE tfc_status tfc_cluster_order(const struct tfc_graph *g, const uint32_t *ranks, uint32_t tasks,
                                          uint32_t *position);

#endif
