// Rows of the kernel table for convolutions, pools, batch normalisation and local response normalisation.
#include "runtime/device/cuda/kernels/image.h"

#include "runtime/device/cuda/kernels/common.h"
#include "runtime/device/cuda/kernels/conv.h"
#include "runtime/device/cuda/kernels/dnn.h"
#include "runtime/device/cuda/kernels/filter.h"
#include "runtime/device/cuda/kernels/layout.h"
#include "runtime/ops/nn_window.h"

static bool is_float(tfc_dtype t) {
  return tfc_cuda_type_in(t, OPS_BITS(OPS_FLOATS));
}
static void layout_of(const struct tfc_window *w, const struct tfc_shape *shape, struct tfc_cuda_layout *out) {
  struct tfc_image image;
  tfc_image_of(w, shape, &image);
  for (int k = 0; k < 3; k++) {
    out->size[k] = image.size[k];
    out->stride[k] = image.stride[k];
  }
  out->batch_stride = image.batch_stride;
  out->channel_stride = image.channel_stride;
}

// --- Convolutions ------------------------------------------------------------------------------------------------
struct conv {
  struct tfc_window window;
  int role;
  bool loops;                     // run the plain loops, not the library
  bool depthwise;                 // each channel is a group, whose filters are the filter's last dimension
  tfc_filter_form form;           // of the filter that is read
  struct tfc_cuda_argument sizes; // backward roles: the input that gives the result's shape
  const struct tfc_cuda_conv_plan *plan;
  size_t scratch;
};

// A depthwise filter [spatial..., channels, multiplier] is in memory as one of a convolution with a group for each
// channel: [spatial..., 1, channels * multiplier].
static tfc_status grouped(const struct tfc_window *w, const struct tfc_shape *x, const struct tfc_shape *filter,
                          struct tfc_shape *out) {
  const int last = filter->rank - 1;
  const int64_t channels = x->dims[tfc_window_channel_axis(w)];
  *out = *filter;
  TFC_KERNEL_CHECK(filter->dims[last - 1] == channels, "input and filter must have the same depth: %lld vs %lld",
                   (long long)channels, (long long)filter->dims[last - 1]);
  TFC_KERNEL_CHECK(!__builtin_mul_overflow(channels, filter->dims[last], &out->dims[last]), "the result is too large");
  out->dims[last - 1] = channels ? 1 : 0;
  return NULL;
}

// Fills in the geometry `c`. *out_shape: the shape of the result.
static tfc_status describe(const struct conv *st, const struct tfc_shape *x, const struct tfc_shape *of_graph,
                           const struct tfc_shape *y, tfc_dtype type, struct tfc_cuda_conv *c,
                           struct tfc_shape *out_shape) {
  const struct tfc_window *w = &st->window;
  int rank = w->spatial + 2;
  struct tfc_shape by_groups;
  const struct tfc_shape *filter = of_graph;
  memset(c, 0, sizeof *c);
  TFC_KERNEL_CHECK(x->rank == rank && filter->rank == rank, "input and filter must be %d-dimensional", rank);
  if (st->depthwise) {
    TFC_RETURN_IF_ERROR(grouped(w, x, of_graph, &by_groups));
    filter = &by_groups;
  }
  struct tfc_cuda_slide *s = &c->slide;
  c->role = st->role;
  c->type = (int32_t)type;
  c->spatial = w->spatial;
  c->channels_first = w->channels_first;
  s->batch = x->dims[0];
  s->channels = x->dims[tfc_window_channel_axis(w)];
  s->filters = filter->dims[rank - 1];
  int64_t depth = filter->dims[rank - 2], out[3] = {1, 1, 1};
  const bool nothing = st->depthwise && !s->channels;
  TFC_KERNEL_CHECK(nothing || (depth > 0 && s->channels % depth == 0 && s->channels / depth > 0),
                   "input depth must be evenly divisible by filter depth: %lld vs %lld", (long long)s->channels,
                   (long long)depth);
  s->groups = nothing ? 1 : s->channels / depth;
  TFC_KERNEL_CHECK(s->filters % s->groups == 0,
                   "output depth %lld must be evenly divisible by the number of groups %lld", (long long)s->filters,
                   (long long)s->groups);
  for (int k = 0; k < 3; k++) {
    bool there = k >= 3 - w->spatial;
    s->size[k] = there ? filter->dims[k - (3 - w->spatial)] : 1;
    s->step[k] = w->stride[k];
    s->dilation[k] = w->dilation[k];
    TFC_KERNEL_CHECK(s->size[k] > 0, "filter must not have zero elements");
    if (!there) continue;
    int64_t in = x->dims[tfc_window_axis(w, k)];
    TFC_RETURN_IF_ERROR(tfc_window_output(w, k, in, s->size[k], &out[k], &s->before[k]));
    int64_t after = (out[k] - 1) * s->step[k] + (s->size[k] - 1) * s->dilation[k] + 1 - in - s->before[k];
    c->after[k] = after > 0 ? after : 0;
  }
  struct tfc_shape ys = tfc_image_shape(w, s->batch, out, s->filters);
  if (y) TFC_KERNEL_CHECK(tfc_shape_equal(y, &ys), "out_backprop does not fit input and filter");
  layout_of(w, x, &s->x);
  layout_of(w, &ys, &s->y);
  *out_shape = st->role == TFC_CUDA_CONV_FORWARD ? ys : st->role == TFC_CUDA_CONV_INPUT ? *x : *of_graph;
  return NULL;
}

