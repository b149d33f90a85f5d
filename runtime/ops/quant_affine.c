// QuantizeV2 and Dequantize, which convert numbers to integers of 8, 16 or 32 bits and back. An integer stands for a
// position in a range; there is one range for the whole tensor, or one for each slice along `axis`.
//
// MIN_COMBINED: the ends of the range are the least and the greatest integer. MIN_FIRST: the same, but the range is
// shifted until the number 0 is an integer. SCALED: 0 is the integer 0, and of the range's ends, the one that is
// farther away (in integers) is its type's last integer.
#include <float.h>
#include <math.h>
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

enum mode { MIN_COMBINED, MIN_FIRST, SCALED };
struct affine {
  enum mode mode;
  bool narrow, even;
  int axis;
  float least_range;
};
static tfc_status prepare_affine(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct affine, a);
  const struct tfc_graph *g = ctx->graph;
  const struct tfc_node *n = ctx->node;
  tfc_str mode = tfc_node_attr_string(g, n, "mode", "MIN_COMBINED");
  *a = (struct affine){.mode = tfc_str_is(mode, "SCALED")      ? SCALED
                               : tfc_str_is(mode, "MIN_FIRST") ? MIN_FIRST
                                                               : MIN_COMBINED,
                       .narrow = tfc_node_attr_bool(g, n, "narrow_range", false),
                       .even = tfc_str_is(tfc_node_attr_string(g, n, "round_mode", ""), "HALF_TO_EVEN"),
                       .axis = (int)tfc_node_attr_int(g, n, "axis", -1),
                       .least_range = (float)tfc_node_attr_float(g, n, "ensure_minimum_range", 0.01)};
  TFC_KERNEL_CHECK(!a->even || a->mode == SCALED, "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED'");
  TFC_KERNEL_CHECK(a->mode == MIN_COMBINED || tfc_node_attr_type(g, n, "dtype", TFC_FLOAT) == TFC_FLOAT,
                   "When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '%.*s'", TFC_STR_ARG(mode));
  return NULL;
}

struct slices { // x as [outer, count, inner]; without an axis there is one slice
  int64_t outer, count, inner;
};
static tfc_status slices_of(struct tfc_kernel_ctx *ctx, const struct affine *a, struct slices *out) {
  const struct tfc_shape *x = &ctx->inputs[0]->shape;
  *out = (struct slices){1, 1, 1};
  TFC_KERNEL_CHECK(a->axis < x->rank, "Axis must be less than input dimension(%d), got %d", x->rank, a->axis);
  if (a->axis < 0) {
    out->inner = tfc_shape_elements(x);
  } else {
    for (int d = 0; d < a->axis; d++) out->outer *= x->dims[d];
    out->count = x->dims[a->axis];
    for (int d = a->axis + 1; d < x->rank; d++) out->inner *= x->dims[d];
  }
  for (uint32_t i = 1; i < 3; i++)
    TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[i]) == out->count,
                     "%s must have as many elements as there are slices, %lld; its shape is %s",
                     i == 1 ? "min_range" : "max_range", (long long)out->count,
                     tfc_shape_show(&ctx->inputs[i]->shape, (char[TFC_SHAPE_TEXT]){0}));
  if (a->mode == MIN_FIRST && out->count != 1) // TensorFlow rejects this, in these words
    return tfc_status_make(TFC_UNIMPLEMENTED, "MIN_FIRST mode is not implemented with axis != -1.");
  return NULL;
}

struct integers {           // the integers of a quantized type
  float least, most, steps; // steps: how many there are from least to most
  bool is_signed;
};
static struct integers integers_of(tfc_dtype t) {
  switch ((int)t) {
  case TFC_QINT8: return (struct integers){-128, 127, 255, true};
  case TFC_QUINT8: return (struct integers){0, 255, 255, false};
  case TFC_QINT16: return (struct integers){-32768, 32767, 65535, true};
  case TFC_QUINT16: return (struct integers){0, 65535, 65535, false};
  default: return (struct integers){-0x1p31f, 0x1p31f, 0x1p32f, true}; // float cannot represent 2³¹ - 1
  }
}
static double steps_of(tfc_dtype t) {
  return t == TFC_QINT32 ? 4294967295.0 : (double)integers_of(t).steps;
}
// Converts like x86: a number that does not fit into 32 bits becomes the least integer.
static int32_t whole(float v) {
  return v >= -0x1p31f && v < 0x1p31f ? (int32_t)v : INT32_MIN;
}
static void store(tfc_dtype t, void *data, int64_t i, int32_t v) {
  switch (tfc_dtype_size(t)) {
  case 1: ((uint8_t *)data)[i] = (uint8_t)v; break;
  case 2: ((uint16_t *)data)[i] = (uint16_t)v; break;
  default: ((int32_t *)data)[i] = v;
  }
}
static float load(tfc_dtype t, const void *data, int64_t i) {
  switch ((int)t) {
  case TFC_QINT8: return ((const int8_t *)data)[i];
  case TFC_QUINT8: return ((const uint8_t *)data)[i];
  case TFC_QINT16: return ((const int16_t *)data)[i];
  case TFC_QUINT16: return ((const uint16_t *)data)[i];
  default: return (float)((const int32_t *)data)[i];
  }
}

