// Stacks of one step.
#ifndef TFC_RUNTIME_OPS_DATA_STACK_H
#define TFC_RUNTIME_OPS_DATA_STACK_H

#include "runtime/ops/kernel.h"

// Replaces StackPushV2 if only shapes of popped elements are used: elements have no data.
extern const struct tfc_op_def tfc_stack_push_shape_def;

#endif
