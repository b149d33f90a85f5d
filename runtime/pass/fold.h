// Runs one node on constant inputs with its reference kernel, for shape inference.
#ifndef TFC_RUNTIME_PASS_FOLD_H
#define TFC_RUNTIME_PASS_FOLD_H

#include "runtime/pass/pass.h"

// The value of a Const; NULL where the node is none, or its type is not what the node says it is.
const struct tfc_tensor *tfc_const_value(const struct tfc_graph *g, const struct tfc_node *n);
// May this node be run when planning: pure, on the host's own terms, with a kernel?
bool tfc_can_fold(const struct tfc_node *n);
// outputs[output_count] are new tensors that the caller releases. Errors are the kernel's.
TFC_MUST_USE tfc_status tfc_fold(const struct tfc_graph *g, const struct tfc_node *n,
                                 const struct tfc_tensor *const *inputs, struct tfc_tensor *outputs);

#endif
