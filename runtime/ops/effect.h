// The effects of nodes: what a node changes outside of its step, and what it reads from there.
#ifndef TFC_RUNTIME_OPS_EFFECT_H
#define TFC_RUNTIME_OPS_EFFECT_H

#include "runtime/graph/op_def.h"

// Returns the effect of the node's op, by its row, or by its name if it has none.
tfc_op_effect tfc_node_effect(const struct tfc_node *n);
bool tfc_node_is_placeholder(const struct tfc_node *n); // whether it only gives a value that is fed
// Whether it is a placeholder, with a default or without, or reads a queue, an iterator or a reader.
bool tfc_node_is_outside(const struct tfc_node *n);

// NULL: the node may run in this process. INVALID_ARGUMENT: the graph is not trusted (runtime/base/sandbox.h), and the
// node reads or writes files.
TFC_MUST_USE tfc_status tfc_node_may_run(const struct tfc_graph *g, const struct tfc_node *n);

#endif
