// QuantizeAndDequantize: rounds numbers to the values that integers of a given number of bits can express with one
// scale, for the whole tensor or for each slice along `axis`. The scale is the largest with which the range stays
// within the integers and 0 stays exact.
#include <float.h>
#include <math.h>
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

struct rounding {
  bool is_signed, given, narrow, up;
  int axis;
  int64_t bits; // 0: an input has the number
};
static tfc_status prepare_rounding(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct rounding, r);
  const struct tfc_graph *g = ctx->graph;
  const struct tfc_node *n = ctx->node;
  bool v3 = tfc_str_ends(n->op, "V3");
  *r = (struct rounding){.is_signed = tfc_node_attr_bool(g, n, "signed_input", true),
                         .given = tfc_node_attr_bool(g, n, "range_given", v3),
                         .narrow = tfc_node_attr_bool(g, n, "narrow_range", false),
                         .up = tfc_str_is(tfc_node_attr_string(g, n, "round_mode", "HALF_TO_EVEN"), "HALF_UP"),
                         .axis = (int)tfc_node_attr_int(g, n, "axis", -1),
                         .bits = v3 ? 0 : tfc_node_attr_int(g, n, "num_bits", 8)};
  TFC_KERNEL_CHECK(r->axis >= -1, "Axis should be at least -1");
  return NULL;
}

// x as [outer, count, inner]; if axis is -1, there is one slice
struct slices {
  int64_t outer, count, inner;
};
static tfc_status slices_of(const struct tfc_shape *x, int axis, struct slices *out) {
  *out = (struct slices){1, 1, 1};
  if (axis < 0) {
    out->inner = tfc_shape_elements(x);
    return NULL;
  }
  TFC_KERNEL_CHECK(axis < x->rank, "Axis %d is outside of the input's %d dimensions", axis, x->rank);
  for (int d = 0; d < axis; d++) out->outer *= x->dims[d];
  out->count = x->dims[axis];
  for (int d = axis + 1; d < x->rank; d++) out->inner *= x->dims[d];
  return NULL;
}
static tfc_status check_range(const struct tfc_tensor *t, const struct slices *s, int axis, const char *what) {
  if (axis < 0)
    TFC_KERNEL_CHECK(tfc_tensor_elements(t) == 1, "%s must be a scalar, its shape is %s", what,
                     tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}));
  else
    TFC_KERNEL_CHECK(t->shape.rank == 1 && t->shape.dims[0] == s->count, "Shape must be rank 1 of %lld: %s is %s",
                     (long long)s->count, what, tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}

// Inputs: input, input_min, input_max (, num_bits); one output.
static tfc_status quantize(struct tfc_kernel_ctx *ctx) {
  const struct rounding *r = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct slices s;
  int64_t bits = r->bits;
  if (ctx->input_count > 3) {
    TFC_KERNEL_CHECK(ctx->inputs[3]->shape.rank == 0, "num_bits must be a scalar");
    bits = ops_scalar_int(ctx->inputs[3]);
  }
  TFC_KERNEL_CHECK(bits > 0 && bits < (r->is_signed ? 62 : 63), "num_bits is out of range: %lld with signed_input_ %d",
                   (long long)bits, r->is_signed);
  TFC_RETURN_IF_ERROR(slices_of(&x->shape, r->axis, &s));
  if (r->given)
    for (uint32_t i = 1; i < 3; i++)
      TFC_RETURN_IF_ERROR(check_range(ctx->inputs[i], &s, r->axis, i == 1 ? "input_min" : "input_max"));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  if (tfc_tensor_elements(x) == 0) return NULL;
  const int64_t most = r->is_signed ? ((int64_t)1 << (bits - 1)) - 1 : ((int64_t)1 << bits) - 1;
  const int64_t least = !r->is_signed ? 0 : -most - (r->narrow ? 0 : 1);
  OPS_SWITCH(OPS_FLOATS, x->dtype, {
    const S *in = x->data;
    S *out = y->data;
    for (int64_t c = 0; c < s.count; c++) {
      C low = OPS_GET(in[c * s.inner]), high = low, scale, back;
      if (r->given) {
        low = OPS_GET(((const S *)ctx->inputs[1]->data)[c]), high = OPS_GET(((const S *)ctx->inputs[2]->data)[c]);
        TFC_KERNEL_CHECK(low <= high, "Invalid range: input_min %g > input_max %g", (double)low, (double)high);
      }
      for (int64_t o = 0; !r->given && o < s.outer; o++)
        for (int64_t i = 0; i < s.inner; i++) {
          const C v = OPS_GET(in[(o * s.count + c) * s.inner + i]);
          low = v < low ? v : low, high = v > high ? v : high;
        }
      const C none = sizeof(C) == 8 ? (C)DBL_MAX : (C)FLT_MAX;
      const C by_low = (C)least * low > 0 ? (C)least / low : none, by_high = (C)most * high > 0 ? (C)most / high : none;
      if (by_low < by_high) {
        scale = by_low, back = low / (C)least, high = (C)most * back;
      } else {
        scale = by_high, back = high / (C)most, low = (C)least * back;
      }
      for (int64_t o = 0; o < s.outer; o++)
        for (int64_t i = 0; i < s.inner; i++) {
          const int64_t at = (o * s.count + c) * s.inner + i;
          C v = OPS_GET(in[at]);
          if (r->given) v = v < low ? low : v > high ? high : v;
          v *= scale;
          OPS_PUT(out[at], (r->up ? floor(v + (C)0.5) : rint(v)) * back);
        }
    }
  })
  return NULL;
}

