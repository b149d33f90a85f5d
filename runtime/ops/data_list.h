// Lists of tensors as values.
#ifndef TFC_RUNTIME_OPS_DATA_LIST_H
#define TFC_RUNTIME_OPS_DATA_LIST_H

#include "runtime/ops/kernel.h"

// Instead of TensorListPushBack where all that is popped is looked at for its shape alone: elements have no data.
extern const struct tfc_op_def tfc_list_push_shape_def;

#endif
