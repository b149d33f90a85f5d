// Shared by step*.c.
#ifndef TFC_RUNTIME_PASS_STEP_INTERNAL_H
#define TFC_RUNTIME_PASS_STEP_INTERNAL_H

#include "runtime/pass/queue_runners.h"
#include "runtime/pass/step.h"

// What a node does to the world, by its op's name and row; a call by its function's body and all that this calls.
typedef enum tfc_op_effect {
  TFC_EFFECT_NONE,
  TFC_EFFECT_UPDATE,  // writes a variable or a queue
  TFC_EFFECT_TABLE,   // fills a lookup table
  TFC_EFFECT_RESTORE, // reads a checkpoint
  TFC_EFFECT_SAVE,    // writes files or summaries
} tfc_op_effect;
TFC_MUST_USE tfc_status tfc_node_effects(const struct tfc_graph *g, uint8_t *out); // [node_count]
bool tfc_node_is_variable(const struct tfc_node *n);
bool tfc_node_is_placeholder(const struct tfc_node *n);

// An enqueue that a program ran in a thread of its own, with feeds (`outside` [node]: depends on them), for a queue
// that the graph takes from: no part of a step.
bool tfc_step_enqueues_what_is_fed(const struct tfc_graph *g, uint32_t node, const bool *outside);
// unfilled [node], zeroed: the queues that `needed` takes from and that only a program filled: there is an enqueue that
// has to be fed, and no step, initialiser or queue runner that runs by itself.
TFC_MUST_USE tfc_status tfc_step_unfilled_queues(const struct tfc_graph *g, const struct tfc_queue_runners *runners,
                                                 const bool *needed, const bool *initial, struct tfc_arena *scratch,
                                                 bool *unfilled);
// What is known of an output of a dequeue: by its queue, else by what is put in.
struct tfc_shape tfc_step_dequeued_shape(const struct tfc_graph *g, const struct tfc_shapes *shapes,
                                         struct tfc_output output);

// Sets low, high and why of a synthetic feed from where its values go.
void tfc_step_feed_range(const struct tfc_graph *g, const struct tfc_shapes *shapes, const bool *needed,
                         struct tfc_arena *arena, struct tfc_step_feed *feed);

#endif
