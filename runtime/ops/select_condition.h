// How the condition of Select is repeated over what it selects; all devices' kernels use it.
#ifndef TFC_RUNTIME_OPS_SELECT_CONDITION_H
#define TFC_RUNTIME_OPS_SELECT_CONDITION_H

#include "runtime/ops/kernel.h"

// Input 0, the condition, is a scalar, has the shape of inputs 1 and 2, or is a vector over their first dimension.
// *out: the shape with which it is broadcast to theirs.
TFC_MUST_USE static inline tfc_status tfc_select_condition(const struct tfc_kernel_ctx *ctx, struct tfc_shape *out) {
  const struct tfc_shape *c = &ctx->inputs[0]->shape, *t = &ctx->inputs[1]->shape, *e = &ctx->inputs[2]->shape;
  TFC_KERNEL_CHECK(tfc_shape_equal(t, e), "'then' and 'else' must have the same size");
  struct tfc_shape condition = *c;
  if (c->rank != 0 && !tfc_shape_equal(c, t)) {
    TFC_KERNEL_CHECK(
        c->rank == 1 && t->rank >= 1 && c->dims[0] == t->dims[0],
        "'cond' must be a scalar, of the shape of 'then', or a vector of the length of its first dimension");
    condition.rank = t->rank;
    for (int d = 1; d < condition.rank; d++) condition.dims[d] = 1;
  }
  *out = condition;
  return NULL;
}

#endif