// Finds the shapes of x and of the filter. They are those of the inputs; for a backward role `sizes` gives the shape of
// the result.
static tfc_status shapes_of(const struct conv *st, const struct tfc_shape *inputs, const struct tfc_tensor *sizes,
                            struct tfc_shape *x, struct tfc_shape *filter) {
  const struct tfc_window *w = &st->window;
  *x = inputs[0];
  *filter = inputs[1];
  if (st->role == TFC_CUDA_CONV_INPUT) {
    TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(sizes, x));
    if (x->rank == w->spatial && inputs[2].rank == w->spatial + 2 && filter->rank == w->spatial + 2 && !st->depthwise) {
      int64_t spatial[3] = {1, 1, 1};
      for (int k = 0; k < w->spatial; k++) spatial[3 - w->spatial + k] = x->dims[k];
      *x = tfc_image_shape(w, inputs[2].dims[0], spatial, filter->dims[w->spatial]);
    }
  }
  if (st->role == TFC_CUDA_CONV_FILTER) TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(sizes, filter));
  return NULL;
}

// Bits in a row's variant; in rows of convolutions the lowest two bits are the role.
// DEEP: three spatial dimensions; TRANSPOSED: a rewrite has made it, whose state is the filter's form.
enum { DEEP = 4, AVERAGE = 8, GRADIENT = 16, TRANSPOSED = 32, DEPTHWISE = 64 };
static tfc_status conv_prepare(struct tfc_cuda_prepare *p, bool loops, bool constant) {
  TFC_CUDA_STATE(p, struct conv, st);
  const struct tfc_prepare_ctx *base = p->base;
  st->role = p->variant & 3;
  st->loops = loops;
  st->depthwise = p->variant & DEPTHWISE;
  if (p->variant & TRANSPOSED) {
    if (!p->op || !p->op->prepared) TFC_CUDA_DECLINE("it was not made by a rewrite");
    st->form = *(const tfc_filter_form *)p->op->state;
  }
  uint32_t sizes = st->role == TFC_CUDA_CONV_INPUT ? 0 : 1, count = st->role == TFC_CUDA_CONV_FORWARD ? 2 : 3;
  tfc_dtype type = tfc_cuda_type(p, st->role == TFC_CUDA_CONV_INPUT ? 1 : 0);
  if (!is_float(type)) TFC_CUDA_DECLINE("no kernel for %s", tfc_dtype_name(type));
  if (st->role != TFC_CUDA_CONV_FORWARD) st->sizes = tfc_cuda_argument(p, sizes);
  if (constant && st->role != TFC_CUDA_CONV_FORWARD && !st->sizes.constant) TFC_CUDA_DECLINE("sizes are not constant");
  const bool deep = p->variant & TRANSPOSED ? base->input_shapes[1].rank == 5 : p->variant & DEEP;
  TFC_RETURN_IF_ERROR(tfc_window_read(base->graph, base->node, deep ? 5 : 4, &st->window));
  if (loops && p->variant & TRANSPOSED)
    p->scratch = (size_t)tfc_shape_elements(&base->input_shapes[1]) * tfc_dtype_size(type);
  if (loops) return NULL;
  bool is_static = st->role == TFC_CUDA_CONV_FORWARD || st->sizes.constant;
  for (uint32_t i = 0; i < count; i++) is_static = is_static && tfc_shape_is_static(&base->input_shapes[i]);
  // the library chooses algorithms when plans are made, from the shapes
  if (!is_static) TFC_CUDA_DECLINE("shapes are not static");
  struct tfc_shape x, filter, made;
  struct tfc_cuda_conv conv;
  TFC_RETURN_IF_ERROR(shapes_of(st, base->input_shapes, st->sizes.constant, &x, &filter));
  TFC_RETURN_IF_ERROR(describe(st, &x, &filter, count == 3 ? &base->input_shapes[2] : NULL, type, &conv, &made));
  if (!tfc_shape_elements(&x) || !tfc_shape_elements(&filter) || !tfc_shape_elements(&made))
    TFC_CUDA_DECLINE("nothing to convolve");
  p->declined = true;
  TFC_RETURN_IF_ERROR(tfc_cuda_conv_find(p->library, &conv, &st->plan));
  p->declined = false;
  p->scratch = tfc_cuda_conv_scratch(st->plan);
  if (st->role != TFC_CUDA_CONV_FILTER) p->filter_form = tfc_cuda_conv_form(st->plan);
  p->channels_last_gain_us = tfc_cuda_conv_channels_last_gain_us(st->plan);
  return NULL;
}
static tfc_status library_prepare(struct tfc_cuda_prepare *p) {
  return conv_prepare(p, false, true);
}
static tfc_status loops_constant(struct tfc_cuda_prepare *p) {
  return conv_prepare(p, true, true);
}
static tfc_status loops_prepare(struct tfc_cuda_prepare *p) {
  return conv_prepare(p, true, false);
}

