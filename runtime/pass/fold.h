// Runs one node on constant inputs with its reference kernel, for shape inference.
#ifndef TFC_RUNTIME_PASS_FOLD_H
#define TFC_RUNTIME_PASS_FOLD_H

#include "runtime/pass/pass.h"

// Returns the value of a Const; NULL if the node is not a Const, or its value's type contradicts its attribute.
const struct tfc_tensor *tfc_const_value(const struct tfc_graph *g, const struct tfc_node *n);
// Whether this node may be run when planning: it has no effects, needs only the host, and has a kernel.
bool tfc_can_fold(const struct tfc_node *n);
// Sets outputs[output_count] to new tensors, which the caller releases. Errors are the kernel's.
TFC_MUST_USE tfc_status tfc_fold(const struct tfc_graph *g, const struct tfc_node *n,
                                 const struct tfc_tensor *const *inputs, struct tfc_tensor *outputs);

#endif
