// Convolutions of two and three dimensions and their gradients, with strides, dilations, groups, SAME, VALID or
// EXPLICIT padding, and channels last or first.
//
// Products are computed in float (for float, half, bfloat16) or in double (for double, and for int32, which double
// represents exactly). Other layouts and types are converted before and after.
#include <stdlib.h>

#include "runtime/ops/blas.h"
#include "runtime/ops/nn_conv.h"

enum { BLOCK_ELEMENTS = 1 << 17, MAX_STRIPES = 8 };

struct conv {
  int64_t batch, in[3], out[3], size[3], stride[3], dilation[3], before[3];
  int64_t channels, filters, groups;
  int64_t cells; // size[0] * size[1] * size[2]
  int64_t block; // how many output positions are computed at a time
  int64_t stripes;
  bool pointwise; // a 1x1 window with stride 1: the image itself is the matrix of patches
};
struct work {
  const struct conv *conv;
  void *x, *w, *y; // NDHWC, in the type in which products are computed
  _Atomic bool failed;
};

#define REAL float
#define GEMM ops_sgemm
#define NAME(x) x##_f32
#include "runtime/ops/nn_conv_core.h" // NOLINT: a template
#define REAL double
#define GEMM ops_dgemm
#define NAME(x) x##_f64
#include "runtime/ops/nn_conv_core.h"

// --- Preparing a convolution -------------------------------------------------------------------------------------
enum role { FORWARD, BACKWARD_INPUT, BACKWARD_FILTER };
struct conv_state {
  struct tfc_window window;
  enum role role;
};

static int rank_of(const struct tfc_node *n) {
  return tfc_str_starts(n->op, "Conv3D") ? 5 : 4;
}
static enum role role_of(const struct tfc_node *n) {
  return tfc_str_find(n->op, 'k') == SIZE_MAX                             ? FORWARD // no "Backprop"
         : tfc_str_ends(n->op, "Input") || tfc_str_ends(n->op, "InputV2") ? BACKWARD_INPUT
                                                                          : BACKWARD_FILTER;
}

static tfc_status conv_prepare(struct tfc_prepare_ctx *ctx) {
  struct conv_state *s = TFC_ARENA_NEW(ctx->arena, struct conv_state);
  if (!s) return tfc_status_no_memory(NULL);
  s->role = role_of(ctx->node);
  ctx->state = s;
  if (!ctx->window) return tfc_window_read(ctx->graph, ctx->node, rank_of(ctx->node), &s->window);
  s->window = *ctx->window;
  return NULL;
}