static tfc_status launch_conv(struct tfc_cuda_launch *l) {
  const struct conv *st = l->ctx->state;
  const struct tfc_tensor *const *in = l->ctx->inputs;
  struct tfc_shape inputs[3] = {in[0]->shape, in[1]->shape}, x, filter, made;
  struct tfc_cuda_value sizes = {0};
  struct tfc_cuda_conv c;
  struct tfc_tensor *out = NULL;
  bool forward = st->role == TFC_CUDA_CONV_FORWARD;
  tfc_dtype type = in[st->role == TFC_CUDA_CONV_INPUT ? 1 : 0]->dtype;
  if (!forward) {
    inputs[2] = in[2]->shape;
    TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &st->sizes, &sizes));
  }
  TFC_RETURN_IF_ERROR(shapes_of(st, inputs, sizes.tensor, &x, &filter));
  TFC_RETURN_IF_ERROR(describe(st, &x, &filter, forward ? NULL : &inputs[2], type, &c, &made));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, type, &made, &out));
  if (!out->size) return NULL;
  if (!tfc_shape_elements(&x) || (!forward && !in[2]->size)) { // then every sum has no terms, and the result is 0
    TFC_CUDA_LAUNCHED(l, tfc_cuda_clear_bytes(out->data, out->size, l->stream));
    return NULL;
  }
  void *xp = st->role == TFC_CUDA_CONV_INPUT ? out->data : in[0]->data;
  void *wp = st->role == TFC_CUDA_CONV_FILTER ? out->data : in[1]->data;
  void *yp = forward ? out->data : in[2]->data;
  if (!st->loops) return tfc_cuda_conv_run(l, st->plan, xp, wp, st->form, yp, l->scratch);
  if (st->form != TFC_FILTER_OF_GRAPH) {
    TFC_CUDA_LAUNCHED(l, tfc_cuda_filter_transpose(&c, st->form, wp, TFC_FILTER_OF_GRAPH, l->scratch, l->stream));
    wp = l->scratch;
  }
  if (forward)
    TFC_CUDA_LAUNCHED(l, tfc_cuda_conv_forward((int)type, &c.slide, xp, wp, yp, l->stream));
  else if (st->role == TFC_CUDA_CONV_INPUT)
    TFC_CUDA_LAUNCHED(l, tfc_cuda_conv_input((int)type, &c.slide, wp, yp, xp, l->stream));
  else
    TFC_CUDA_LAUNCHED(l, tfc_cuda_conv_filter((int)type, &c.slide, xp, yp, wp, l->stream));
  return NULL;
}

// --- Operations that cuDNN runs where it is faster -----------------------------------------------------------------
static bool shapes_are_static(const struct tfc_cuda_prepare *p) {
  bool all = true;
  for (uint32_t i = 0; i < p->base->node->input_count; i++) all = all && tfc_shape_is_static(&p->base->input_shapes[i]);
  return all;
}
static tfc_status find_plan(struct tfc_cuda_prepare *p, const struct tfc_cuda_dnn *dnn,
                            const struct tfc_cuda_dnn_plan **out) {
  TFC_RETURN_IF_ERROR(tfc_cuda_dnn_find(p->library, dnn, out, &p->declined));
  p->scratch = tfc_cuda_dnn_scratch(*out);
  p->library_note = "cuDNN";
  return NULL;
}

