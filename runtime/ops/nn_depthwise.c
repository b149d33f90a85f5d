// Depthwise convolution: each channel has its own `multiplier` filters.
//
// x [batch, h, w, channels], filter [size_h, size_w, channels, multiplier], y [batch, out_h, out_w, channels *
// multiplier]; images may have channels first. Sums are in the type in which products are computed.
#include "runtime/ops/nn_window.h"

struct depthwise {
  struct tfc_image x, y;
  int64_t size[3], multiplier;
  int64_t stride[3], dilation[3], before[3];
  bool bordered; // padding is a border of zeros, which are multiplied like other elements; else cells over it are
                 // skipped
  tfc_dtype dtype;
  void *image, *filter, *out; // data of x, filter and y; one of them is computed
};

struct state {
  struct tfc_window window;
  bool bordered;
};

static tfc_status depthwise_prepare(struct tfc_prepare_ctx *ctx) {
  struct state *s = TFC_ARENA_NEW(ctx->arena, struct state);
  if (!s) return tfc_status_no_memory(NULL);
  ctx->state = s;
  *s = (struct state){.bordered = ctx->window != NULL};
  if (!ctx->window) return tfc_window_read(ctx->graph, ctx->node, 4, &s->window);
  s->window = *ctx->window;
  return NULL;
}

