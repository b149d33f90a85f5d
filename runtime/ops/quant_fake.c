// Fake quantisation (Jacob et al. 2018): rounds floats to the values that `num_bits` can express between min and max.
// These are moved a little, so that zero is one of the values.
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

struct range {
  float low, high, scale, inverse, zero; // zero: the integer that stands for 0
};

// Returns the nearest range in which zero is one of the values.
static struct range nudged(float min, float max, int64_t bits, bool narrow) {
  struct range r;
  float least = narrow ? 1 : 0, most = (float)((1 << bits) - 1);
  r.scale = (max - min) / (most - least);
  r.inverse = 1.0f / r.scale;
  float zero = least - min / r.scale;
  zero = isnan(zero) ? 0 : zero < least ? least : zero > most ? most : roundf(zero);
  r.low = (least - zero) * r.scale;
  r.high = (most - zero) * r.scale;
  r.zero = floorf(-r.low * r.inverse + 0.5f);
  return r;
}

static float quantized(const struct range *r, float x) {
  float v = x > r->high ? r->high : x; // if low > high, the result is low
  v = v < r->low ? r->low : v;
  return floorf((v - r->low) * r->inverse - r->zero + 0.5f) * r->scale;
}

struct quant_state {
  int64_t bits;
  bool narrow;
  struct range range; // for FakeQuantWithMinMaxArgs, whose bounds are attributes
};
static tfc_status prepare(struct tfc_prepare_ctx *ctx) {
  struct quant_state *state = TFC_ARENA_NEW(ctx->arena, struct quant_state);
  if (!state) return tfc_status_no_memory(NULL);
  state->bits = tfc_node_attr_int(ctx->graph, ctx->node, "num_bits", 8);
  state->narrow = tfc_node_attr_bool(ctx->graph, ctx->node, "narrow_range", false);
  TFC_KERNEL_CHECK(state->bits >= 2 && state->bits <= 16, "num_bits must be between 2 and 16, inclusive");
  ctx->state = state;
  return NULL;
}
static tfc_status range_prepare(struct tfc_prepare_ctx *ctx) {
  float min = (float)tfc_node_attr_float(ctx->graph, ctx->node, "min", -6);
  float max = (float)tfc_node_attr_float(ctx->graph, ctx->node, "max", 6);
  TFC_KERNEL_CHECK(min < max, "min has to be smaller than max, was: %g >= %g", (double)min, (double)max);
  TFC_RETURN_IF_ERROR(prepare(ctx));
  struct quant_state *state = ctx->state;
  state->range = nudged(min, max, state->bits, state->narrow);
  return NULL;
}

static tfc_status fake_quant(struct tfc_kernel_ctx *ctx) {
  const struct quant_state *state = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  const float *in = x->data;
  float *out = y->data;
  for (int64_t i = 0, n = tfc_tensor_elements(x); i < n; i++) out[i] = quantized(&state->range, in[i]);
  return NULL;
}
// Inputs: (gradients, inputs). Passes a gradient if its input was in the range.
static tfc_status fake_quant_gradient(struct tfc_kernel_ctx *ctx) {
  const struct range *r = &((const struct quant_state *)ctx->state)->range;
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
  c->grad_inputs[0] = grad_node(c, "FakeQuantWithMinMaxArgsGradient", TFC_OUTPUTS(c->grad_outputs[0], grad_in(c, 0)),
                                "min max num_bits narrow_range");
  return grad_status(c);
}

