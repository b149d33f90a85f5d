// Runs dense optimizer updates whose gradient is computed block by block instead of read from memory. A rewrite of
// plans uses this to run the operations before an update (weight decay) together with the update.
#ifndef TFC_RUNTIME_OPS_TRAINING_APPLY_H
#define TFC_RUNTIME_OPS_TRAINING_APPLY_H

#include "runtime/ops/kernel.h"

enum { TFC_APPLY_BLOCK = 512 };

struct tfc_apply_source {
  int64_t elements; // of the whole gradient
  // Computes elements [first, first + count) of the gradient in float32; count <= TFC_APPLY_BLOCK. Any thread.
  void (*fill)(const void *arg, int64_t first, int64_t count, float *out);
  const void *arg;
};

// Returns the number of the input that is the gradient; TFC_NONE: the op is no dense update.
uint32_t tfc_apply_gradient(const struct tfc_op_def *def);
// Runs the op's kernel with its prepared state. The gradient comes from `source`; the tensor in its input is not read.
TFC_MUST_USE tfc_status tfc_apply_run(struct tfc_kernel_ctx *ctx, const void *state,
                                      const struct tfc_apply_source *source);

#endif