// --- Pools -------------------------------------------------------------------------------------------------------
struct pool {
  struct tfc_window window;
  bool average;
  struct tfc_cuda_argument sizes;       // AvgPoolGrad: the image's shape
  const struct tfc_cuda_dnn_plan *plan; // NULL: tfc's kernel runs
};
static tfc_status pool_read(struct tfc_cuda_prepare *p, uint32_t image, struct pool **out) {
  TFC_CUDA_STATE(p, struct pool, st);
  tfc_dtype type = tfc_cuda_type(p, image);
  if (!is_float(type)) TFC_CUDA_DECLINE("no kernel for %s", tfc_dtype_name(type));
  st->average = p->variant & AVERAGE;
  TFC_RETURN_IF_ERROR(tfc_window_read(p->base->graph, p->base->node, p->variant & DEEP ? 5 : 4, &st->window));
  if (st->window.channel_size != 1) TFC_CUDA_DECLINE("windows over channels");
  *out = st;
  return NULL;
}
static tfc_status pool_prepare(struct tfc_cuda_prepare *p) {
  struct pool *st = NULL;
  return pool_read(p, 0, &st);
}
static tfc_status average_grad(struct tfc_cuda_prepare *p, bool constant) { // inputs: orig_input_shape, grad
  struct pool *st = NULL;
  TFC_RETURN_IF_ERROR(pool_read(p, 1, &st));
  st->sizes = tfc_cuda_argument(p, 0);
  if (constant && !st->sizes.constant) TFC_CUDA_DECLINE("the shape is not constant");
  return NULL;
}
static tfc_status average_grad_constant(struct tfc_cuda_prepare *p) {
  return average_grad(p, true);
}
static tfc_status average_grad_prepare(struct tfc_cuda_prepare *p) {
  return average_grad(p, false);
}
static tfc_status describe_pool(const struct tfc_window *w, const struct tfc_shape *x, struct tfc_cuda_slide *s,
                                struct tfc_shape *y) {
  int64_t out[3] = {1, 1, 1};
  *s = (struct tfc_cuda_slide){0};
  TFC_KERNEL_CHECK(x->rank == w->spatial + 2, "tensor_in must be %d-dimensional", w->spatial + 2);
  s->batch = x->dims[0];
  s->channels = x->dims[tfc_window_channel_axis(w)];
  for (int k = 0; k < 3; k++) {
    s->size[k] = w->size[k];
    s->step[k] = w->stride[k];
    s->dilation[k] = 1;
    if (k < 3 - w->spatial) continue;
    TFC_RETURN_IF_ERROR(tfc_window_output(w, k, x->dims[tfc_window_axis(w, k)], w->size[k], &out[k], &s->before[k]));
  }
  *y = tfc_image_shape(w, s->batch, out, s->channels);
  layout_of(w, x, &s->x);
  layout_of(w, y, &s->y);
  return NULL;
}
// For MaxPool, AvgPool and AvgPoolGrad. MaxPoolGrad is not run by cuDNN, which does not document which of equal maxima
// gets the gradient.
static tfc_status pool_library(struct tfc_cuda_prepare *p) {
  struct pool *st = NULL;
  struct tfc_cuda_dnn dnn;
  struct tfc_shape x = p->base->input_shapes[0], y;
  const bool gradient = p->variant & GRADIENT;
  TFC_RETURN_IF_ERROR(pool_read(p, gradient ? 1 : 0, &st));
  memset(&dnn, 0, sizeof dnn);
  if (gradient) {
    st->sizes = tfc_cuda_argument(p, 0);
    if (!st->sizes.constant) TFC_CUDA_DECLINE("the shape is not constant");
    TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(st->sizes.constant, &x));
  } else if (!shapes_are_static(p)) {
    TFC_CUDA_DECLINE("shapes are not static");
  }
  TFC_RETURN_IF_ERROR(describe_pool(&st->window, &x, &dnn.slide, &y));
  dnn.role = gradient ? TFC_CUDA_DNN_AVERAGE_GRAD : TFC_CUDA_DNN_POOL;
  dnn.type = (int32_t)tfc_cuda_type(p, gradient ? 1 : 0);
  dnn.spatial = st->window.spatial;
  dnn.flag = st->average;
  return find_plan(p, &dnn, &st->plan);
}
static tfc_status launch_pool(struct tfc_cuda_launch *l) {
  const struct pool *st = l->ctx->state;
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_cuda_slide s;
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(describe_pool(&st->window, &x->shape, &s, &shape));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &shape, &y));
  if (!y->size) return NULL;
  if (st->plan) return tfc_cuda_dnn_run(l, st->plan, &(struct tfc_cuda_dnn_memory){.x = x->data, .out = y->data});
  TFC_CUDA_LAUNCHED(l, tfc_cuda_pool((int)x->dtype, st->average, &s, x->data, y->data, l->stream));
  return NULL;
}
static tfc_status launch_max_grad(struct tfc_cuda_launch *l) { // inputs: orig_input, orig_output, grad
  const struct pool *st = l->ctx->state;
  const struct tfc_tensor *x = l->ctx->inputs[0], *y = l->ctx->inputs[1], *g = l->ctx->inputs[2];
  struct tfc_cuda_slide s;
  struct tfc_shape shape;
  struct tfc_tensor *dx = NULL;
  TFC_RETURN_IF_ERROR(describe_pool(&st->window, &x->shape, &s, &shape));
  TFC_KERNEL_CHECK(tfc_shape_equal(&shape, &y->shape) && tfc_shape_equal(&shape, &g->shape),
                   "orig_output and grad do not have the shape of the pool's result");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, x, &dx));
  if (!dx->size) return NULL;
  TFC_CUDA_LAUNCHED(
      l, tfc_cuda_max_pool_grad((int)x->dtype, x->shape.rank == 5, &s, x->data, y->data, g->data, dx->data, l->stream));
  return NULL;
}
static tfc_status launch_average_grad(struct tfc_cuda_launch *l) {
  const struct pool *st = l->ctx->state;
  const struct tfc_tensor *g = l->ctx->inputs[1];
  struct tfc_cuda_value sizes;
  struct tfc_cuda_slide s;
  struct tfc_shape x, shape;
  struct tfc_tensor *dx = NULL;
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &st->sizes, &sizes));
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(sizes.tensor, &x));
  TFC_RETURN_IF_ERROR(describe_pool(&st->window, &x, &s, &shape));
  TFC_KERNEL_CHECK(tfc_shape_equal(&shape, &g->shape), "grad does not have the shape of the pool's result");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, g->dtype, &x, &dx));
  if (!dx->size) return NULL;
  if (st->plan) return tfc_cuda_dnn_run(l, st->plan, &(struct tfc_cuda_dnn_memory){.dy = g->data, .out = dx->data});
  TFC_CUDA_LAUNCHED(l, tfc_cuda_average_pool_grad((int)g->dtype, &s, g->data, dx->data, l->stream));
  return NULL;
}