// Checks the three shapes against each other and fills in the geometry.
static tfc_status describe(const struct tfc_window *w, const struct tfc_shape *x, const struct tfc_shape *filter,
                           const struct tfc_shape *y, struct conv *c) {
  int rank = w->spatial + 2;
  TFC_KERNEL_CHECK(x->rank == rank, "input must be %d-dimensional: %s", rank,
                   tfc_shape_show(x, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(filter->rank == rank, "filter must be %d-dimensional: %s", rank,
                   tfc_shape_show(filter, (char[TFC_SHAPE_TEXT]){0}));
  *c = (struct conv){.batch = x->dims[0],
                     .channels = x->dims[tfc_window_channel_axis(w)],
                     .filters = filter->dims[rank - 1],
                     .cells = 1};
  int64_t depth = filter->dims[rank - 2];
  TFC_KERNEL_CHECK(depth > 0 && c->channels % depth == 0,
                   "input depth must be evenly divisible by filter depth: %lld vs %lld", (long long)c->channels,
                   (long long)depth);
  c->groups = c->channels / depth;
  TFC_KERNEL_CHECK(c->groups > 0 && c->filters % c->groups == 0,
                   "output depth %lld must be evenly divisible by the number of groups %lld", (long long)c->filters,
                   (long long)c->groups);
  TFC_KERNEL_CHECK(w->spatial < 3 || c->filters > 0,
                   "filter must not have zero elements (i.e. all dimensions must be non-zero)");
  bool plain = true;
  for (int k = 0; k < 3; k++) {
    bool there = k >= 3 - w->spatial;
    c->in[k] = there ? x->dims[tfc_window_axis(w, k)] : 1;
    c->size[k] = there ? filter->dims[k - (3 - w->spatial)] : 1;
    c->stride[k] = w->stride[k];
    c->dilation[k] = w->dilation[k];
    c->out[k] = 1;
    TFC_KERNEL_CHECK(c->size[k] > 0, "filter must not have zero elements (i.e. all dimensions must be non-zero)");
    if (there) TFC_RETURN_IF_ERROR(tfc_window_output(w, k, c->in[k], c->size[k], &c->out[k], &c->before[k]));
    c->cells *= c->size[k];
    plain = plain && c->size[k] == 1 && c->stride[k] == 1 && c->before[k] == 0 && c->out[k] == c->in[k];
  }
  c->pointwise = plain;
  int64_t total = c->batch * c->out[0] * c->out[1] * c->out[2], inner = c->cells * depth;
  TFC_KERNEL_CHECK(total <= INT32_MAX && inner <= INT32_MAX && c->filters <= INT32_MAX, "the convolution is too large");
  c->block = BLOCK_ELEMENTS / inner;
  c->block = c->block < 32 ? 32 : c->block > 512 ? 512 : c->block;
  if (c->block > total) c->block = total > 0 ? total : 1;
  int64_t blocks = (total + c->block - 1) / c->block;
  c->stripes = blocks < MAX_STRIPES ? (blocks ? blocks : 1) : MAX_STRIPES;
  if (y) {
    bool fits = y->rank == rank && y->dims[0] == c->batch && y->dims[tfc_window_channel_axis(w)] == c->filters;
    for (int k = 3 - w->spatial; fits && k < 3; k++) fits = y->dims[tfc_window_axis(w, k)] == c->out[k];
    TFC_KERNEL_CHECK(fits, "out_backprop %s does not fit input %s and filter %s",
                     tfc_shape_show(y, (char[TFC_SHAPE_TEXT]){0}), tfc_shape_show(x, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(filter, (char[TFC_SHAPE_TEXT]){0}));
  }
  return NULL;
}

// --- Types and layouts -------------------------------------------------------------------------------------------
static bool wide(tfc_dtype t) {
  return t == TFC_DOUBLE || t == TFC_INT32;
}

// Copies between an image of any layout and NDHWC in float or double; `into`: to NDHWC, otherwise from it.
static void convert(tfc_dtype dtype, void *tensor, const struct tfc_image *im, void *plain, bool into) {
  int64_t i = 0;
#define CONVERT(R)                                                                                                     \
  for (int64_t n = 0; n < im->batch; n++)                                                                              \
    for (int64_t a = 0; a < im->size[0]; a++)                                                                          \
      for (int64_t b = 0; b < im->size[1]; b++)                                                                        \
        for (int64_t d = 0; d < im->size[2]; d++) {                                                                    \
          S *at = (S *)tensor + n * im->batch_stride + a * im->stride[0] + b * im->stride[1] + d * im->stride[2];      \
          if (into)                                                                                                    \
            for (int64_t c = 0; c < im->channels; c++) ((R *)plain)[i++] = (R)OPS_GET(at[c * im->channel_stride]);     \
          else                                                                                                         \
            for (int64_t c = 0; c < im->channels; c++) OPS_PUT(at[c * im->channel_stride], ((R *)plain)[i++]);         \
        }
  if (dtype == TFC_INT32) {
    typedef int32_t S, C;
    if (into)
      CONVERT(double)
    else
      for (int64_t n = 0; n < im->batch; n++)
        for (int64_t a = 0; a < im->size[0]; a++)
          for (int64_t b = 0; b < im->size[1]; b++)
            for (int64_t d = 0; d < im->size[2]; d++)
              for (int64_t c = 0; c < im->channels; c++) // wraps like sums of 32 bits
                ((S *)tensor)[n * im->batch_stride + a * im->stride[0] + b * im->stride[1] + d * im->stride[2] +
                              c * im->channel_stride] = (int32_t)(int64_t)((double *)plain)[i++];
    return;
  }
  OPS_SWITCH(OPS_FLOATS, dtype, {
    if (sizeof(C) == sizeof(float))
      CONVERT(float)
    else
      CONVERT(double)
  })
#undef CONVERT
}

// Gets the tensor as a plain array: its own data if it is one already, otherwise a converted copy in scratch memory.
static tfc_status plain_of(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *t, const struct tfc_image *im,
                           struct tfc_buffer **scratch, bool fill, void **out) {
  bool ready = (t->dtype == TFC_FLOAT || t->dtype == TFC_DOUBLE) && (im->channel_stride == 1 || im->channels == 1) &&
               (im->stride[2] == im->channels || tfc_tensor_elements(t) <= 1);
  if (ready) {
    *out = t->data;
    return NULL;
  }
  size_t bytes = (size_t)tfc_tensor_elements(t) * (wide(t->dtype) ? sizeof(double) : sizeof(float));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, bytes, scratch));
  *out = (*scratch)->data;
  if (fill) convert(t->dtype, t->data, im, *out, true);
  return NULL;
}
// Describes a filter as an image with all elements in one position, because filters have only one layout.
static struct tfc_image image_of_filter(const struct tfc_shape *s) {
  int64_t n = tfc_shape_elements(s);
  return (struct tfc_image){.batch = 1, .size = {1, 1, 1}, .channels = n, .stride = {n, n, n}, .channel_stride = 1};
}

// --- Kernel ------------------------------------------------------------------------------------------------------
// input_sizes has the whole shape, or only the spatial dimensions.
static tfc_status sizes_of_input(const struct tfc_window *w, const struct tfc_tensor *sizes,
                                 const struct tfc_shape *filter, const struct tfc_shape *y, struct tfc_shape *out) {
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(sizes, out));
  if (out->rank == w->spatial && y->rank == w->spatial + 2 && filter->rank == w->spatial + 2) {
    int64_t spatial[3] = {1, 1, 1};
    for (int k = 0; k < w->spatial; k++) spatial[3 - w->spatial + k] = out->dims[k];
    *out = tfc_image_shape(w, y->dims[0], spatial, filter->dims[w->spatial]);
  }
  return NULL;
}

