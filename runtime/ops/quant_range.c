// Operations that change the range of quantized tensors (RequantizationRange, Requantize, QuantizeDownAndShrinkRange,
// and QuantizedConcat, which finds one range for all) or keep it (QuantizedRelu, QuantizedRelu6, QuantizedReshape).
#include "runtime/ops/quant_common.h"
#include "runtime/ops/row.h"

tfc_status tfc_quant_range(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_range *out) {
  for (uint32_t k = i; k < i + 2; k++)
    TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[k]) == 1,
                     "input %u, of a range, must be a scalar, but got shape %s", k,
                     tfc_shape_show(&ctx->inputs[k]->shape, (char[TFC_SHAPE_TEXT]){0}));
  *out = (struct tfc_range){*(const float *)ctx->inputs[i]->data, *(const float *)ctx->inputs[i + 1]->data};
  return NULL;
}
tfc_status tfc_quant_put_range(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_range r) {
  for (uint32_t k = 0; k < 2; k++) {
    struct tfc_tensor *y = NULL;
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i + k, TFC_FLOAT, &TFC_SHAPE_SCALAR, &y));
    *(float *)y->data = k ? r.high : r.low;
  }
  return NULL;
}
static tfc_dtype output_type(const struct tfc_kernel_ctx *ctx) {
  return ctx->graph->output_dtypes[ctx->node->output_begin];
}

OPS_CLONES static void extremes(const int32_t *x, int64_t n, int32_t *out_low, int32_t *out_high) {
  int32_t low = INT32_MAX, high = INT32_MIN;
  for (int64_t i = 0; i < n; i++) low = x[i] < low ? x[i] : low, high = x[i] > high ? x[i] : high;
  *out_low = low, *out_high = high;
}
// Returns the range from the least element (at most 0) to the greatest.
static struct tfc_range used_range(const struct tfc_tensor *x, struct tfc_range r) {
  int32_t low, high;
  extremes(x->data, tfc_tensor_elements(x), &low, &high);
  float least = tfc_quant_value(TFC_QINT32, low, r);
  return (struct tfc_range){least < 0 ? least : 0.0f, tfc_quant_value(TFC_QINT32, high, r)};
}
static tfc_status requantization_range(struct tfc_kernel_ctx *ctx) {
  struct tfc_range r;
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 1, &r));
  return tfc_quant_put_range(ctx, 0, used_range(ctx->inputs[0], r));
}

// Converts sums of 32 bits to 8 bits, in fixed point with 16 fractional bits.
struct fixed_point {
  const int32_t *in;
  uint8_t *out;
  uint64_t scale, offset;
};
static void narrow_range(void *arg, int64_t begin, int64_t end) {
  const struct fixed_point *f = arg;
  for (int64_t i = begin; i < end; i++) { // wraps if a range is absurdly large
    int64_t v = (int64_t)((uint64_t)((int64_t)((uint64_t)f->in[i] * f->scale) >> 32) + f->offset) >> 16;
    f->out[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
  }
}
static void narrow(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *x, struct tfc_range from, struct tfc_range to,
                   struct tfc_tensor *y) {
  float width = from.high - from.low, wanted = to.high - to.low;
  float per_step = wanted == 0 ? 0.0f : (float)(255.0 / (double)wanted);
  float middle = (float)((double)(from.low + from.high) / 2.0);
  int64_t scale = wanted == 0 ? 0 : tfc_quant_whole(255.0 * 65536 * (double)width / (double)wanted);
  int64_t zero = tfc_quant_whole((double)(middle * per_step * 65536.0f));
  int64_t offset = wanted == 0 ? 0 : tfc_quant_whole(round(65536 * ((double)to.low * 255.0) / (double)wanted));
  struct fixed_point job = {x->data, y->data, (uint64_t)scale, (uint64_t)zero - (uint64_t)offset + 32768};
  tfc_kernel_parallel_for(ctx, tfc_tensor_elements(x), 32768, narrow_range, &job);
}
static void change_range(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *x, struct tfc_range from,
                         struct tfc_range to, struct tfc_tensor *y) {
  if (x->dtype == TFC_QINT32 && y->dtype == TFC_QUINT8) {
    narrow(ctx, x, from, to, y);
    return;
  }
  struct tfc_quant_from f = tfc_quant_from(x->dtype, from);
  struct tfc_quant_to t = tfc_quant_to(y->dtype, to);
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++)
    tfc_quant_put(y, i, tfc_quant_integer(t, tfc_quant_float(f, tfc_quant_get(x, i))));
}

