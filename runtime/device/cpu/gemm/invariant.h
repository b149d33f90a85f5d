// Which operands of operations in loops are the same in every iteration of a step.
#ifndef TFC_RUNTIME_DEVICE_CPU_GEMM_INVARIANT_H
#define TFC_RUNTIME_DEVICE_CPU_GEMM_INVARIANT_H

#include "runtime/graph/graph.h"

// True where data input `input` of `node`, which is in a while frame, is a value that a variable had before the loop
// began: reached from outside of all frames through Enter, and through Merge, Switch and NextIteration where they only
// hand it on. False where that is not certain.
bool tfc_gemm_operand_is_invariant(const struct tfc_graph *g, const struct tfc_node *node, uint32_t input);

#endif
