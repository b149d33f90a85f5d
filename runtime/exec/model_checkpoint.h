// Loads values for a session's variables from checkpoints, and saves them.
#ifndef TFC_RUNTIME_EXEC_MODEL_CHECKPOINT_H
#define TFC_RUNTIME_EXEC_MODEL_CHECKPOINT_H

#include "runtime/base/arena.h"
#include "runtime/exec/session.h"
#include "runtime/io/checkpoint.h"

// Restores every variable whose name is a key of the checkpoint; parts of partitioned variables ("w/part_0") get their
// slice of the whole variable. INVALID_ARGUMENT: no variable is in the checkpoint.
struct tfc_restored {
  uint32_t restored, variables;
};
TFC_MUST_USE tfc_status tfc_session_load_checkpoint(struct tfc_session *session, const struct tfc_graph *graph,
                                                    const char *prefix, struct tfc_restored *out);
// Reads the value that a checkpoint has for a variable of the graph: the tensor of this name, or for a part of a
// partitioned variable a slice of the whole.
TFC_MUST_USE tfc_status tfc_checkpoint_read_variable(struct tfc_checkpoint *c, const struct tfc_graph *g, tfc_str name,
                                                     struct tfc_tensor *out, bool *out_found);
// Writes every variable that has a value, with partitioned ones joined as tfc_checkpoint_join_parts does.
TFC_MUST_USE tfc_status tfc_session_save_checkpoint(struct tfc_session *session, const struct tfc_graph *graph,
                                                    const char *prefix, size_t *out_saved);
// Items "w/part_0", "w/part_1" ... become slices of "w", as TensorFlow's Saver writes partitioned variables: along the
// dimension in which they differ or, if they do not differ, along the first one, which is TensorFlow's default. The
// result is in the arena.
TFC_MUST_USE tfc_status tfc_checkpoint_join_parts(struct tfc_checkpoint_item *items, size_t count,
                                                  struct tfc_arena *arena);

#endif