static tfc_status requantize(struct tfc_kernel_ctx *ctx) {
  struct tfc_range from, to;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 1, &from));
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 3, &to));
  TFC_KERNEL_CHECK(to.low <= 0, "requested_output_min must be <= 0, but got %g", (double)to.low);
  TFC_KERNEL_CHECK(to.high >= to.low, "requested_output_max must be >= requested_output_min, but got %g and %g",
                   (double)to.high, (double)to.low);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, output_type(ctx), &ctx->inputs[0]->shape, &y));
  change_range(ctx, ctx->inputs[0], from, to, y);
  return tfc_quant_put_range(ctx, 1, to);
}
static tfc_status shrink_range(struct tfc_kernel_ctx *ctx) {
  struct tfc_range from;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 1, &from));
  struct tfc_range to = used_range(ctx->inputs[0], from);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, output_type(ctx), &ctx->inputs[0]->shape, &y));
  change_range(ctx, ctx->inputs[0], from, to, y);
  return tfc_quant_put_range(ctx, 1, to);
}

struct clip_job {
  const struct tfc_tensor *x, *y;
  int32_t low, high;
};
#define CLIP(type)                                                                                                     \
  for (int64_t i = begin; i < end; i++) {                                                                              \
    const int32_t v = ((const type *)j->x->data)[i], least = v < low ? low : v;                                        \
    ((type *)j->y->data)[i] = (type)(least > high ? high : least);                                                     \
  }
static void clip(void *arg, int64_t begin, int64_t end) {
  const struct clip_job *j = arg;
  const int32_t low = j->low, high = j->high;
  if (j->x->dtype == TFC_QUINT8)
    CLIP(uint8_t)
  else
    CLIP(int32_t)
}
#undef CLIP
static tfc_status relu_below(struct tfc_kernel_ctx *ctx, float most) {
  struct tfc_range r;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 1, &r));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  struct clip_job job = {x, y, tfc_quant_of(x->dtype, 0, r), INT32_MAX};
  if (isfinite(most)) job.high = tfc_quant_of(x->dtype, most, r);
  tfc_kernel_parallel_for(ctx, tfc_tensor_elements(x), 65536, clip, &job);
  return tfc_quant_put_range(ctx, 1, r);
}
static tfc_status relu(struct tfc_kernel_ctx *ctx) {
  return relu_below(ctx, INFINITY);
}
static tfc_status relu6(struct tfc_kernel_ctx *ctx) {
  return relu_below(ctx, 6);
}

static tfc_status quantized_reshape(struct tfc_kernel_ctx *ctx) {
  struct tfc_range r;
  struct tfc_shape shape;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  int64_t known = 1, open = -1;
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[1], &shape));
  for (int d = 0; d < shape.rank; d++)
    if (shape.dims[d] == -1) {
      TFC_KERNEL_CHECK(open < 0, "Only one input size may be -1, not both %lld and %d", (long long)open, d);
      open = d;
    } else {
      TFC_KERNEL_CHECK(shape.dims[d] >= 0, "Size %d must be non-negative, not %lld", d, (long long)shape.dims[d]);
      known *= shape.dims[d];
    }
  int64_t n = tfc_tensor_elements(x);
  if (open >= 0) {
    TFC_KERNEL_CHECK(known > 0 && n % known == 0,
                     "Input to reshape is a tensor with %lld values, but the requested shape "
                     "requires a multiple of %lld",
                     (long long)n, (long long)known);
    shape.dims[open] = n / known;
    known *= shape.dims[open];
  }
  TFC_KERNEL_CHECK(known == n, "Input to reshape is a tensor with %lld values, but the requested shape has %lld",
                   (long long)n, (long long)known);
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 2, &r));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  if (y->size) memcpy(y->data, x->data, y->size);
  return tfc_quant_put_range(ctx, 1, r);
}

