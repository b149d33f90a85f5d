// Declarations that the files step*.c share.
#ifndef TFC_RUNTIME_PASS_STEP_INTERNAL_H
#define TFC_RUNTIME_PASS_STEP_INTERNAL_H

#include "runtime/ops/effect.h"
#include "runtime/pass/queue_runners.h"
#include "runtime/pass/step.h"

// Finds the effects of all nodes: for a call, the effects of everything that the function runs.
TFC_MUST_USE tfc_status tfc_node_effects(const struct tfc_graph *g, uint8_t *out); // [node_count]
static inline bool tfc_node_is_variable(const struct tfc_node *n) {                // it exists longer than a step
  return n->def && n->def->flags & TFC_OP_VARIABLE && n->def->role != TFC_ROLE_TEMPORARY;
}

bool tfc_step_dequeues(const struct tfc_node *n); // whether it takes elements out of the queue in its first input

// Whether this is an enqueue that the training program ran in a thread of its own, with feeds, into a queue from which
// the graph takes: it is then not part of a step. `outside` [node]: the node depends on feeds.
bool tfc_step_enqueues_what_is_fed(const struct tfc_graph *g, uint32_t node, const bool *outside);
// Finds the queues from which `needed` takes and that only the training program filled: an enqueue must be fed, and no
// step, initialiser or queue runner fills the queue without feeds. unfilled [node] must be zeroed before the call.
TFC_MUST_USE tfc_status tfc_step_unfilled_queues(const struct tfc_graph *g, const struct tfc_queue_runners *runners,
                                                 const bool *needed, const bool *initial, struct tfc_arena *scratch,
                                                 bool *unfilled);
// Returns the shape of a dequeue's output: the one that its queue declares, or if there is none, the shape of the
// enqueued tensors.
struct tfc_shape tfc_step_dequeued_shape(const struct tfc_graph *g, const struct tfc_shapes *shapes,
                                         struct tfc_output output);

// Sets low, high and why of a synthetic feed, from the operations that use its values.
void tfc_step_feed_range(const struct tfc_graph *g, const struct tfc_shapes *shapes, const bool *needed,
                         struct tfc_arena *arena, struct tfc_step_feed *feed);

#endif
