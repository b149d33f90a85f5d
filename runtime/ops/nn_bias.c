// Operations that add a bias to each channel, or sum gradients back to it. Channels are the last dimension, or with
// NCHW the second.
//
// value [outer, channels, inner], bias [channels]; inner is 1 unless NCHW.
#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

struct split {
  int64_t outer, channels, inner;
};

static tfc_status format_prepare(struct tfc_prepare_ctx *ctx) {
  static int channels_first; // its address alone counts: a state that is not NULL
  tfc_str format = tfc_node_attr_string(ctx->graph, ctx->node, "data_format", "NHWC");
  ctx->state = tfc_str_starts(format, "NC") ? &channels_first : NULL;
  return NULL;
}

static tfc_status split_shape(const struct tfc_shape *s, bool channels_first, struct split *out) {
  TFC_KERNEL_CHECK(s->rank >= 2, "Input tensor must be at least 2D, but is %s",
                   tfc_shape_show(s, (char[TFC_SHAPE_TEXT]){0}));
  int axis = channels_first ? 1 : s->rank - 1;
  *out = (struct split){1, s->dims[axis], 1};
  for (int i = 0; i < axis; i++) out->outer *= s->dims[i];
  for (int i = axis + 1; i < s->rank; i++) out->inner *= s->dims[i];
  return NULL;
}

// Sums of integers wrap, as in TensorFlow: they are computed as unsigned, because C does not define overflow of signed
// ones.
static tfc_dtype wrapping(tfc_dtype dtype) {
  return dtype == TFC_INT32 ? TFC_UINT32 : dtype == TFC_INT64 ? TFC_UINT64 : dtype;
}

struct add {
  struct split split;
  const void *x, *bias;
  void *y;
  tfc_dtype dtype;
};

OPS_CLONES static void add_rows(void *arg, int64_t begin, int64_t end) {
  const struct add *a = arg;
  const int64_t channels = a->split.channels, inner = a->split.inner;
  OPS_SWITCH(OPS_NUMBERS, a->dtype, {
    const S *x = a->x, *bias = a->bias;
    S *y = a->y;
    for (int64_t o = begin; o < end; o++) {
      const S *row = x + o * channels * inner;
      S *out = y + o * channels * inner;
      if (inner == 1)
        for (int64_t c = 0; c < channels; c++) OPS_PUT(out[c], OPS_GET(row[c]) + OPS_GET(bias[c]));
      else
        for (int64_t c = 0; c < channels; c++) {
          const C b = OPS_GET(bias[c]);
          for (int64_t i = 0; i < inner; i++) OPS_PUT(out[c * inner + i], OPS_GET(row[c * inner + i]) + b);
        }
    }
  })
}

static tfc_status bias_add(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *bias = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  struct split sp;
  TFC_RETURN_IF_ERROR(split_shape(&x->shape, ctx->state, &sp));
  TFC_KERNEL_CHECK(bias->shape.rank == 1, "Biases must be 1D: %s",
                   tfc_shape_show(&bias->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(bias->shape.dims[0] == sp.channels,
                   "Must provide as many biases as the channel dimension of the input tensor: %s vs. %s",
                   tfc_shape_show(&bias->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  struct add a = {sp, x->data, bias->data, y->data, wrapping(x->dtype)};
  int64_t row = sp.channels * sp.inner;
  tfc_kernel_parallel_for(ctx, sp.outer, row > 32768 ? 1 : 32768 / (row + 1) + 1, add_rows, &a);
  return NULL;
}

// Sums channels [begin, end). Rows are added one after the other, so that the result does not depend on how the work is
// split.
OPS_CLONES static void sum_channels(void *arg, int64_t begin, int64_t end) {
  const struct add *a = arg;
  const int64_t outer = a->split.outer, channels = a->split.channels, inner = a->split.inner;
  enum { WIDTH = 64 };
  OPS_SWITCH(OPS_NUMBERS, a->dtype, {
    const S *x = a->x;
    S *y = a->y;
    if (inner == 1) {
      for (int64_t first = begin; first < end; first += WIDTH) {
        const int64_t n = end - first < WIDTH ? end - first : WIDTH;
        C sums[WIDTH] = {0};
        for (int64_t o = 0; o < outer; o++)
          for (int64_t c = 0; c < n; c++) sums[c] = (C)(sums[c] + OPS_GET(x[o * channels + first + c]));
        for (int64_t c = 0; c < n; c++) OPS_PUT(y[first + c], sums[c]);
      }
    } else {
      for (int64_t c = begin; c < end; c++) {
        C sum = 0;
        for (int64_t o = 0; o < outer; o++) {
          C part = 0;
          for (int64_t i = 0; i < inner; i++) part = (C)(part + OPS_GET(x[(o * channels + c) * inner + i]));
          sum = (C)(sum + part);
        }
        OPS_PUT(y[c], sum);
      }
    }
  })
}

static tfc_status bias_add_grad(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *g = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct split sp;
  TFC_RETURN_IF_ERROR(split_shape(&g->shape, ctx->state, &sp));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, g->dtype, &TFC_SHAPE(sp.channels), &y));
  struct add a = {sp, g->data, NULL, y->data, wrapping(g->dtype)};
  const int64_t each = sp.outer * sp.inner;     // elements of a channel
  const int64_t least = 16384 / (each + 1) + 1; // channels that are worth a piece of their own
  tfc_kernel_parallel_for(ctx, sp.channels, (least + 63) / 64 * 64, sum_channels, &a);
  return NULL;
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static tfc_status channel_axis(struct tfc_shape_ctx *ctx, int *out) {
  tfc_str format = tfc_node_attr_string(ctx->graph, ctx->node, "data_format", "NHWC");
  bool first = tfc_str_starts(format, "NC");
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, first ? 3 : 2, NULL));
  *out = ctx->inputs[0]->rank < 0 ? -1 : first ? 1 : ctx->inputs[0]->rank - 1;
  return NULL;
}
static tfc_status shape_bias_add(struct tfc_shape_ctx *ctx) {
  struct tfc_shape bias;
  int axis;
  TFC_RETURN_IF_ERROR(channel_axis(ctx, &axis));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &bias));
  ctx->outputs[0] = *ctx->inputs[0];
  return axis < 0 ? NULL : tfc_dim_merge(ctx->inputs[0]->dims[axis], bias.dims[0], &ctx->outputs[0].dims[axis]);
}
static tfc_status shape_bias_add_grad(struct tfc_shape_ctx *ctx) {
  int axis;
  TFC_RETURN_IF_ERROR(channel_axis(ctx, &axis));
  ctx->outputs[0] = axis < 0 ? tfc_shape_unknown_of_rank(1) : TFC_SHAPE(ctx->inputs[0]->dims[axis]);
  return NULL;
}

