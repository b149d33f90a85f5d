// ClipByValue limits values to [min, max]; each bound is a scalar or has the shape of the values.
#include <math.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

#define CLIP(t, ...)                                                                                                   \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      ops_##t##_c v = OPS_GET_##t(((const ops_##t *)x->data)[i]),                                                      \
                  lo = OPS_GET_##t(((const ops_##t *)low->data)[i * a]);                                               \
      ops_##t##_c hi = OPS_GET_##t(((const ops_##t *)high->data)[i * b]);                                              \
      v = hi < v ? hi : v;                                                                                             \
      v = v < lo ? lo : v; /* the lower bound is the stronger one */                                                   \
      ((ops_##t *)y->data)[i] = OPS_PUT_##t(v);                                                                        \
    }                                                                                                                  \
    return NULL;
static tfc_status clip(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *low = ctx->inputs[1], *high = ctx->inputs[2];
  struct tfc_tensor *y = NULL;
  for (int i = 1; i < 3; i++)
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 0 || tfc_shape_equal(&x->shape, &ctx->inputs[i]->shape),
                     "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. input "
                     "shape: %s, got %s",
                     tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(&ctx->inputs[i]->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &x->shape, &y));
  int64_t n = tfc_tensor_elements(x), a = low->shape.rank > 0, b = high->shape.rank > 0;
  switch (x->dtype) {
    OPS_REALS(CLIP, ~)
  default: return ops_unsupported_type(ctx, x->dtype);
  }
}
OPS_GRADIENT(ClipByValue) { // if a bound replaced a value, the bound gets its gradient
  struct tfc_output zeros = grad_op1(g, "ZerosLike", G), low = grad_in(g, 1), high = grad_in(g, 2);
  struct tfc_output below = grad_op2(g, "Less", X, low), above = grad_op2(g, "Greater", X, high);
  struct tfc_output outside = grad_op2(g, "LogicalOr", below, above);
  g->grad_inputs[0] = grad_op3(g, "SelectV2", outside, zeros, G);
  struct tfc_output of[2] = {grad_op3(g, "SelectV2", below, G, zeros), grad_op3(g, "SelectV2", above, G, zeros)};
  for (uint32_t i = 0; i < 2; i++) {
    grad_unbroadcast(g, grad_in(g, 1 + i), g->input_shapes[1 + i], X, g->input_shapes[0], &of[i], NULL);
    g->grad_inputs[1 + i] = of[i];
  }
  return NULL;
}

static const struct tfc_op_def math_clip_rows[] = {
    {.name = "ClipByValue",
     .inputs = "t: T, clip_value_min: T, clip_value_max: T",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_NUMBER,
     .types = OPS_BITS(OPS_REALS),
     .host = {"T", TFC_INT32_BIT},
     .shape = ops_shape_same,
     .cost = ops_cost_outputs,
     .kernel = clip,
     .gradient = gradient_ClipByValue,
     .samples = "float[3,4], float[]=-0.5, float[]=0.5; double[5], double[5], double[]=2"},
};
TFC_REGISTER_OPS(math_clip_rows);
