// Lowers single calls, for passes that need to see the nodes of the function.
#ifndef TFC_RUNTIME_PASS_FUNCTIONS_H
#define TFC_RUNTIME_PASS_FUNCTIONS_H

#include "runtime/pass/pass.h"

// The type of tfc_builder_gradients. Functions below take it as an argument and do not call it by name, because the
// files of the gradients depend on the files of the lowering (see lower.c).
typedef tfc_status tfc_gradients_fn(struct tfc_builder *b, const struct tfc_output *ys, uint32_t y_count,
                                    const struct tfc_output *xs, uint32_t x_count, const struct tfc_output *grad_ys,
                                    struct tfc_output *out_grads);

// Lowers one node of a builder, but not the calls in its body: see tfc_lower_functions. `inside`: the node is in a loop
// or a branch (tfc_frames_is_inside). UNIMPLEMENTED names a node whose function is missing or has ops that tfc does not
// know.
TFC_MUST_USE tfc_status tfc_builder_lower(struct tfc_builder *b, tfc_gradients_fn *gradients, uint32_t id, bool inside);
// As tfc_lower_functions, with the function that lowers SymbolicGradient as an argument.
TFC_MUST_USE tfc_status tfc_lower_all(const struct tfc_graph *g, tfc_gradients_fn *gradients, struct tfc_graph **out,
                                      uint32_t **out_origin);

#endif