// Inputs: gradients, input, input_min, input_max; outputs: the gradients of the input (0 outside of the range) and of
// the range (0).
static tfc_status quantize_grad(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *grad = ctx->inputs[0], *x = ctx->inputs[1];
  int axis = (int)tfc_node_attr_int(ctx->graph, ctx->node, "axis", -1);
  struct tfc_tensor *y[3] = {0};
  struct slices s;
  TFC_KERNEL_CHECK(tfc_shape_equal(&grad->shape, &x->shape), "gradient and input must be equal in shape");
  TFC_RETURN_IF_ERROR(slices_of(&x->shape, axis, &s));
  for (uint32_t i = 2; i < 4; i++)
    TFC_RETURN_IF_ERROR(check_range(ctx->inputs[i], &s, axis, i == 2 ? "input_min" : "input_max"));
  for (uint32_t i = 0; i < 3; i++) TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, i, ctx->inputs[i + 1], &y[i]));
  for (int i = 1; i < 3; i++)
    if (y[i]->size) memset(y[i]->data, 0, y[i]->size);
  OPS_SWITCH(OPS_FLOATS, x->dtype, {
    for (int64_t at = 0; at < tfc_tensor_elements(x); at++) {
      const int64_t c = axis < 0 ? 0 : at / s.inner % s.count;
      const C v = OPS_GET(((const S *)x->data)[at]), low = OPS_GET(((const S *)ctx->inputs[2]->data)[c]);
      const C high = OPS_GET(((const S *)ctx->inputs[3]->data)[c]), g = OPS_GET(((const S *)grad->data)[at]);
      OPS_PUT(((S *)y[0]->data)[at], v < low || v > high ? 0 : g);
    }
  })
  return NULL;
}