static tfc_status describe(const struct tfc_window *w, const struct tfc_shape *x, const struct tfc_shape *filter,
                           struct depthwise *d, struct tfc_shape *out_y) {
  TFC_KERNEL_CHECK(x->rank == 4, "input must be 4-dimensional: %s", tfc_shape_show(x, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(filter->rank == 4, "filter must be 4-dimensional: %s",
                   tfc_shape_show(filter, (char[TFC_SHAPE_TEXT]){0}));
  *d = (struct depthwise){.size = {1, filter->dims[0], filter->dims[1]}, .multiplier = filter->dims[3]};
  tfc_image_of(w, x, &d->x);
  TFC_KERNEL_CHECK(d->x.channels == filter->dims[2], "input and filter must have the same depth: %lld vs %lld",
                   (long long)d->x.channels, (long long)filter->dims[2]);
  int64_t out[3] = {1, 1, 1};
  for (int k = 0; k < 3; k++) {
    d->stride[k] = w->stride[k];
    d->dilation[k] = w->dilation[k];
    if (k) TFC_RETURN_IF_ERROR(tfc_window_output(w, k, d->x.size[k], d->size[k], &out[k], &d->before[k]));
  }
  *out_y = tfc_image_shape(w, d->x.batch, out, d->x.channels * d->multiplier);
  tfc_image_of(w, out_y, &d->y);
  return NULL;
}

enum { CHANNELS = 64 }; // computed at a time, in a buffer of sums

// Computes rows (batch, out_h) [begin, end).
static void forward(void *arg, int64_t begin, int64_t end) {
  const struct depthwise *d = arg;
  const int64_t m = d->multiplier, total = d->y.channels;
  OPS_SWITCH(OPS_FLOATS, d->dtype, {
    const S *x = d->image, *filter = d->filter;
    S *y = d->out;
    for (int64_t row = begin; row < end; row++) {
      const int64_t n = row / d->y.size[1], oh = row % d->y.size[1];
      for (int64_t ow = 0; ow < d->y.size[2]; ow++)
        for (int64_t first = 0; first < total; first += CHANNELS) {
          const int64_t count = total - first < CHANNELS ? total - first : CHANNELS;
          C sums[CHANNELS] = {0};
          for (int64_t i = 0; i < d->size[1]; i++)
            for (int64_t j = 0; j < d->size[2]; j++) {
              const int64_t h = oh * d->stride[1] - d->before[1] + i * d->dilation[1];
              const int64_t w = ow * d->stride[2] - d->before[2] + j * d->dilation[2];
              const bool inside = h >= 0 && h < d->x.size[1] && w >= 0 && w < d->x.size[2];
              const S *from = inside ? x + n * d->x.batch_stride + h * d->x.stride[1] + w * d->x.stride[2] : NULL;
              const S *by = filter + (i * d->size[2] + j) * d->x.channels * m + first;
              for (int64_t o = 0; o < count && (inside || d->bordered); o++)
                sums[o] += (inside ? OPS_GET(from[(first + o) / m * d->x.channel_stride]) : (C)0) * OPS_GET(by[o]);
            }
          S *to = y + n * d->y.batch_stride + oh * d->y.stride[1] + ow * d->y.stride[2];
          for (int64_t o = 0; o < count; o++) OPS_PUT(to[(first + o) * d->y.channel_stride], sums[o]);
        }
    }
  })
}

// Computes dx of images [begin, end): each input position gets the sum over all outputs that read it.
static void backward_input(void *arg, int64_t begin, int64_t end) {
  const struct depthwise *d = arg;
  const int64_t m = d->multiplier;
  const int64_t image = d->x.channels * d->x.size[1] * d->x.size[2];
  OPS_SWITCH(OPS_FLOATS, d->dtype, {
    S *x = d->image;
    const S *filter = d->filter, *y = d->out;
    for (int64_t n = begin; n < end; n++) {
      // Goes through the input's positions in order, so that 16-bit types are rounded once.
      memset(x + n * d->x.batch_stride, 0, (size_t)image * sizeof(S));
      for (int64_t c = 0; c < d->x.channels; c++)
        for (int64_t h = 0; h < d->x.size[1]; h++)
          for (int64_t w = 0; w < d->x.size[2]; w++) {
            C sum = 0;
            for (int64_t i = 0; i < d->size[1]; i++) {
              const int64_t ph = h + d->before[1] - i * d->dilation[1];
              if (ph < 0 || ph % d->stride[1] || ph / d->stride[1] >= d->y.size[1]) continue;
              for (int64_t j = 0; j < d->size[2]; j++) {
                const int64_t pw = w + d->before[2] - j * d->dilation[2];
                if (pw < 0 || pw % d->stride[2] || pw / d->stride[2] >= d->y.size[2]) continue;
                const S *from =
                    y + n * d->y.batch_stride + ph / d->stride[1] * d->y.stride[1] + pw / d->stride[2] * d->y.stride[2];
                const S *f = filter + ((i * d->size[2] + j) * d->x.channels + c) * m;
                for (int64_t o = 0; o < m; o++) sum += OPS_GET(from[(c * m + o) * d->y.channel_stride]) * OPS_GET(f[o]);
              }
            }
            OPS_PUT(x[n * d->x.batch_stride + h * d->x.stride[1] + w * d->x.stride[2] + c * d->x.channel_stride], sum);
          }
    }
  })
}

// Computes dw of channels [begin, end).
static void backward_filter(void *arg, int64_t begin, int64_t end) {
  const struct depthwise *d = arg;
  const int64_t m = d->multiplier;
  OPS_SWITCH(OPS_FLOATS, d->dtype, {
    const S *x = d->image, *y = d->out;
    S *filter = d->filter;
    for (int64_t c = begin; c < end; c++)
      for (int64_t i = 0; i < d->size[1]; i++)
        for (int64_t j = 0; j < d->size[2]; j++)
          for (int64_t o = 0; o < m; o++) {
            C sum = 0;
            for (int64_t n = 0; n < d->x.batch; n++)
              for (int64_t oh = 0; oh < d->y.size[1]; oh++) {
                const int64_t h = oh * d->stride[1] - d->before[1] + i * d->dilation[1];
                if (h < 0 || h >= d->x.size[1]) continue;
                for (int64_t ow = 0; ow < d->y.size[2]; ow++) {
                  const int64_t w = ow * d->stride[2] - d->before[2] + j * d->dilation[2];
                  if (w < 0 || w >= d->x.size[2]) continue;
                  sum += OPS_GET(x[n * d->x.batch_stride + h * d->x.stride[1] + w * d->x.stride[2] +
                                   c * d->x.channel_stride]) *
                         OPS_GET(y[n * d->y.batch_stride + oh * d->y.stride[1] + ow * d->y.stride[2] +
                                   (c * m + o) * d->y.channel_stride]);
                }
              }
            OPS_PUT(filter[((i * d->size[2] + j) * d->x.channels + c) * m + o], sum);
          }
  })
}

static tfc_status depthwise(struct tfc_kernel_ctx *ctx) {
  struct depthwise d;
  struct tfc_shape ys;
  struct tfc_tensor *y = NULL;
  const struct tfc_tensor *x = ctx->inputs[0], *filter = ctx->inputs[1];
  const struct state *state = ctx->state;
  TFC_RETURN_IF_ERROR(describe(&state->window, &x->shape, &filter->shape, &d, &ys));
  d.bordered = state->bordered;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &ys, &y));
  if (tfc_tensor_elements(y) == 0) return NULL;
  d.dtype = x->dtype, d.image = x->data, d.filter = filter->data, d.out = y->data;
  tfc_kernel_parallel_for(ctx, d.x.batch * d.y.size[1], 1, forward, &d);
  return NULL;
}

