// Values for a session's variables and tables from files: SavedModels and checkpoints.
#ifndef TFC_RUNTIME_EXEC_MODEL_H
#define TFC_RUNTIME_EXEC_MODEL_H

#include "runtime/base/arena.h"
#include "runtime/exec/session.h"
#include "runtime/io/checkpoint.h"

// Loads the SavedModel that the session's graph came from (nothing happens for another graph): its variables
// (unless `variables` is false: they come from elsewhere) by its own restore operation, then its initialiser, with its
// assets. placement: as in tfc_run_spec. Errors name the model and the operation.
TFC_MUST_USE tfc_status tfc_session_load_model(struct tfc_session *session, const struct tfc_graph *graph,
                                               const uint16_t *placement, bool variables);

// Gives every variable whose name is a key of the checkpoint that value; parts of partitioned variables ("w/part_0")
// their slice of the whole. INVALID_ARGUMENT where no variable is in it.
struct tfc_restored {
  uint32_t restored, variables;
};
TFC_MUST_USE tfc_status tfc_session_load_checkpoint(struct tfc_session *session, const struct tfc_graph *graph,
                                                    const char *prefix, struct tfc_restored *out);
// Writes every variable that has a value, as what tfc_checkpoint_join_parts says.
TFC_MUST_USE tfc_status tfc_session_save_checkpoint(struct tfc_session *session, const struct tfc_graph *graph,
                                                    const char *prefix, size_t *out_saved);
// Items "w/part_0", "w/part_1" ... become slices of "w", as TensorFlow's Saver writes partitioned
// variables, along the dimension in which they differ, else the first one, TensorFlow's default. What is made of them
// lives in the arena.
TFC_MUST_USE tfc_status tfc_checkpoint_join_parts(struct tfc_checkpoint_item *items, size_t count,
                                                  struct tfc_arena *arena);

#endif