// --- Batch normalisation -----------------------------------------------------------------------------------------
struct norm {
  bool training, channels_first;
  float epsilon, factor;
  const struct tfc_cuda_dnn_plan *plan; // NULL: tfc's kernels run
};
static tfc_status norm_read(struct tfc_cuda_prepare *p) {
  TFC_CUDA_STATE(p, struct norm, st);
  const struct tfc_prepare_ctx *base = p->base;
  st->training = tfc_node_attr_bool(base->graph, base->node, "is_training", true);
  st->epsilon = (float)tfc_node_attr_float(base->graph, base->node, "epsilon", 0.0001);
  st->factor = (float)tfc_node_attr_float(base->graph, base->node, "exponential_avg_factor", 1);
  st->channels_first = tfc_str_starts(tfc_node_attr_string(base->graph, base->node, "data_format", "NHWC"), "NC");
  return NULL;
}
static tfc_status norm_prepare(struct tfc_cuda_prepare *p) {
  if (tfc_cuda_type(p, 1) != TFC_FLOAT) TFC_CUDA_DECLINE("statistics that are not float32");
  return norm_read(p);
}
static tfc_status norm_grad_prepare(struct tfc_cuda_prepare *p) {
  if (tfc_cuda_type(p, 2) != TFC_FLOAT || tfc_cuda_type(p, 3) != TFC_FLOAT)
    TFC_CUDA_DECLINE("statistics that are not float32");
  return norm_read(p);
}
static tfc_status split(const struct tfc_shape *s, bool channels_first, struct tfc_cuda_norm *n) {
  TFC_KERNEL_CHECK(s->rank == 4 || s->rank == 5, "input must be 4 or 5-dimensional");
  int axis = channels_first ? 1 : s->rank - 1;
  n->outer = n->inner = 1;
  for (int i = 0; i < axis; i++) n->outer *= s->dims[i];
  for (int i = axis + 1; i < s->rank; i++) n->inner *= s->dims[i];
  n->channels = s->dims[axis];
  return NULL;
}
static tfc_status check_vector(const struct tfc_tensor *t, int64_t channels, const char *what) {
  TFC_KERNEL_CHECK(t->shape.rank == 1 && t->shape.dims[0] == channels && t->dtype == TFC_FLOAT,
                   "%s must be a float32 vector with as many elements as x has channels (%lld)", what,
                   (long long)channels);
  return NULL;
}
// cuDNN is used for training only: with given statistics tfc's kernel reads memory only once. cuDNN computes the sample
// variance, which does not exist for one element, and it updates running statistics in place.
static tfc_status norm_library(struct tfc_cuda_prepare *p) {
  const bool backward = p->variant & GRADIENT;
  TFC_RETURN_IF_ERROR(backward ? norm_grad_prepare(p) : norm_prepare(p));
  struct norm *st = p->base->state;
  struct tfc_cuda_norm n = {0};
  struct tfc_cuda_dnn dnn;
  if (!st->training || st->factor != 1) TFC_CUDA_DECLINE("statistics that are given, or run along");
  if (!shapes_are_static(p)) TFC_CUDA_DECLINE("shapes are not static");
  TFC_RETURN_IF_ERROR(split(&p->base->input_shapes[backward ? 1 : 0], st->channels_first, &n));
  if (n.outer * n.inner < 2) TFC_CUDA_DECLINE("one element has no variance");
  memset(&dnn, 0, sizeof dnn);
  dnn.role = backward ? TFC_CUDA_DNN_NORM_GRAD : TFC_CUDA_DNN_NORM;
  dnn.type = (int32_t)tfc_cuda_type(p, 0);
  dnn.outer = n.outer, dnn.channels = n.channels, dnn.inner = n.inner;
  dnn.epsilon = st->epsilon;
  return find_plan(p, &dnn, &st->plan);
}
static tfc_status run_norm(struct tfc_cuda_launch *l, tfc_dtype type, const struct tfc_cuda_norm *n, bool backward) {
  const struct norm *st = l->ctx->state;
  if (st->plan) return tfc_cuda_dnn_run(l, st->plan, &(struct tfc_cuda_dnn_memory){.norm = n});
  struct tfc_buffer *scratch = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(l->ctx, tfc_cuda_norm_scratch(n), &scratch));
  int failed = backward ? tfc_cuda_norm_backward((int)type, n, scratch->data, l->stream)
                        : tfc_cuda_norm_forward((int)type, n, scratch->data, l->stream);
  tfc_buffer_release(scratch);
  return failed ? tfc_cuda_status(l, failed) : NULL;
}
// Inputs: x, scale, offset, mean, variance. Outputs: y, batch_mean, batch_variance, reserve_space_1, reserve_space_2,
// in V3 also reserve_space_3.
static tfc_status launch_norm(struct tfc_cuda_launch *l) {
  const struct norm *st = l->ctx->state;
  const struct tfc_tensor *const *in = l->ctx->inputs;
  struct tfc_cuda_norm n = {.training = st->training, .epsilon = st->epsilon, .factor = st->factor};
  struct tfc_tensor *y = NULL, *stats[4], *third = NULL;
  TFC_RETURN_IF_ERROR(split(&in[0]->shape, st->channels_first, &n));
  TFC_RETURN_IF_ERROR(check_vector(in[1], n.channels, "scale"));
  TFC_RETURN_IF_ERROR(check_vector(in[2], n.channels, "offset"));
  if (!st->training || st->factor != 1) {
    TFC_RETURN_IF_ERROR(check_vector(in[3], n.channels, "mean"));
    TFC_RETURN_IF_ERROR(check_vector(in[4], n.channels, "variance"));
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, in[0], &y));
  for (uint32_t i = 0; i < 4; i++)
    TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, i + 1, TFC_FLOAT, &TFC_SHAPE(n.channels), &stats[i]));
  if (l->ctx->output_count > 5) { // memory that cuDNN may keep for the gradient; here a scalar that no kernel reads
    TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 5, TFC_FLOAT, &TFC_SHAPE_SCALAR, &third));
    TFC_CUDA_LAUNCHED(l, tfc_cuda_clear_bytes(third->data, third->size, l->stream));
  }
  n.x = in[0]->data, n.y = y->data;
  n.scale = in[1]->data, n.offset = in[2]->data, n.mean = in[3]->data, n.variance = in[4]->data;
  n.out_mean = stats[0]->data, n.out_variance = stats[1]->data;
  n.saved_mean = stats[2]->data, n.saved_variance = stats[3]->data;
  if (!n.channels) return NULL;
  // The statistics of no elements are 0 / 0, which is NaN, as in TensorFlow.
  return run_norm(l, in[0]->dtype, &n, false);
}
// Inputs: dy, x, scale, reserve_space_1, reserve_space_2, in V3 also reserve_space_3. Outputs: dx, dscale, doffset, and
// two that are not used.
static tfc_status launch_norm_grad(struct tfc_cuda_launch *l) {
  const struct norm *st = l->ctx->state;
  const struct tfc_tensor *const *in = l->ctx->inputs;
  struct tfc_cuda_norm n = {.training = st->training, .epsilon = st->epsilon};
  struct tfc_tensor *dx = NULL, *dscale = NULL, *doffset = NULL, *rest = NULL;
  TFC_RETURN_IF_ERROR(split(&in[1]->shape, st->channels_first, &n));
  TFC_KERNEL_CHECK(tfc_shape_equal(&in[0]->shape, &in[1]->shape), "x and y_backprop must have same shape");
  TFC_RETURN_IF_ERROR(check_vector(in[2], n.channels, "scale"));
  TFC_RETURN_IF_ERROR(check_vector(in[3], n.channels, "reserve_space_1"));
  TFC_RETURN_IF_ERROR(check_vector(in[4], n.channels, "reserve_space_2"));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, in[1], &dx));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 1, TFC_FLOAT, &TFC_SHAPE(n.channels), &dscale));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 2, TFC_FLOAT, &TFC_SHAPE(n.channels), &doffset));
  for (uint32_t i = 3; i < 5; i++) TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, i, TFC_FLOAT, &TFC_SHAPE(0), &rest));
  if (!dx->size) {
    TFC_CUDA_LAUNCHED(l, tfc_cuda_clear_bytes(dscale->data, dscale->size, l->stream));
    TFC_CUDA_LAUNCHED(l, tfc_cuda_clear_bytes(doffset->data, doffset->size, l->stream));
    return NULL;
  }
  n.x = in[1]->data, n.dy = in[0]->data, n.y = dx->data;
  n.scale = in[2]->data, n.mean = in[3]->data, n.variance = in[4]->data;
  n.dscale = dscale->data, n.doffset = doffset->data;
  return run_norm(l, in[1]->dtype, &n, true);
}

