// Finds which columns of a tensor an op selects (Split, SplitV and Slice along the last dimension), or which tensors it
// joins along that dimension (ConcatV2). Rewrites use this: a kernel that can itself read or write columns of a wider
// tensor does not need such an op.
#ifndef TFC_RUNTIME_OPS_ARRAY_COLUMNS_H
#define TFC_RUNTIME_OPS_ARRAY_COLUMNS_H

#include "runtime/graph/op_def.h"

// The operands of an operation: inputs' shapes as it reads them, and values that are known when planning (else NULL).
struct tfc_columns_of {
  const struct tfc_op_def *def;
  const struct tfc_shape *const *shapes;
  const struct tfc_tensor *const *values;
  uint32_t input_count, output_count;
};
// Whether output `output` has all rows of input *out_input, and neighbouring columns of it, of which *out_first is the
// first.
bool tfc_takes_columns(const struct tfc_columns_of *op, uint32_t output, uint32_t *out_input, int64_t *out_first);
// Whether the output is the first *out_count inputs side by side.
bool tfc_joins_columns(const struct tfc_columns_of *op, uint32_t *out_count);

#endif
