// Lists of tensors as values.
#ifndef TFC_RUNTIME_OPS_DATA_LIST_H
#define TFC_RUNTIME_OPS_DATA_LIST_H

#include "runtime/ops/kernel.h"

// Replaces TensorListPushBack if only shapes of popped elements are used: elements have no data.
extern const struct tfc_op_def tfc_list_push_shape_def;

#endif