// --- Local response normalisation ----------------------------------------------------------------------------------
struct lrn {
  struct tfc_cuda_lrn lrn;
  const struct tfc_cuda_dnn_plan *plan; // NULL: tfc's kernel runs
};
static tfc_status lrn_prepare(struct tfc_cuda_prepare *p) {
  TFC_CUDA_STATE(p, struct lrn, state);
  struct tfc_cuda_lrn *st = &state->lrn;
  const struct tfc_prepare_ctx *base = p->base;
  st->radius = tfc_node_attr_int(base->graph, base->node, "depth_radius", 5);
  st->bias = (double)(float)tfc_node_attr_float(base->graph, base->node, "bias", 1);
  st->alpha = (double)(float)tfc_node_attr_float(base->graph, base->node, "alpha", 1);
  st->beta = (double)(float)tfc_node_attr_float(base->graph, base->node, "beta", 0.5);
  return NULL;
}
static tfc_status lrn_library(struct tfc_cuda_prepare *p) {
  TFC_RETURN_IF_ERROR(lrn_prepare(p));
  struct lrn *st = p->base->state;
  const struct tfc_shape *x = &p->base->input_shapes[0];
  struct tfc_cuda_dnn dnn;
  if (!shapes_are_static(p) || x->rank != 4) TFC_CUDA_DECLINE("shapes are not static");
  memset(&dnn, 0, sizeof dnn);
  dnn.role = p->variant & GRADIENT ? TFC_CUDA_DNN_LRN_GRAD : TFC_CUDA_DNN_LRN;
  dnn.type = (int32_t)tfc_cuda_type(p, 0);
  dnn.outer = x->dims[0] * x->dims[1] * x->dims[2], dnn.channels = x->dims[3], dnn.inner = 1;
  dnn.radius = st->lrn.radius;
  dnn.bias = st->lrn.bias, dnn.alpha = st->lrn.alpha, dnn.beta = st->lrn.beta;
  return find_plan(p, &dnn, &st->plan);
}
static tfc_status run_lrn(struct tfc_cuda_launch *l, bool gradient) {
  const struct lrn *st = l->ctx->state;
  struct tfc_cuda_lrn lrn = st->lrn;
  const struct tfc_tensor *const *in = l->ctx->inputs, *x = in[gradient ? 1 : 0];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(x->shape.rank == 4, "in must be 4-dimensional");
  TFC_KERNEL_CHECK(lrn.radius >= 0, "depth_radius = %lld must not be negative", (long long)lrn.radius);
  if (gradient)
    TFC_KERNEL_CHECK(tfc_shape_equal(&x->shape, &in[0]->shape) && tfc_shape_equal(&x->shape, &in[2]->shape),
                     "input_grads, input_image, and out_image should have the same shape");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, x, &y));
  if (!x->size) return NULL;
  if (st->plan)
    return tfc_cuda_dnn_run(
        l, st->plan,
        &(struct tfc_cuda_dnn_memory){
            .x = x->data, .y = gradient ? in[2]->data : NULL, .dy = gradient ? in[0]->data : NULL, .out = y->data});
  lrn.channels = x->shape.dims[3];
  lrn.rows = tfc_cuda_count(x) / lrn.channels;
  if (gradient)
    TFC_CUDA_LAUNCHED(
        l, tfc_cuda_lrn_backward((int)x->dtype, &lrn, in[0]->data, x->data, in[2]->data, y->data, l->stream));
  else
    TFC_CUDA_LAUNCHED(l, tfc_cuda_lrn_forward((int)x->dtype, &lrn, x->data, y->data, l->stream));
  return NULL;
}
static tfc_status launch_lrn(struct tfc_cuda_launch *l) {
  return run_lrn(l, false);
}
static tfc_status launch_lrn_grad(struct tfc_cuda_launch *l) {
  return run_lrn(l, true);
}

