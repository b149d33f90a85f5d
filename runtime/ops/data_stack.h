// Stacks of one step.
#ifndef TFC_RUNTIME_OPS_DATA_STACK_H
#define TFC_RUNTIME_OPS_DATA_STACK_H

#include "runtime/ops/kernel.h"

// Instead of StackPushV2 where all that is popped is looked at for its shape alone: elements have no data.
extern const struct tfc_op_def tfc_stack_push_shape_def;

#endif
