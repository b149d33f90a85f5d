// The effects of ops: what an op changes outside of its step, and what it reads from there.
#ifndef TFC_RUNTIME_OPS_EFFECT_H
#define TFC_RUNTIME_OPS_EFFECT_H

#include "runtime/graph/op_def.h"

typedef enum tfc_op_effect {
  TFC_EFFECT_NONE,
  TFC_EFFECT_UPDATE,  // writes a variable or a queue
  TFC_EFFECT_TABLE,   // fills a lookup table, or starts an iterator
  TFC_EFFECT_RESTORE, // reads a checkpoint
  TFC_EFFECT_SAVE,    // writes files or summaries
} tfc_op_effect;
// Returns the effect of the op of this name. `def`: its row, which tells more; NULL: it has none.
tfc_op_effect tfc_op_effect_of(tfc_str op, const struct tfc_op_def *def);

// Whether the op restarts the iterator in its input 1.
bool tfc_op_begins_iterator(tfc_str op);
bool tfc_op_is_placeholder(tfc_str op); // whether the op only gives a value that is fed
// Whether the op is a placeholder, with a default or without, or reads a queue, an iterator or a reader.
bool tfc_op_is_outside(tfc_str op);
bool tfc_op_closes_queue(tfc_str op);
// Whether the op puts a gradient into the accumulator in input 0, or takes the average of its gradients from it, when
// it has as many as input 1 says.
bool tfc_op_gives_gradient(tfc_str op);
bool tfc_op_takes_gradient(tfc_str op);

// NULL: the node may run in this process. INVALID_ARGUMENT: the graph is not trusted (runtime/base/sandbox.h), and the
// node reads or writes files.
TFC_MUST_USE tfc_status tfc_node_may_run(const struct tfc_graph *g, const struct tfc_node *n);

#endif