// --- Transposed images (runtime/exec/rewrites/layouts.c) -----------------------------------------------------------
static tfc_status transposed_prepare(struct tfc_cuda_prepare *p) {
  if (!p->op || !p->op->prepared) TFC_CUDA_DECLINE("it was not made by a rewrite");
  p->base->state = p->op->state;
  return NULL;
}
static tfc_status launch_transposed(struct tfc_cuda_launch *l) {
  const bool first = *(const bool *)l->ctx->state; // the image gets channels first: it has them last
  const struct tfc_tensor *from = l->ctx->inputs[0];
  const int rank = from->shape.rank, positions = rank - 2;
  struct tfc_shape made = from->shape;
  struct tfc_tensor *to = NULL;
  struct tfc_cuda_images images = {.batch = from->shape.dims[0],
                                   .channels = from->shape.dims[first ? rank - 1 : 1],
                                   .size = {1, 1, 1},
                                   .element = (int32_t)tfc_dtype_size(from->dtype)};
  for (int k = 0; k < positions; k++) {
    const int64_t size = from->shape.dims[first ? 1 + k : 2 + k];
    images.size[3 - positions + k] = made.dims[first ? 2 + k : 1 + k] = size;
  }
  made.dims[first ? 1 : rank - 1] = images.channels;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, from->dtype, &made, &to));
  const struct tfc_cuda_layout a = tfc_cuda_layout_packed(images.size, images.channels, !first),
                               b = tfc_cuda_layout_packed(images.size, images.channels, first);
  TFC_CUDA_LAUNCHED(l, tfc_cuda_images_copy(&images, &a, from->data, &b, to->data, l->stream));
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define FLOATS OPS_BITS(OPS_FLOATS)
#define NORMS (FLOATS & ~(1u << OPS_DT_f64))
#define CONV(op, types, on, variant)                                                                                   \
  {op, types, library_prepare, launch_conv, (on) | TFC_CUDA_VARIANT(variant)},                                         \
      {op, types, loops_constant, launch_conv, (on) | TFC_CUDA_VARIANT(variant)}, {                                    \
    op, types, loops_prepare, launch_conv, TFC_CUDA_NO_CAPTURE | (on) | TFC_CUDA_VARIANT(variant)                      \
  }
