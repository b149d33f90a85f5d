// Constant folding of small tensors by an op's own reference kernel. Private to runtime/pass.
#ifndef TFC_RUNTIME_PASS_FOLD_H
#define TFC_RUNTIME_PASS_FOLD_H

#include "runtime/pass/pass.h"

// Runs the node on these values (all known); out_values[output_count] are in the arena. Leaves out_values as they are
// (NULL) where the op cannot be folded: state, no reference kernel, large or non-plain tensors, a failing kernel.
void tfc_fold(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_tensor *const *inputs,
              struct tfc_arena *arena, const struct tfc_tensor **out_values);
// A plain tensor copied into the arena; NULL when memory is out.
const struct tfc_tensor *tfc_fold_keep(const struct tfc_tensor *value, struct tfc_arena *arena);

#endif