// --- QuantizeV2 ----------------------------------------------------------------------------------------------------
struct scale {
  float low, high, factor, base;
};
// Returns the range that is used instead of [low, high]: it contains 0 and is not too small.
static struct scale scale_of(const struct affine *a, tfc_dtype t, float low, float high) {
  const struct integers q = integers_of(t);
  struct scale s = {.low = low < 0 ? low : 0};
  float size = fabsf(low) < fabsf(high) ? fabsf(high) : fabsf(low), apart = (1 < size ? size : 1) * a->least_range;
  s.high = high < s.low + apart ? s.low + apart : high;
  s.high = 0 < s.high ? s.high : 0;
  switch (a->mode) {
  case MIN_COMBINED: s.factor = (float)(steps_of(t) / (double)(s.high - s.low)); break;
  case MIN_FIRST:
    s.factor = s.high == s.low ? 0 : (float)(steps_of(t) / (double)(s.high - s.low));
    s.base = roundf(s.low * s.factor) - q.least;
    break;
  case SCALED: {
    const float least = q.least + (a->narrow ? 1 : 0);
    const float by_low = least * s.low > 0 ? least / s.low : FLT_MAX;
    const float by_high = q.most * s.high > 0 ? q.most / s.high : FLT_MAX;
    s.factor = by_high < by_low ? by_high : by_low;
    s.low = least / s.factor;
    s.high = q.most / s.factor;
  }
  }
  return s;
}
static int32_t quantized(const struct affine *a, const struct scale *s, const struct integers *q, float x) {
  if (a->mode == MIN_FIRST) {
    const float top = q->most < 0x1p31f ? q->most : 0x1.fffffep30f; // the greatest float below 2³¹
    float v = roundf(x * s->factor) - s->base;
    v = v < q->least ? q->least : v;
    return whole(top < v ? top : v);
  }
  x = s->high < x ? s->high : x;
  x = x < s->low ? s->low : x;
  if (a->mode == SCALED)
    x = a->even ? rintf(x * s->factor) : roundf(x * s->factor);
  else if (q->is_signed)
    x = roundf((x - s->low) * s->factor + q->least);
  else
    x = (x - s->low) * s->factor + 0.5f;
  return isnan(x) ? 0 : whole(x);
}

// Inputs: input, min_range, max_range; outputs: output, output_min, output_max.
static tfc_status quantize(struct tfc_kernel_ctx *ctx) {
  const struct affine *a = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  const tfc_dtype t = ctx->graph->output_dtypes[ctx->node->output_begin];
  const struct integers q = integers_of(t);
  struct tfc_tensor *y[3] = {0};
  struct slices s;
  TFC_RETURN_IF_ERROR(slices_of(ctx, a, &s));
  for (uint32_t i = 1; i < 3 && a->axis >= 0; i++)
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 1, "If axis is specified, the range must be vectors");
  const float *low = ctx->inputs[1]->data, *high = ctx->inputs[2]->data, *in = x->data;
  for (int64_t c = 0; c < s.count; c++)
    TFC_KERNEL_CHECK(!(high[c] < low[c]), "input_max_range must be larger than input_min_range.");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, t, &x->shape, &y[0]));
  const struct tfc_shape *ranges = s.count == 1 ? &TFC_SHAPE_SCALAR : &ctx->inputs[1]->shape; // as TensorFlow does
  for (uint32_t i = 1; i < 3; i++) TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, TFC_FLOAT, ranges, &y[i]));
  for (int64_t c = 0; c < s.count; c++) {
    const struct scale scale = scale_of(a, t, low[c], high[c]);
    for (int64_t o = 0; o < s.outer; o++)
      for (int64_t i = 0; i < s.inner; i++) {
        const int64_t at = (o * s.count + c) * s.inner + i;
        store(t, y[0]->data, at, quantized(a, &scale, &q, in[at]));
      }
    ((float *)y[1]->data)[c] = scale.low;
    ((float *)y[2]->data)[c] = scale.high;
  }
  return NULL;
}