static tfc_status convolve(struct tfc_kernel_ctx *ctx, const struct tfc_window *win, enum role role,
                           const struct tfc_tensor *a, const struct tfc_tensor *b, const struct tfc_tensor *dy) {
  struct tfc_shape xs = a->shape, ws = b->shape, ys;
  struct tfc_tensor *out = NULL;
  struct tfc_buffer *scratch[4] = {0};
  struct conv c;
  struct tfc_image xi, yi, wi;
  tfc_status s = NULL;
  if (role == BACKWARD_INPUT) TFC_RETURN_IF_ERROR(sizes_of_input(win, a, &b->shape, &dy->shape, &xs));
  if (role == BACKWARD_FILTER) TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(b, &ws));
  TFC_RETURN_IF_ERROR(describe(win, &xs, &ws, dy ? &dy->shape : NULL, &c));
  ys = tfc_image_shape(win, c.batch, c.out, c.filters);
  tfc_dtype dtype = role == BACKWARD_INPUT ? b->dtype : a->dtype;
  const struct tfc_shape *shape = role == FORWARD ? &ys : role == BACKWARD_INPUT ? &xs : &ws;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, dtype, shape, &out));
  if (tfc_tensor_elements(out) == 0) return NULL;
  if (tfc_shape_elements(&xs) == 0 || tfc_shape_elements(&ys) == 0) { // there is nothing to add up
    memset(out->data, 0, out->size);
    return NULL;
  }
  tfc_image_of(win, &xs, &xi);
  tfc_image_of(win, &ys, &yi);
  wi = image_of_filter(&ws);
  struct work w = {.conv = &c};
  const struct tfc_tensor *tx = role == BACKWARD_INPUT ? out : a, *tw = role == BACKWARD_FILTER ? out : b;
  const struct tfc_tensor *ty = role == FORWARD ? out : dy;
  TFC_TRY(s, plain_of(ctx, tx, &xi, &scratch[0], tx != out, &w.x));
  TFC_TRY(s, plain_of(ctx, ty, &yi, &scratch[1], ty != out, &w.y));
  if (role != BACKWARD_FILTER) {
    TFC_TRY(s, plain_of(ctx, tw, &wi, &scratch[2], true, &w.w));
  } else {
    size_t each = wide(dtype) ? sizeof(double) : sizeof(float);
    TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(wi.channels * c.stripes) * each, &scratch[2]));
    w.w = scratch[2]->data;
  }
  int64_t total = c.batch * c.out[0] * c.out[1] * c.out[2];
  bool d = wide(dtype);
  switch (role) {
  case FORWARD:
    tfc_kernel_parallel_for(ctx, (total + c.block - 1) / c.block, 1, d ? forward_f64 : forward_f32, &w);
    break;
  case BACKWARD_INPUT: tfc_kernel_parallel_for(ctx, c.batch, 1, d ? backward_input_f64 : backward_input_f32, &w); break;
  case BACKWARD_FILTER:
    tfc_kernel_parallel_for(ctx, c.stripes, 1, d ? backward_filter_f64 : backward_filter_f32, &w);
    if (d)
      add_stripes_f64(w.w, wi.channels, c.stripes);
    else
      add_stripes_f32(w.w, wi.channels, c.stripes);
    break;
  }
  if (atomic_load(&w.failed)) TFC_TRY(s, tfc_status_no_memory("the patches of a convolution"));
  void *result = role == FORWARD ? w.y : role == BACKWARD_INPUT ? w.x : w.w;
  if (result != out->data)
    convert(dtype, out->data, role == FORWARD ? &yi : role == BACKWARD_INPUT ? &xi : &wi, result, false);
