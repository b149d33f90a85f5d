// Shared by step*.c.
#ifndef TFC_RUNTIME_PASS_STEP_INTERNAL_H
#define TFC_RUNTIME_PASS_STEP_INTERNAL_H

#include "runtime/pass/step.h"

// What a node does to the world, by its op's name and row; a call by its function's body.
typedef enum tfc_op_effect {
  TFC_EFFECT_NONE,
  TFC_EFFECT_UPDATE,  // writes a variable or a queue
  TFC_EFFECT_TABLE,   // fills a lookup table
  TFC_EFFECT_RESTORE, // reads a checkpoint
  TFC_EFFECT_SAVE,    // writes files or summaries
} tfc_op_effect;
tfc_op_effect tfc_node_effect(const struct tfc_graph *g, const struct tfc_node *n);
bool tfc_node_is_variable(const struct tfc_node *n);

// Sets low, high and why of a synthetic feed from where its values go.
void tfc_step_feed_range(const struct tfc_graph *g, const struct tfc_shapes *shapes, const bool *needed,
                         struct tfc_arena *arena, struct tfc_step_feed *feed);

#endif
