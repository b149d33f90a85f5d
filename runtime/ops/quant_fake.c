// Fake quantisation (Jacob et al. 2018): floats rounded to what `num_bits` can say between min and max, which are moved
// so that zero is one of them.
#include "runtime/ops/nn_common.h"

struct range {
  float low, high, scale, inverse, zero; // zero: the number that stands for 0
};

static tfc_status range_prepare(struct tfc_prepare_ctx *ctx) {
  struct range *r = TFC_ARENA_NEW(ctx->arena, struct range);
  if (!r) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  float min = (float)tfc_node_attr_float(ctx->graph, ctx->node, "min", -6);
  float max = (float)tfc_node_attr_float(ctx->graph, ctx->node, "max", 6);
  int64_t bits = tfc_node_attr_int(ctx->graph, ctx->node, "num_bits", 8);
  TFC_KERNEL_CHECK(min < max, "min has to be smaller than max, was: %g >= %g", (double)min, (double)max);
  TFC_KERNEL_CHECK(bits >= 2 && bits <= 16, "num_bits must be between 2 and 16, inclusive");
  float least = tfc_node_attr_bool(ctx->graph, ctx->node, "narrow_range", false) ? 1 : 0;
  float most = (float)((1 << bits) - 1);
  r->scale = (max - min) / (most - least);
  r->inverse = 1.0f / r->scale;
  float zero = least - min / r->scale;
  zero = zero < least ? least : zero > most ? most : roundf(zero);
  r->low = (least - zero) * r->scale;
  r->high = (most - zero) * r->scale;
  r->zero = floorf(-r->low * r->inverse + 0.5f);
  ctx->state = r;
  return NULL;
}

static tfc_status fake_quant(struct tfc_kernel_ctx *ctx) {
  const struct range *r = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  const float *in = x->data;
  float *out = y->data;
  for (int64_t i = 0, n = tfc_tensor_elements(x); i < n; i++) {
    float v = in[i] < r->low ? r->low : in[i] > r->high ? r->high : in[i];
    out[i] = floorf((v - r->low) * r->inverse - r->zero + 0.5f) * r->scale;
  }
  return NULL;
}
// (gradients, inputs): passes where the input was in range.
static tfc_status fake_quant_gradient(struct tfc_kernel_ctx *ctx) {
  const struct range *r = ctx->state;
  const struct tfc_tensor *g = ctx->inputs[0], *x = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(tfc_shape_equal(&g->shape, &x->shape), "gradient and input must be the same size");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  const float *in = x->data, *dy = g->data;
  float *out = y->data;
  for (int64_t i = 0, n = tfc_tensor_elements(x); i < n; i++)
    out[i] = dy[i] * (in[i] >= r->low && in[i] <= r->high ? 1.0f : 0.0f);
  return NULL;
}
static tfc_status grad_of_fake_quant(struct tfc_grad_ctx *c) {
  c->grad_inputs[0] =
      tfc_grad_add(c, "FakeQuantWithMinMaxArgsGradient", TFC_OUTPUTS(c->grad_outputs[0], tfc_grad_input(c, 0)),
                   "min max num_bits narrow_range");
  return tfc_grad_status(c);
}
TFC_COST_PER_ELEMENT(cost, 6)
static const struct tfc_op_def quant_fake_rows[] = {
    {.name = "FakeQuantWithMinMaxArgs",
     .inputs = "inputs: float",
     .outputs = "outputs: float",
     .attrs = "min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = false",
     .flags = TFC_OP_INPLACE,
     .shape = tfc_nn_shape_first,
     .gradient = grad_of_fake_quant,
     .cost = cost,
     .prepare = range_prepare,
     .kernel = fake_quant,
     .samples = "float[3,4]; float[0]; float[7]"},
    {.name = "FakeQuantWithMinMaxArgsGradient",
     .inputs = "gradients: float, inputs: float",
     .outputs = "backprops: float",
     .attrs = "min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = false",
     .flags = TFC_OP_INPLACE,
     .shape = tfc_nn_shape_merge_all,
     .cost = cost,
     .prepare = range_prepare,
     .kernel = fake_quant_gradient,
     .samples = "float[3,4], float[3,4]"},
};
TFC_REGISTER_OPS(quant_fake_rows);