out:
  for (int i = 0; i < 4; i++) tfc_buffer_release(scratch[i]);
  return s;
}

static tfc_status conv(struct tfc_kernel_ctx *ctx) {
  const struct conv_state *st = ctx->state;
  return convolve(ctx, &st->window, st->role, ctx->inputs[0], ctx->inputs[1],
                  st->role == FORWARD ? NULL : ctx->inputs[2]);
}
tfc_status tfc_conv_forward(struct tfc_kernel_ctx *ctx, const struct tfc_window *w, const struct tfc_tensor *x,
                            const struct tfc_tensor *filter) {
  return convolve(ctx, w, FORWARD, x, filter, NULL);
}

// --- Shapes ------------------------------------------------------------------------------------------------------
tfc_status tfc_conv_infer(struct tfc_shape_ctx *ctx, const struct tfc_window *w, const struct tfc_shape *x,
                          uint32_t filter) {
  struct tfc_shape f;
  int rank = x->rank;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, filter, rank, &f));
  int64_t out[3] = {1, 1, 1}, depth = f.dims[rank - 2], channels = x->dims[tfc_window_channel_axis(w)];
  if (depth > 0 && channels >= 0 && channels % depth)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "Depth of input (%lld) is not a multiple of input depth of filter "
                           "(%lld)",
                           (long long)channels, (long long)depth);
  for (int k = 3 - w->spatial; k < 3; k++)
    TFC_RETURN_IF_ERROR(tfc_window_infer(w, k, x->dims[tfc_window_axis(w, k)], f.dims[k - (3 - w->spatial)], &out[k]));
  ctx->outputs[0] = tfc_image_shape(w, x->dims[0], out, f.dims[rank - 1]);
  return NULL;
}
static tfc_status shape_conv(struct tfc_shape_ctx *ctx) {
  struct tfc_window w;
  struct tfc_shape x;
  int rank = rank_of(ctx->node);
  TFC_RETURN_IF_ERROR(tfc_window_read(ctx->graph, ctx->node, rank, &w));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, rank, &x));
  return tfc_conv_infer(ctx, &w, &x, 1);
}
static tfc_status shape_backward_input(struct tfc_shape_ctx *ctx) {
  int rank = rank_of(ctx->node);
  struct tfc_shape dy, f, sizes = ops_described_shape(ctx, 0);
  struct tfc_window w;
  TFC_RETURN_IF_ERROR(tfc_window_read(ctx->graph, ctx->node, rank, &w));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, rank, &f));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, rank, &dy));
  if (sizes.rank == w.spatial) {
    int64_t spatial[3] = {1, 1, 1};
    for (int k = 0; k < w.spatial; k++) spatial[3 - w.spatial + k] = sizes.dims[k];
    sizes = tfc_image_shape(&w, dy.dims[0], spatial, f.dims[rank - 2]);
  }
  if (sizes.rank < 0) sizes = tfc_shape_unknown_of_rank(rank);
  if (rank == 4 && sizes.rank == rank && !tfc_dim_known(sizes.dims[0])) sizes.dims[0] = dy.dims[0];
  if (sizes.rank != rank) return tfc_status_make(TFC_INVALID_ARGUMENT, "input_sizes must describe %d dimensions", rank);
  ctx->outputs[0] = sizes;
  return NULL;
}
static tfc_status shape_backward_filter(struct tfc_shape_ctx *ctx) {
  int rank = rank_of(ctx->node);
  struct tfc_shape sizes = ops_described_shape(ctx, 1);
  if (sizes.rank < 0) sizes = tfc_shape_unknown_of_rank(rank);
  if (sizes.rank != rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "filter_sizes must describe %d dimensions", rank);
  ctx->outputs[0] = sizes;
  return NULL;
}

