// How one operation can compute the results of several operations of the same kind that have other inputs: for an
// unrolled loop, the operations of all its steps. Operands that differ from step to step are stacked, one behind the
// other in memory; others are shared. For rewrites.
#ifndef TFC_RUNTIME_OPS_STACKING_H
#define TFC_RUNTIME_OPS_STACKING_H

#include "runtime/graph/op_def.h"

typedef enum tfc_stacking {
  TFC_STACKING_NONE,
  TFC_STACKING_ROWS,  // stacked operands and results are [steps * n, ...]: they have more rows
  TFC_STACKING_AHEAD, // ... are [steps, n, ...]; operands of fewer dimensions than the result [steps, 1, ..., n]
} tfc_stacking;

// One of the operations that are to become one. Its shapes are static; a tensor whose rows are stacked is no scalar.
struct tfc_stacking_of {
  const struct tfc_graph *graph;
  const struct tfc_node *node;
  const struct tfc_op_def *def;
  const struct tfc_shape *const *shapes;  // of the inputs, as it reads them
  const struct tfc_tensor *const *values; // of inputs that are known when planning, else NULL
  uint32_t input_count;
  uint32_t stacked; // bit i: input i differs from step to step
};
tfc_stacking tfc_stacking_of(const struct tfc_stacking_of *op);
// Whether constant input `input` has other numbers for the stacked operation; they are written to `out`, one for each
// element.
bool tfc_stacking_constant(const struct tfc_stacking_of *op, tfc_stacking how, uint32_t input, int64_t *out);
// Whether the sum of the operations' results is the result of one operation whose inputs have the rows of all of them:
// gradients of weights and of biases.
bool tfc_stacking_sums(const struct tfc_stacking_of *op);

#endif