// --- Gradients ---------------------------------------------------------------------------------------------------
static tfc_status grad_of_bias_add(struct tfc_grad_ctx *c) {
  c->grad_inputs[0] = c->grad_outputs[0];
  c->grad_inputs[1] = grad_node(c, "BiasAddGrad", TFC_OUTPUTS(c->grad_outputs[0]), "data_format");
  return grad_status(c);
}
static tfc_status grad_of_bias_add_grad(struct tfc_grad_ctx *c) { // broadcasts the bias over the other dimensions
  struct tfc_builder *b = c->builder;
  struct tfc_output g = c->grad_outputs[0], shape = tfc_add1(b, "Shape", grad_in(c, 0));
  const struct tfc_attr *format = grad_attr(c, "data_format");
  int rank = c->input_shapes[0]->rank;
  if (format && format->kind == TFC_ATTR_STRING && tfc_str_starts(format->s, "NC")) {
    if (rank < 0)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "the gradient of BiasAddGrad in NCHW needs a known rank");
    int32_t dims[TFC_MAX_RANK] = {-1};
    for (int i = 1; i < rank - 1; i++) dims[i] = 1;
    g = tfc_add2(b, "Reshape", g, tfc_add_i32_vector(b, dims, (uint32_t)(rank - 1)));
  }
  c->grad_inputs[0] = tfc_add2(b, "BroadcastTo", g, shape);
  return grad_status(c);
}
OPS_COST_PER_ELEMENT(cost_add, 1)
static void cost_sum(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                     const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  int64_t count = tfc_shape_elements(&inputs[0]);
  out->flops = count > 0 ? (double)count : 0;
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
}

// Adds a bias within a chain of element-wise operations, with channels last: the bias repeats with each row.
OPS_CLONES static void add_bias(const void *x, int64_t x_step, const void *bias, int64_t bias_step, void *y,
                                int64_t n) {
  const float *a = x, *b = bias;
  float *out = y;
  if (x_step == 1 && bias_step == 1)
    for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
  else
    for (int64_t i = 0; i < n; i++) out[i] = a[i * x_step] + b[i * bias_step];
}
static tfc_binary_loop *const bias_loops[TFC_DTYPE_COUNT] = {[TFC_FLOAT] = add_bias};
static const struct tfc_elementwise loops_bias = {.binary = bias_loops};

static const struct tfc_op_def nn_bias_rows[] = {
    {.name = "BiasAdd",
     .plan_trait = TFC_PLAN_ADD_BIAS,
     .images = {.inputs = 1, .outputs = 1},
     .inputs = "value: T, bias: T",
     .outputs = "output: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, data_format: {'NHWC', 'NCHW'} = 'NHWC'",
     .flags = TFC_OP_INPLACE,
     .types = OPS_BITS(OPS_NUMBERS),
     .shape = shape_bias_add,
     .gradient = grad_of_bias_add,
     .cost = cost_add,
     .prepare = format_prepare,
     .kernel = bias_add,
     .elementwise = &loops_bias,
     .samples = "float[3,4], float[4]; float[2,3,4,5], float[3] {data_format='NCHW'}; int32[2,2,3], int32[3]; "
                "half[0,3], half[3]"},
    {.name = "BiasAddV1",
     .plan_trait = TFC_PLAN_ADD_BIAS,
     .inputs = "value: T, bias: T",
     .outputs = "output: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}",
     .flags = TFC_OP_INPLACE,
     .types = OPS_BITS(OPS_NUMBERS),
     .shape = shape_bias_add,
     .gradient = grad_of_bias_add,
     .cost = cost_add,
     .prepare = format_prepare,
     .kernel = bias_add,
     .elementwise = &loops_bias,
     .samples = "float[3,4], float[4]"},
    {.name = "BiasAddGrad",
     .plan_trait = TFC_PLAN_BIAS_GRADIENT,
     .images = {.inputs = 1},
     .inputs = "out_backprop: T",
     .outputs = "output: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, data_format: {'NHWC', 'NCHW'} = 'NHWC'",
     .types = OPS_BITS(OPS_NUMBERS),
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_bias_add_grad,
     .gradient = grad_of_bias_add_grad,
     .cost = cost_sum,
     .prepare = format_prepare,
     .kernel = bias_add_grad,
     .samples = "float[3,4]; float[2,3,4,5] {data_format='NCHW'}; int32[2,2,3]; half[0,3]"},
};
TFC_REGISTER_OPS(nn_bias_rows);