// --- Gradients ---------------------------------------------------------------------------------------------------
#define COPIED "strides padding explicit_paddings data_format dilations use_cudnn_on_gpu"
#define GRADIENTS(name, op, input_op, filter_op)                                                                       \
  static tfc_status grad_of_##name(struct tfc_grad_ctx *c) {                                                           \
    struct tfc_output dy = c->grad_outputs[0], x = grad_in(c, 0), w = grad_in(c, 1);                                   \
    c->grad_inputs[0] = grad_node(c, input_op, TFC_OUTPUTS(grad_shape_of_input(c, 0), w, dy), COPIED);                 \
    c->grad_inputs[1] = grad_node(c, filter_op, TFC_OUTPUTS(x, grad_shape_of_input(c, 1), dy), COPIED);                \
    return grad_status(c);                                                                                             \
  }                                                                                                                    \
  static tfc_status grad_of_##name##_input(struct tfc_grad_ctx *c) {                                                   \
    struct tfc_output g = c->grad_outputs[0], w = grad_in(c, 1), dy = grad_in(c, 2);                                   \
    c->grad_inputs[1] = grad_node(c, filter_op, TFC_OUTPUTS(g, grad_shape_of_input(c, 1), dy), COPIED);                \
    c->grad_inputs[2] = grad_node(c, op, TFC_OUTPUTS(g, w), COPIED);                                                   \
    return grad_status(c);                                                                                             \
  }                                                                                                                    \
  static tfc_status grad_of_##name##_filter(struct tfc_grad_ctx *c) {                                                  \
    struct tfc_output g = c->grad_outputs[0], x = grad_in(c, 0), dy = grad_in(c, 2);                                   \
    c->grad_inputs[0] = grad_node(c, input_op, TFC_OUTPUTS(grad_shape_of_input(c, 0), g, dy), COPIED);                 \
    c->grad_inputs[2] = grad_node(c, op, TFC_OUTPUTS(x, g), COPIED);                                                   \
    return grad_status(c);                                                                                             \
  }
GRADIENTS(conv2d, "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")
GRADIENTS(conv3d, "Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")

static void cost_conv(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  enum role role = role_of(n);
  const struct tfc_shape *w = role == BACKWARD_FILTER ? &outputs[0] : &inputs[1];
  const struct tfc_shape *y = role == FORWARD ? &outputs[0] : &inputs[2];
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
  out->flops = 0;
  if (!tfc_shape_is_static(w) || !tfc_shape_is_static(y) || w->rank < 1 || w->dims[w->rank - 1] == 0) return;
  // each output element is a sum over the cells of one filter
  out->flops = 2.0 * (double)tfc_shape_elements(y) * (double)(tfc_shape_elements(w) / w->dims[w->rank - 1]);
}