static tfc_status check_gradient(const struct tfc_tensor *dy, const struct tfc_shape *ys) {
  TFC_KERNEL_CHECK(tfc_shape_equal(&dy->shape, ys), "out_backprop has shape %s, should have %s",
                   tfc_shape_show(&dy->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(ys, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}

static tfc_status depthwise_input(struct tfc_kernel_ctx *ctx) {
  struct depthwise d;
  struct tfc_shape xs, ys;
  struct tfc_tensor *dx = NULL;
  const struct tfc_tensor *filter = ctx->inputs[1], *dy = ctx->inputs[2];
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &xs));
  TFC_RETURN_IF_ERROR(describe(&((const struct state *)ctx->state)->window, &xs, &filter->shape, &d, &ys));
  TFC_RETURN_IF_ERROR(check_gradient(dy, &ys));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, filter->dtype, &xs, &dx));
  if (tfc_tensor_elements(dx) == 0) return NULL;
  d.dtype = filter->dtype, d.image = dx->data, d.filter = filter->data, d.out = dy->data;
  tfc_kernel_parallel_for(ctx, d.x.batch, 1, backward_input, &d);
  return NULL;
}

static tfc_status depthwise_filter(struct tfc_kernel_ctx *ctx) {
  struct depthwise d;
  struct tfc_shape fs, ys;
  struct tfc_tensor *dw = NULL;
  const struct tfc_tensor *x = ctx->inputs[0], *dy = ctx->inputs[2];
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[1], &fs));
  TFC_RETURN_IF_ERROR(describe(&((const struct state *)ctx->state)->window, &x->shape, &fs, &d, &ys));
  TFC_RETURN_IF_ERROR(check_gradient(dy, &ys));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &fs, &dw));
  if (tfc_tensor_elements(dw) == 0) return NULL;
  d.dtype = x->dtype, d.image = x->data, d.filter = dw->data, d.out = dy->data;
  tfc_kernel_parallel_for(ctx, d.x.channels, 4, backward_filter, &d);
  return NULL;
}

// --- Shapes and gradients ----------------------------------------------------------------------------------------
static tfc_status shape_depthwise(struct tfc_shape_ctx *ctx) {
  struct tfc_window w;
  struct tfc_shape x, f;
  TFC_RETURN_IF_ERROR(tfc_window_read(ctx->graph, ctx->node, 4, &w));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 4, &f));
  int64_t out[3] = {1, 1, 1}, channels;
  TFC_RETURN_IF_ERROR(tfc_dim_merge(x.dims[tfc_window_channel_axis(&w)], f.dims[2], &channels));
  for (int k = 1; k < 3; k++)
    TFC_RETURN_IF_ERROR(tfc_window_infer(&w, k, x.dims[tfc_window_axis(&w, k)], f.dims[k - 1], &out[k]));
  ctx->outputs[0] = tfc_image_shape(&w, x.dims[0], out, ops_dim_mul(channels, f.dims[3]));
  return NULL;
}
static tfc_status shape_of_sizes(struct tfc_shape_ctx *ctx, uint32_t i) {
  struct tfc_shape sizes = ops_described_shape(ctx, i);
  if (sizes.rank < 0) sizes = tfc_shape_unknown_of_rank(4);
  if (sizes.rank != 4) return tfc_status_make(TFC_INVALID_ARGUMENT, "input %u must describe 4 dimensions", i);
  ctx->outputs[0] = sizes;
  return NULL;
}
static tfc_status shape_depthwise_input(struct tfc_shape_ctx *ctx) {
  return shape_of_sizes(ctx, 0);
}
static tfc_status shape_depthwise_filter(struct tfc_shape_ctx *ctx) {
  return shape_of_sizes(ctx, 1);
}