#define EITHER(op, types, library, ours, launch, variant)                                                              \
  {op, types, library, launch, TFC_CUDA_VARIANT(variant)}, {                                                           \
    op, types, ours, launch, TFC_CUDA_VARIANT(variant)                                                                 \
  }
#define AVERAGE_GRAD(op, deep)                                                                                         \
  {op, TFC_CUDA_INDEX, pool_library, launch_average_grad,                                                              \
   TFC_CUDA_ON_FLOATS | TFC_CUDA_VARIANT(AVERAGE | GRADIENT | deep)},                                                  \
      {op, TFC_CUDA_INDEX, average_grad_constant, launch_average_grad,                                                 \
       TFC_CUDA_ON_FLOATS | TFC_CUDA_VARIANT(AVERAGE | GRADIENT | deep)},                                              \
  {                                                                                                                    \
    op, TFC_CUDA_INDEX, average_grad_prepare, launch_average_grad,                                                     \
        TFC_CUDA_NO_CAPTURE | TFC_CUDA_ON_FLOATS | TFC_CUDA_VARIANT(AVERAGE | GRADIENT | deep)                         \
  }
static const struct tfc_cuda_kernel image_rows[] = {
    CONV("Conv2D", FLOATS, 0, TFC_CUDA_CONV_FORWARD),
    CONV("Conv2DBackpropInput", TFC_CUDA_INDEX, TFC_CUDA_ON_FLOATS, TFC_CUDA_CONV_INPUT),
    CONV("Conv2DBackpropFilter", FLOATS, 0, TFC_CUDA_CONV_FILTER),
    CONV("DepthwiseConv2dNative", FLOATS, 0, TFC_CUDA_CONV_FORWARD | DEPTHWISE),
    CONV("DepthwiseConv2dNativeBackpropInput", TFC_CUDA_INDEX, TFC_CUDA_ON_FLOATS, TFC_CUDA_CONV_INPUT | DEPTHWISE),
    CONV("DepthwiseConv2dNativeBackpropFilter", FLOATS, 0, TFC_CUDA_CONV_FILTER | DEPTHWISE),
    CONV("_TransposedFilterConvolution", 0, 0, TFC_CUDA_CONV_FORWARD | TRANSPOSED),
    CONV("_TransposedFilterConvolutionGradient", 0, 0, TFC_CUDA_CONV_INPUT | TRANSPOSED),
    CONV("Conv3D", FLOATS, 0, TFC_CUDA_CONV_FORWARD | DEEP),
    CONV("Conv3DBackpropInputV2", TFC_CUDA_INDEX, TFC_CUDA_ON_FLOATS, TFC_CUDA_CONV_INPUT | DEEP),
    CONV("Conv3DBackpropFilterV2", FLOATS, 0, TFC_CUDA_CONV_FILTER | DEEP),
    EITHER("MaxPool", FLOATS, pool_library, pool_prepare, launch_pool, 0),
    EITHER("MaxPool3D", FLOATS, pool_library, pool_prepare, launch_pool, DEEP),
    EITHER("AvgPool", FLOATS, pool_library, pool_prepare, launch_pool, AVERAGE),
    EITHER("AvgPool3D", FLOATS, pool_library, pool_prepare, launch_pool, AVERAGE | DEEP),
    {"MaxPoolGrad", FLOATS, pool_prepare, launch_max_grad, TFC_CUDA_VARIANT(GRADIENT)},
    {"MaxPool3DGrad", FLOATS, pool_prepare, launch_max_grad, TFC_CUDA_ON_FLOATS | TFC_CUDA_VARIANT(GRADIENT | DEEP)},
    AVERAGE_GRAD("AvgPoolGrad", 0),
    AVERAGE_GRAD("AvgPool3DGrad", DEEP),
    EITHER("FusedBatchNorm", NORMS, norm_library, norm_prepare, launch_norm, 0),
    EITHER("FusedBatchNormV2", NORMS, norm_library, norm_prepare, launch_norm, 0),
    EITHER("FusedBatchNormV3", NORMS, norm_library, norm_prepare, launch_norm, 0),
    EITHER("FusedBatchNormGrad", NORMS, norm_library, norm_grad_prepare, launch_norm_grad, GRADIENT),
    EITHER("FusedBatchNormGradV2", NORMS, norm_library, norm_grad_prepare, launch_norm_grad, GRADIENT),
    EITHER("FusedBatchNormGradV3", NORMS, norm_library, norm_grad_prepare, launch_norm_grad, GRADIENT),
    {"_TransposeImage", 0, transposed_prepare, launch_transposed, 0},
    EITHER("LRN", FLOATS, lrn_library, lrn_prepare, launch_lrn, 0),
    EITHER("LRNGrad", FLOATS, lrn_library, lrn_prepare, launch_lrn_grad, GRADIENT),
};
TFC_CUDA_KERNELS(image_rows);