// --- Dequantize ----------------------------------------------------------------------------------------------------
struct line { // number = before + (integer + shift) * factor + after
  float shift, factor, before, after;
};
static struct line line_of(const struct affine *a, tfc_dtype t, float low, float high) {
  const struct integers q = integers_of(t);
  struct line l = {0};
  if (a->mode == MIN_COMBINED) {
    l = (struct line){.shift = -q.least, .factor = (high - low) / q.steps, .after = low};
  } else if (a->mode == MIN_FIRST) {
    l.factor = (float)((double)(high - low) / steps_of(t));
    l.before = (high == low ? low : roundf(low / l.factor) * l.factor) - q.least * l.factor;
  } else if (q.is_signed) {
    const float by_low = low / (q.least + (a->narrow ? 1 : 0)), by_high = high / q.most;
    l.factor = by_low < by_high ? by_high : by_low;
  } else {
    l.factor = high / q.most;
  }
  return l;
}

// Inputs: input, min_range, max_range; one output.
static tfc_status dequantize(struct tfc_kernel_ctx *ctx) {
  const struct affine *a = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  const tfc_dtype to = ctx->graph->output_dtypes[ctx->node->output_begin];
  struct tfc_tensor *y = NULL;
  struct slices s;
  TFC_RETURN_IF_ERROR(slices_of(ctx, a, &s));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, to, &x->shape, &y));
  for (int64_t c = 0; c < s.count; c++) {
    const struct line l =
        line_of(a, x->dtype, ((const float *)ctx->inputs[1]->data)[c], ((const float *)ctx->inputs[2]->data)[c]);
    for (int64_t o = 0; o < s.outer; o++)
      for (int64_t i = 0; i < s.inner; i++) {
        const int64_t at = (o * s.count + c) * s.inner + i;
        float v = load(x->dtype, x->data, at);
        // As in TensorFlow, 2³¹ - 1 becomes -2³¹ here, because it goes through float.
        if (a->mode == SCALED && s.count == 1) v = (float)whole(v);
        if (a->mode == MIN_COMBINED)
          v = (v + l.shift) * l.factor + l.after;
        else
          v = a->mode == MIN_FIRST ? l.before + v * l.factor : v * l.factor;
        if (to == TFC_FLOAT)
          ((float *)y->data)[at] = v;
        else
          ((uint16_t *)y->data)[at] = tfc_float_to_bfloat16(v);
      }
  }
  return NULL;
}

// --- Shapes --------------------------------------------------------------------------------------------------------
static tfc_status shape_affine(struct tfc_shape_ctx *ctx) {
  int64_t axis = tfc_node_attr_int(ctx->graph, ctx->node, "axis", -1);
  const struct tfc_shape *x = ctx->inputs[0];
  struct tfc_shape range = TFC_SHAPE_UNKNOWN;
  if (axis < -1) return tfc_status_make(TFC_INVALID_ARGUMENT, "axis should be at least -1, got %lld", (long long)axis);
  for (uint32_t i = 1; i < 3; i++) TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, axis < 0 ? 0 : 1, &range));
  if (axis >= 0 && x->rank >= 0) {
    if (axis >= x->rank)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "axis %lld is outside of %d dimensions", (long long)axis, x->rank);
    TFC_RETURN_IF_ERROR(tfc_dim_merge(range.dims[0], x->dims[axis], &(int64_t){0}));
  }
  ctx->outputs[0] = *x;
  for (uint32_t i = 1; i < ctx->node->output_count; i++) ctx->outputs[i] = range;
  return NULL;
}

#define MODE "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'"
#define QUANTIZED "T: {qint8, quint8, qint32, qint16, quint16}"
#define TYPES                                                                                                          \
  (TFC_TYPE_BIT(TFC_QINT8) | TFC_TYPE_BIT(TFC_QUINT8) | TFC_TYPE_BIT(TFC_QINT16) | TFC_TYPE_BIT(TFC_QUINT16) |         \
   TFC_TYPE_BIT(TFC_QINT32))
static const struct tfc_op_def quant_affine_rows[] = {
    {.name = "QuantizeV2",
     .inputs = "input: float, min_range: float, max_range: float",
     .outputs = "output: T, output_min: float, output_max: float",
     .attrs = QUANTIZED ", " MODE ", round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO', "
                        "narrow_range: bool = false, axis: int = -1, ensure_minimum_range: float = 0.01",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .types = TYPES,
     .shape = shape_affine,
     .cost = ops_cost_outputs,
     .prepare = prepare_affine,
     .kernel = quantize,
     .samples = "float[3,4], float[]=-1, float[]=2 {T=quint8}; float[3,2], float[2]=[-1,0], float[2]=[2,3] {T=qint8, "
                "mode='SCALED', axis=1}"},
    {.name = "Dequantize",
     .inputs = "input: T, min_range: float, max_range: float",
     .outputs = "output: dtype",
     .attrs = QUANTIZED ", " MODE ", narrow_range: bool = false, axis: int = -1, dtype: {bfloat16, float} = float",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .types = TYPES,
     .shape = shape_affine,
     .cost = ops_cost_outputs,
     .prepare = prepare_affine,
     .kernel = dequantize,
     .samples = "quint8[3,4], float[]=-1, float[]=2"},
};
TFC_REGISTER_OPS(quant_affine_rows);
