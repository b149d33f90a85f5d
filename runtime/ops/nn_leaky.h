// The loop of LeakyRelu, for fusion.
#ifndef TFC_RUNTIME_OPS_NN_LEAKY_H
#define TFC_RUNTIME_OPS_NN_LEAKY_H

#include "runtime/graph/op_def.h"

// A loop for float32 over x and `alpha`, which is an attribute of the op: y = x > 0 ? x : x * alpha, as the op's kernel
// rounds it.
extern const struct tfc_elementwise tfc_leaky_relu_loops;

#endif