// --- Bounds that are inputs, one for all or one for each channel (the last dimension) ------------------------------
// Checks the bounds in inputs `from` and `from + 1`; *channels becomes 1, or the size of the last dimension if `each`
// channel has bounds.
static tfc_status check_bounds(struct tfc_kernel_ctx *ctx, uint32_t from, bool each, int64_t *channels) {
  const struct tfc_tensor *x = ctx->inputs[from - 1];
  *channels = 1;
  if (each) {
    TFC_KERNEL_CHECK(x->shape.rank >= 1, "Shape must be at least rank 1 but is rank 0");
    *channels = x->shape.dims[x->shape.rank - 1];
  }
  for (uint32_t i = from; i < from + 2; i++) {
    const struct tfc_shape *s = &ctx->inputs[i]->shape;
    if (each)
      TFC_KERNEL_CHECK(s->rank == 1 && s->dims[0] == *channels, "%s has incorrect size, expected %lld",
                       i == from ? "min" : "max", (long long)*channels);
    else
      TFC_KERNEL_CHECK(s->rank == 0, "`%s` must be rank 0 but is rank %d", i == from ? "min" : "max", s->rank);
  }
  return NULL;
}
// If min and max are both 0, all results are 0.
static bool is_nothing(float min, float max) {
  return fpclassify(min) == FP_ZERO && fpclassify(max) == FP_ZERO;
}
static tfc_status quant_between(struct tfc_kernel_ctx *ctx, bool each) {
  const struct quant_state *state = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  int64_t channels = 1;
  TFC_RETURN_IF_ERROR(check_bounds(ctx, 1, each, &channels));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  const float *in = x->data, *min = ctx->inputs[1]->data, *max = ctx->inputs[2]->data;
  float *out = y->data;
  for (int64_t c = 0, n = tfc_tensor_elements(x); c < channels; c++) {
    bool nothing = is_nothing(min[c], max[c]);
    struct range r = nudged(min[c], max[c], state->bits, state->narrow);
    for (int64_t i = c; i < n; i += channels) out[i] = nothing ? 0 : quantized(&r, in[i]);
  }
  return NULL;
}
static tfc_status fake_quant_vars(struct tfc_kernel_ctx *ctx) {
  return quant_between(ctx, false);
}
static tfc_status fake_quant_channels(struct tfc_kernel_ctx *ctx) {
  return quant_between(ctx, true);
}
// Inputs below the range give their gradient to min, inputs above it to max.
static tfc_status gradient_between(struct tfc_kernel_ctx *ctx, bool each) {
  const struct quant_state *state = ctx->state;
  const struct tfc_tensor *g = ctx->inputs[0], *x = ctx->inputs[1];
  struct tfc_tensor *dx = NULL, *dmin = NULL, *dmax = NULL;
  int64_t channels = 1;
  TFC_KERNEL_CHECK(tfc_shape_equal(&g->shape, &x->shape), "gradient and input must be the same size");
  TFC_RETURN_IF_ERROR(check_bounds(ctx, 2, each, &channels));
  struct tfc_shape bound = each ? TFC_SHAPE(channels) : TFC_SHAPE_SCALAR;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &x->shape, &dx));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, x->dtype, &bound, &dmin));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2, x->dtype, &bound, &dmax));
  const float *in = x->data, *dy = g->data, *min = ctx->inputs[2]->data, *max = ctx->inputs[3]->data;
  float *out = dx->data;
  for (int64_t c = 0, n = tfc_tensor_elements(x); c < channels; c++) {
    bool nothing = is_nothing(min[c], max[c]);
    struct range r = nudged(min[c], max[c], state->bits, state->narrow);
    double below = 0, above = 0;
    for (int64_t i = c; i < n; i += channels) {
      bool inside = nothing || (in[i] >= r.low && in[i] <= r.high); // false for NaN
      out[i] = nothing ? dy[i] : dy[i] * (inside ? 1.0f : 0.0f);
      if (nothing) continue;
      below += dy[i] * (in[i] < r.low ? 1.0f : 0.0f);
      above += dy[i] * (in[i] > r.high ? 1.0f : 0.0f);
    }
    ((float *)dmin->data)[c] = (float)below;
    ((float *)dmax->data)[c] = (float)above;
  }
  return NULL;
}
static tfc_status fake_quant_vars_gradient(struct tfc_kernel_ctx *ctx) {
  return gradient_between(ctx, false);
}
static tfc_status fake_quant_channels_gradient(struct tfc_kernel_ctx *ctx) {
  return gradient_between(ctx, true);
}
static tfc_status shape_vars_gradient(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = *ctx->inputs[1];
  ctx->outputs[1] = ctx->outputs[2] = TFC_SHAPE_SCALAR;
  return tfc_shape_merge(ctx->inputs[0], ctx->inputs[1], &ctx->outputs[0]);
}
static tfc_status shape_channels_gradient(struct tfc_shape_ctx *ctx) {
  TFC_RETURN_IF_ERROR(tfc_shape_merge(ctx->inputs[0], ctx->inputs[1], &ctx->outputs[0]));
  struct tfc_shape most;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 1, &ctx->outputs[1]));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 3, 1, &most));
  TFC_RETURN_IF_ERROR(tfc_dim_merge(ctx->outputs[1].dims[0], most.dims[0], &ctx->outputs[1].dims[0]));
  ctx->outputs[2] = ctx->outputs[1];
  return NULL;
}
static tfc_status grad_between(struct tfc_grad_ctx *c, const char *op) {
  struct tfc_output made = grad_node(
      c, op, TFC_OUTPUTS(c->grad_outputs[0], grad_in(c, 0), grad_in(c, 1), grad_in(c, 2)), "num_bits narrow_range");
  for (int i = 0; i < 3; i++) c->grad_inputs[i] = (struct tfc_output){made.node, i};
  return grad_status(c);
}
static tfc_status grad_of_vars(struct tfc_grad_ctx *c) {
  return grad_between(c, "FakeQuantWithMinMaxVarsGradient");
}
static tfc_status grad_of_channels(struct tfc_grad_ctx *c) {
  return grad_between(c, "FakeQuantWithMinMaxVarsPerChannelGradient");
}
OPS_COST_PER_ELEMENT(cost, 6)
#define BETWEEN "num_bits: int = 8, narrow_range: bool = false"
static const struct tfc_op_def quant_fake_rows[] = {
    {.name = "FakeQuantWithMinMaxArgs",
     .inputs = "inputs: float",
     .outputs = "outputs: float",
     .attrs = "min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = false",
     .flags = TFC_OP_INPLACE,
     .shape = ops_shape_same,
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
     .shape = ops_shape_merged,
     .cost = cost,
     .prepare = range_prepare,
     .kernel = fake_quant_gradient,
     .samples = "float[3,4], float[3,4]"},
    {.name = "FakeQuantWithMinMaxVars",
     .inputs = "inputs: float, min: float, max: float",
     .outputs = "outputs: float",
     .attrs = BETWEEN,
     .shape = ops_shape_same,
     .gradient = grad_of_vars,
     .cost = cost,
     .prepare = prepare,
     .kernel = fake_quant_vars,
     .samples = "float[3,4], float[]=-1, float[]=2"},
    {.name = "FakeQuantWithMinMaxVarsGradient",
     .inputs = "gradients: float, inputs: float, min: float, max: float",
     .outputs = "backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float",
     .attrs = BETWEEN,
     .shape = shape_vars_gradient,
     .cost = cost,
     .prepare = prepare,
     .kernel = fake_quant_vars_gradient,
     .samples = "float[3,4], float[3,4], float[]=-1, float[]=2"},
    {.name = "FakeQuantWithMinMaxVarsPerChannel",
     .inputs = "inputs: float, min: float, max: float",
     .outputs = "outputs: float",
     .attrs = BETWEEN,
     .shape = ops_shape_same,
     .gradient = grad_of_channels,
     .cost = cost,
     .prepare = prepare,
     .kernel = fake_quant_channels,
     .samples = "float[3,2], float[2]=[-1,-2], float[2]=[1,0.5]"},
    {.name = "FakeQuantWithMinMaxVarsPerChannelGradient",
     .inputs = "gradients: float, inputs: float, min: float, max: float",
     .outputs = "backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float",
     .attrs = BETWEEN,
     .shape = shape_channels_gradient,
     .cost = cost,
     .prepare = prepare,
     .kernel = fake_quant_channels_gradient,
     .samples = "float[3,2], float[3,2], float[2]=[-1,-2], float[2]=[1,0.5]"},
};
TFC_REGISTER_OPS(quant_fake_rows);
