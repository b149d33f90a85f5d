// An optimizer update that multiplies its gradient by a number first, as clipping by a norm does (scaled.c).
#ifndef TFC_RUNTIME_EXEC_REWRITES_SCALED_H
#define TFC_RUNTIME_EXEC_REWRITES_SCALED_H

#include "runtime/exec/rewrites/rewrite.h"

// Returns the number of the input that is the gradient of a dense update, whether it is scaled or not; TFC_NONE: the
// operation is no dense update, or another rewrite has prepared it.
uint32_t tfc_rewrites_gradient(const struct tfc_ir_op *op);

#endif