// Inputs: concat_dim, values, mins, maxes; outputs: the joined values and a range that contains all ranges.
static tfc_status quantized_concat(struct tfc_kernel_ctx *ctx) {
  uint32_t n = (ctx->input_count - 1) / 3;
  const struct tfc_tensor *const *values = ctx->inputs + 1, *const *mins = values + n, *const *maxes = mins + n;
  struct tfc_shape shape = values[0]->shape;
  struct tfc_tensor *y = NULL;
  struct tfc_range all = {0, -INFINITY}; // a minimum is never above 0
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[0]) == 1, "Concat dim tensor should be a scalar integer");
  int64_t axis = tfc_tensor_int(ctx->inputs[0], 0), outer = 1, at = 0;
  TFC_KERNEL_CHECK(axis >= 0 && axis < shape.rank,
                   "Expected concatenating dimensions in the range [0, %d), but got %lld", shape.rank, (long long)axis);
  shape.dims[axis] = 0;
  for (uint32_t i = 0; i < n; i++) {
    const struct tfc_shape *s = &values[i]->shape;
    bool fits = s->rank == shape.rank;
    for (int d = 0; fits && d < shape.rank; d++) fits = d == axis || s->dims[d] == shape.dims[d];
    TFC_KERNEL_CHECK(fits, "Dimensions of inputs should match: shape[0] and shape[%u] = %s", i,
                     tfc_shape_show(s, (char[TFC_SHAPE_TEXT]){0}));
    TFC_KERNEL_CHECK(tfc_tensor_elements(mins[i]) == 1 && tfc_tensor_elements(maxes[i]) == 1, "ranges must be scalars");
    shape.dims[axis] += s->dims[axis];
    all.low = fminf(all.low, *(const float *)mins[i]->data), all.high = fmaxf(all.high, *(const float *)maxes[i]->data);
  }
  if (values[0]->dtype != TFC_QUINT8) { // signed types get a range that is symmetric around 0
    all.high = fmaxf(fabsf(all.low), fabsf(all.high));
    all.low = -all.high;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, values[0]->dtype, &shape, &y));
  for (int d = 0; d < axis; d++) outer *= shape.dims[d];
  int64_t total = tfc_tensor_elements(y), row = outer ? total / outer : 0;
  for (uint32_t i = 0; i < n && total; i++) {
    struct tfc_range r = {*(const float *)mins[i]->data, *(const float *)maxes[i]->data};
    bool same = r.low == all.low && r.high == all.high;
    struct tfc_quant_from f = tfc_quant_from(y->dtype, r);
    struct tfc_quant_to t = tfc_quant_to(y->dtype, all);
    int64_t width = tfc_tensor_elements(values[i]) / outer;
    for (int64_t o = 0; o < outer; o++)
      for (int64_t k = 0; k < width; k++) {
        int32_t v = tfc_quant_get(values[i], o * width + k);
        tfc_quant_put(y, o * row + at + k, same ? v : tfc_quant_integer(t, tfc_quant_float(f, v)));
      }
    at += width;
  }
  return tfc_quant_put_range(ctx, 1, all);
}

