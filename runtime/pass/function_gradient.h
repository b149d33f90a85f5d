// Makes the gradient of a function as a function.
#ifndef TFC_RUNTIME_PASS_FUNCTION_GRADIENT_H
#define TFC_RUNTIME_PASS_FUNCTION_GRADIENT_H

#include "runtime/pass/functions.h"

// The arguments of *out are those of the function and the gradients of its results. *out borrows from `fn` and owns
// `body` and `args` (`rets` is in the same allocation).
TFC_MUST_USE tfc_status tfc_function_gradient(tfc_gradients_fn *gradients, const struct tfc_function *fn,
                                              struct tfc_function *out);

#endif