#define COPIED "strides padding explicit_paddings data_format dilations"
#define FORWARD_OP "DepthwiseConv2dNative"
#define INPUT_OP "DepthwiseConv2dNativeBackpropInput"
#define FILTER_OP "DepthwiseConv2dNativeBackpropFilter"
static tfc_status grad_of_depthwise(struct tfc_grad_ctx *c) {
  struct tfc_output dy = c->grad_outputs[0], x = grad_in(c, 0), w = grad_in(c, 1);
  c->grad_inputs[0] = grad_node(c, INPUT_OP, TFC_OUTPUTS(grad_shape_of_input(c, 0), w, dy), COPIED);
  c->grad_inputs[1] = grad_node(c, FILTER_OP, TFC_OUTPUTS(x, grad_shape_of_input(c, 1), dy), COPIED);
  return grad_status(c);
}
static tfc_status grad_of_depthwise_input(struct tfc_grad_ctx *c) {
  struct tfc_output g = c->grad_outputs[0], w = grad_in(c, 1), dy = grad_in(c, 2);
  c->grad_inputs[1] = grad_node(c, FILTER_OP, TFC_OUTPUTS(g, grad_shape_of_input(c, 1), dy), COPIED);
  c->grad_inputs[2] = grad_node(c, FORWARD_OP, TFC_OUTPUTS(g, w), COPIED);
  return grad_status(c);
}
static tfc_status grad_of_depthwise_filter(struct tfc_grad_ctx *c) {
  struct tfc_output g = c->grad_outputs[0], x = grad_in(c, 0), dy = grad_in(c, 2);
  c->grad_inputs[0] = grad_node(c, INPUT_OP, TFC_OUTPUTS(grad_shape_of_input(c, 0), g, dy), COPIED);
  c->grad_inputs[2] = grad_node(c, FORWARD_OP, TFC_OUTPUTS(x, g), COPIED);
  return grad_status(c);
}
static void cost(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                 const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  bool forward_op = tfc_str_is(n->op, FORWARD_OP), filter_op = tfc_str_is(n->op, FILTER_OP);
  const struct tfc_shape *w = filter_op ? &outputs[0] : &inputs[1], *y = forward_op ? &outputs[0] : &inputs[2];
  int64_t count = tfc_shape_elements(y);
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
  out->flops = count > 0 && w->rank == 4 && w->dims[0] > 0 && w->dims[1] > 0
                   ? 2.0 * (double)count * (double)(w->dims[0] * w->dims[1])
                   : 0;
}

static const struct tfc_op_def nn_depthwise_rows[] = {
    {.name = "DepthwiseConv2dNative",
     .images = {.inputs = 1, .outputs = 1, .convolves = true},
     .flags = TFC_OP_FINISHES,
     .role = TFC_ROLE_CONVOLUTION,
     .inputs = "input: T, filter: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double}, strides: list(int), padding: {'SAME', 'VALID', 'EXPLICIT'}, "
              "explicit_paddings: list(int) = [], data_format: {'NHWC', 'NCHW'} = 'NHWC', dilations: list(int) = [1, "
              "1, 1, 1]",
     .types = OPS_BITS(OPS_FLOATS),
     .shape = shape_depthwise,
     .gradient = grad_of_depthwise,
     .cost = cost,
     .prepare = depthwise_prepare,
     .kernel = depthwise,
     .samples = "float[2,5,5,3], float[3,3,3,2] {strides=[1,1,1,1], padding='SAME'}; "
                "float[1,7,6,2], float[2,3,2,1] {strides=[1,2,2,1], padding='VALID'}"},
    {.name = "DepthwiseConv2dNativeBackpropInput",
     .images = {.inputs = 4, .outputs = 1, .sizes = 1, .convolves = true},
     .inputs = "input_sizes: int32, filter: T, out_backprop: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double}, strides: list(int), padding: {'SAME', 'VALID', 'EXPLICIT'}, "
              "explicit_paddings: list(int) = [], data_format: {'NHWC', 'NCHW'} = 'NHWC', dilations: list(int) = [1, "
              "1, 1, 1]",
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 1,
     .shape = shape_depthwise_input,
     .gradient = grad_of_depthwise_input,
     .cost = cost,
     .prepare = depthwise_prepare,
     .kernel = depthwise_input},
    {.name = "DepthwiseConv2dNativeBackpropFilter",
     .images = {.inputs = 5, .convolves = true},
     .inputs = "input: T, filter_sizes: int32, out_backprop: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double}, strides: list(int), padding: {'SAME', 'VALID', 'EXPLICIT'}, "
              "explicit_paddings: list(int) = [], data_format: {'NHWC', 'NCHW'} = 'NHWC', dilations: list(int) = [1, "
              "1, 1, 1]",
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 2,
     .shape = shape_depthwise_filter,
     .gradient = grad_of_depthwise_filter,
     .cost = cost,
     .prepare = depthwise_prepare,
     .kernel = depthwise_filter},
};
TFC_REGISTER_OPS(nn_depthwise_rows);
