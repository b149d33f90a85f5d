// Lowering of single calls, for passes that need to see inside of some of them; and functions' gradients.
#ifndef TFC_RUNTIME_PASS_FUNCTIONS_H
#define TFC_RUNTIME_PASS_FUNCTIONS_H

#include "runtime/pass/pass.h"

// Lowers one node of a builder, not what its body calls in turn: see tfc_lower_functions. `inside`: it is in a loop or
// a branch (tfc_frames_is_inside). UNIMPLEMENTED names a node whose function is missing or has ops that tfc does not
// know.
TFC_MUST_USE tfc_status tfc_builder_lower(struct tfc_builder *b, uint32_t id, bool inside);

// The gradient of a function as a function of its own: of its arguments and of its results' gradients. *out borrows
// from `fn` and owns `body`, `args` (which `rets` lies behind).
TFC_MUST_USE tfc_status tfc_function_gradient(const struct tfc_function *fn, struct tfc_function *out);

#endif