static tfc_status shape_scalars(struct tfc_shape_ctx *ctx, uint32_t from) {
  for (uint32_t i = from; i < ctx->node->output_count; i++) ctx->outputs[i] = TFC_SHAPE_SCALAR;
  return NULL;
}
static tfc_status shape_same(struct tfc_shape_ctx *ctx) {
  struct tfc_shape scalar;
  for (uint32_t i = 1; i < ctx->node->input_count; i++) TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, 0, &scalar));
  ctx->outputs[0] = *ctx->inputs[0];
  return shape_scalars(ctx, 1);
}
static tfc_status shape_range(struct tfc_shape_ctx *ctx) {
  struct tfc_shape scalar;
  for (uint32_t i = 1; i < 3; i++) TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, 0, &scalar));
  return shape_scalars(ctx, 0);
}
static tfc_status shape_reshape(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ops_described_shape(ctx, 1);
  int64_t n = tfc_shape_is_static(ctx->inputs[0]) ? tfc_shape_elements(ctx->inputs[0]) : -1, known = 1;
  int open = -1;
  for (int d = 0; d < ctx->outputs[0].rank; d++)
    if (tfc_dim_known(ctx->outputs[0].dims[d]))
      known *= ctx->outputs[0].dims[d];
    else
      open = open == -1 ? d : -2;
  if (n >= 0 && open >= 0 && known > 0) ctx->outputs[0].dims[open] = n / known;
  return shape_scalars(ctx, 1);
}
static tfc_status shape_concat(struct tfc_shape_ctx *ctx) {
  uint32_t n = (ctx->node->input_count - 1) / 3;
  struct tfc_shape y = *ctx->inputs[1];
  int64_t axis = -1;
  if (!ops_known_int(ctx, 0, &axis)) axis = -1;
  for (int d = 0; y.rank >= 0 && axis < 0 && d < y.rank; d++) y.dims[d] = TFC_DIM_UNKNOWN;
  if (y.rank > axis && axis >= 0)
    for (uint32_t i = 1; i < n; i++)
      y.dims[axis] =
          ops_dim_add(y.dims[axis], ctx->inputs[1 + i]->rank > axis ? ctx->inputs[1 + i]->dims[axis] : TFC_DIM_UNKNOWN);
  ctx->outputs[0] = y;
  return shape_scalars(ctx, 1);
}

#define QUANTIZED "{qint8, quint8, qint32, qint16, quint16}"
#define BIT(t) TFC_TYPE_BIT(TFC_##t)
#define ROW(types_, shape_, kernel_)                                                                                   \
  .flags = TFC_OP_NOT_DIFFERENTIABLE, .types = types_, .shape = shape_, .cost = ops_cost_outputs, .kernel = kernel_
#define RELU(op, kernel_, sample_max)                                                                                  \
  {                                                                                                                    \
    .name = op, .inputs = "features: Tinput, min_features: float, max_features: float",                                \
    .outputs = "activations: out_type, min_activations: float, max_activations: float",                                \
    .attrs = "Tinput: " QUANTIZED ", out_type: " QUANTIZED " = quint8",                                                \
    ROW(BIT(QUINT8) | BIT(QINT32), shape_same, kernel_), .samples = "quint8[3,4], float[]=-1, float[]=" sample_max     \
  }
static const struct tfc_op_def quant_range_rows[] = {
    {.name = "RequantizationRange",
     .inputs = "input: Tinput, input_min: float, input_max: float",
     .outputs = "output_min: float, output_max: float",
     .attrs = "Tinput: " QUANTIZED,
     ROW(BIT(QINT32), shape_range, requantization_range)},
    {.name = "Requantize",
     .inputs = "input: Tinput, input_min: float, input_max: float, requested_output_min: float, "
               "requested_output_max: float",
     .outputs = "output: out_type, output_min: float, output_max: float",
     .attrs = "Tinput: " QUANTIZED ", out_type: " QUANTIZED,
     ROW(BIT(QINT32), shape_same, requantize)},
    {.name = "QuantizeDownAndShrinkRange",
     .inputs = "input: Tinput, input_min: float, input_max: float",
     .outputs = "output: out_type, output_min: float, output_max: float",
     .attrs = "Tinput: " QUANTIZED ", out_type: " QUANTIZED,
     ROW(BIT(QINT32), shape_same, shrink_range)},
    RELU("QuantizedRelu", relu, "2"),
    RELU("QuantizedRelu6", relu6, "8"),
    {.name = "QuantizedReshape",
     .inputs = "tensor: T, shape: Tshape, input_min: float, input_max: float",
     .outputs = "output: T, output_min: float, output_max: float",
     .attrs = "T: type, Tshape: {int32, int64} = int32",
     .host_inputs = 2,
     ROW(BIT(QUINT8) | BIT(QINT32), shape_reshape, quantized_reshape)},
    {.name = "QuantizedConcat",
     .inputs = "concat_dim: int32, values: N * T, input_mins: N * float, input_maxes: N * float",
     .outputs = "output: T, output_min: float, output_max: float",
     .attrs = "N: int >= 2, T: type",
     .host_inputs = 1,
     ROW(0, shape_concat, quantized_concat)},
};
TFC_REGISTER_OPS(quant_range_rows);