static tfc_status gradient_straight(struct tfc_grad_ctx *g) {
  g->grad_inputs[0] = g->grad_outputs[0];
  return NULL;
}
static tfc_status gradient_within(struct tfc_grad_ctx *g) {
  struct tfc_output made =
      grad_node(g, "QuantizeAndDequantizeV4Grad",
                TFC_OUTPUTS(g->grad_outputs[0], grad_in(g, 0), grad_in(g, 1), grad_in(g, 2)), "axis");
  for (int i = 0; i < 3; i++) g->grad_inputs[i] = (struct tfc_output){made.node, i};
  return grad_status(g);
}
// Checks the ranges: scalars, or one number for each slice along `axis`.
static tfc_status check_ranges(struct tfc_shape_ctx *ctx, uint32_t x, uint32_t from) {
  int64_t axis = tfc_node_attr_int(ctx->graph, ctx->node, "axis", -1);
  if (axis < -1) return tfc_status_make(TFC_INVALID_ARGUMENT, "axis should be at least -1, got %lld", (long long)axis);
  struct tfc_shape s;
  for (uint32_t i = from; i < from + 2; i++) {
    TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, axis < 0 ? 0 : 1, &s));
    if (axis < 0 || ctx->inputs[x]->rank < 0) continue;
    if (axis >= ctx->inputs[x]->rank)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "axis %lld is outside of %d dimensions", (long long)axis,
                             ctx->inputs[x]->rank);
    TFC_RETURN_IF_ERROR(tfc_dim_merge(s.dims[0], ctx->inputs[x]->dims[axis], &s.dims[0]));
  }
  return NULL;
}
static tfc_status shape_ranged(struct tfc_shape_ctx *ctx) {
  TFC_RETURN_IF_ERROR(check_ranges(ctx, 0, 1));
  ctx->outputs[0] = *ctx->inputs[0];
  return NULL;
}
static tfc_status shape_grad(struct tfc_shape_ctx *ctx) {
  TFC_RETURN_IF_ERROR(check_ranges(ctx, 1, 2));
  bool whole = tfc_node_attr_int(ctx->graph, ctx->node, "axis", -1) < 0;
  for (uint32_t i = 0; i < 3; i++) ctx->outputs[i] = *ctx->inputs[i + 1];
  for (int i = 1; i < 3; i++)
    if (whole && ctx->outputs[i].rank < 0) ctx->outputs[i] = TFC_SHAPE_SCALAR;
  return NULL;
}

#define ROW                                                                                                            \
  .types = TYPES_RUN, .shape = shape_ranged, .cost = ops_cost_outputs, .prepare = prepare_rounding, .kernel = quantize
#define TYPES_RUN (TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE)) // the types that TensorFlow's kernels have
#define TYPES "T: {bfloat16, half, float, double}"
#define ROUND "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'"
static const struct tfc_op_def quant_dequantize_rows[] = {
    {.name = "QuantizeAndDequantizeV2",
     .inputs = "input: T, input_min: T, input_max: T",
     .outputs = "output: T",
     .attrs = "signed_input: bool = true, num_bits: int = 8, range_given: bool = false, " TYPES ", " ROUND
              ", narrow_range: bool = false, axis: int = -1",
     ROW,
     .gradient = gradient_straight,
     .samples = "float[3,4], float[], float[]; float[3,4], float[]=-1, float[]=2 {range_given=true}"},
    {.name = "QuantizeAndDequantizeV3",
     .inputs = "input: T, input_min: T, input_max: T, num_bits: int32",
     .outputs = "output: T",
     .attrs = "signed_input: bool = true, range_given: bool = true, " TYPES ", narrow_range: bool = false, "
              "axis: int = -1",
     .host_inputs = 8,
     ROW,
     .gradient = gradient_straight,
     .samples = "float[3,4], float[]=-1, float[]=2, int32[]=6"},
    {.name = "QuantizeAndDequantizeV4",
     .inputs = "input: T, input_min: T, input_max: T",
     .outputs = "output: T",
     .attrs = "signed_input: bool = true, num_bits: int = 8, range_given: bool = false, " TYPES ", " ROUND
              ", narrow_range: bool = false, axis: int = -1",
     ROW,
     .gradient = gradient_within,
     .samples = "float[3,2], float[2]=[-1,-2], float[2]=[2,3] {range_given=true, axis=1}"},
    {.name = "QuantizeAndDequantizeV4Grad",
     .inputs = "gradients: T, input: T, input_min: T, input_max: T",
     .outputs = "input_backprop: T, input_min_backprop: T, input_max_backprop: T",
     .attrs = TYPES ", axis: int = -1",
     .types = TYPES_RUN,
     .shape = shape_grad,
     .cost = ops_cost_outputs,
     .kernel = quantize_grad,
     .samples = "float[3,4], float[3,4], float[]=-1, float[]=1"},
};
TFC_REGISTER_OPS(quant_dequantize_rows);