#define CONV_TYPES (OPS_BITS(OPS_FLOATS) | TFC_TYPE_BIT(TFC_INT32))
static const struct tfc_op_def nn_conv_rows[] = {
    {.name = "Conv2D",
     .plan_trait = TFC_PLAN_FILTERED,
     .images = {.inputs = 1, .outputs = 1, .convolves = true},
     .flags = TFC_OP_FINISHES,
     .role = TFC_ROLE_CONVOLUTION,
     .inputs = "input: T, filter: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double, int32}, strides: list(int), use_cudnn_on_gpu: bool = true, padding: "
              "{'SAME', 'VALID', 'EXPLICIT'}, explicit_paddings: list(int) = [], data_format: {'NHWC', 'NCHW'} = "
              "'NHWC', dilations: list(int) = [1, 1, 1, 1]",
     .types = CONV_TYPES,
     .shape = shape_conv,
     .gradient = grad_of_conv2d,
     .cost = cost_conv,
     .prepare = conv_prepare,
     .kernel = conv,
     .samples = "float[2,5,5,3], float[3,3,3,4] {strides=[1,1,1,1], padding='SAME'}; "
                "float[1,7,6,2], float[2,3,2,3] {strides=[1,2,2,1], padding='VALID'}; "
                "double[1,5,5,4], double[3,3,2,4] {strides=[1,1,1,1], padding='SAME'}"},
    {.name = "Conv2DBackpropInput",
     .plan_trait = TFC_PLAN_FILTERED,
     .images = {.inputs = 4, .outputs = 1, .sizes = 1, .convolves = true},
     .inputs = "input_sizes: int32, filter: T, out_backprop: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double, int32}, strides: list(int), use_cudnn_on_gpu: bool = true, padding: "
              "{'SAME', 'VALID', 'EXPLICIT'}, explicit_paddings: list(int) = [], data_format: {'NHWC', 'NCHW'} = "
              "'NHWC', dilations: list(int) = [1, 1, 1, 1]",
     .types = CONV_TYPES,
     .host_inputs = 1,
     .shape = shape_backward_input,
     .gradient = grad_of_conv2d_input,
     .cost = cost_conv,
     .prepare = conv_prepare,
     .kernel = conv},
    {.name = "Conv2DBackpropFilter",
     .images = {.inputs = 5, .convolves = true},
     .inputs = "input: T, filter_sizes: int32, out_backprop: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double}, strides: list(int), use_cudnn_on_gpu: bool = true, padding: "
              "{'SAME', 'VALID', 'EXPLICIT'}, explicit_paddings: list(int) = [], data_format: {'NHWC', 'NCHW'} = "
              "'NHWC', dilations: list(int) = [1, 1, 1, 1]",
     .types = CONV_TYPES,
     .host_inputs = 2,
     .shape = shape_backward_filter,
     .gradient = grad_of_conv2d_filter,
     .cost = cost_conv,
     .prepare = conv_prepare,
     .kernel = conv},
    {.name = "Conv3D",
     .plan_trait = TFC_PLAN_FILTERED,
     .images = {.inputs = 1, .outputs = 1, .convolves = true},
     .flags = TFC_OP_FINISHES,
     .role = TFC_ROLE_CONVOLUTION,
     .inputs = "input: T, filter: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double}, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, data_format: "
              "{'NDHWC', 'NCDHW'} = 'NDHWC', dilations: list(int) = [1, 1, 1, 1, 1]",
     .types = OPS_BITS(OPS_FLOATS),
     .shape = shape_conv,
     .gradient = grad_of_conv3d,
     .cost = cost_conv,
     .prepare = conv_prepare,
     .kernel = conv,
     .samples = "float[2,4,5,5,3], float[2,3,3,3,4] {strides=[1,1,1,1,1], padding='SAME'}"},
    {.name = "Conv3DBackpropInputV2",
     .plan_trait = TFC_PLAN_FILTERED,
     .images = {.inputs = 4, .outputs = 1, .sizes = 1, .convolves = true},
     .inputs = "input_sizes: Tshape, filter: T, out_backprop: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double}, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, data_format: "
              "{'NDHWC', 'NCDHW'} = 'NDHWC', dilations: list(int) = [1, 1, 1, 1, 1], Tshape: {int32, int64} = int32",
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 1,
     .shape = shape_backward_input,
     .gradient = grad_of_conv3d_input,
     .cost = cost_conv,
     .prepare = conv_prepare,
     .kernel = conv},
    {.name = "Conv3DBackpropFilterV2",
     .images = {.inputs = 5, .convolves = true},
     .inputs = "input: T, filter_sizes: int32, out_backprop: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double}, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, data_format: "
              "{'NDHWC', 'NCDHW'} = 'NDHWC', dilations: list(int) = [1, 1, 1, 1, 1]",
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 2,
     .shape = shape_backward_filter,
     .gradient = grad_of_conv3d_filter,
     .cost = cost_conv,
     .prepare = conv_prepare,
     .kernel = conv},
};
TFC_REGISTER_OPS(nn_conv_rows);
