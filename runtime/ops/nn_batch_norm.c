// Batch normalisation (Ioffe and Szegedy 2015) as TensorFlow's fused ops define it, and its gradient.
//
// x and y are images of any layout, seen as [outer, channels, inner]; scale, offset, mean, variance [channels]. Sums
// are in double. Activations may be half or bfloat16 (type T) with statistics in float (type U).
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/nn_batch_norm_second.h"
#include "runtime/ops/nn_window.h"
#include "runtime/ops/row.h"

struct norm_state {
  bool training, channels_first;
  double epsilon, factor; // factor: the attribute exponential_avg_factor
  int version;            // of the op: 1, 2 or 3
};

static tfc_status norm_prepare(struct tfc_prepare_ctx *ctx) {
  struct norm_state *s = TFC_ARENA_NEW(ctx->arena, struct norm_state);
  if (!s) return tfc_status_no_memory(NULL);
  s->training = tfc_node_attr_bool(ctx->graph, ctx->node, "is_training", true);
  s->epsilon = (double)(float)tfc_node_attr_float(ctx->graph, ctx->node, "epsilon", 0.0001);
  s->factor = (double)(float)tfc_node_attr_float(ctx->graph, ctx->node, "exponential_avg_factor", 1);
  s->channels_first = tfc_str_starts(tfc_node_attr_string(ctx->graph, ctx->node, "data_format", "NHWC"), "NC");
  s->version = tfc_str_ends(ctx->node->op, "V3") ? 3 : tfc_str_ends(ctx->node->op, "V2") ? 2 : 1;
  ctx->state = s;
  return NULL;
}

struct norm {
  const struct norm_state *st;
  int64_t outer, channels, inner;
  tfc_dtype dtype, stat_dtype;
  const void *x, *dy, *scale, *offset, *mean, *variance;
  void *y;                           // y or dx
  void *out_mean, *out_variance;     // the running statistics
  void *saved_mean, *saved_variance; // what the gradient needs
  void *dscale, *doffset;
};

static tfc_status split(const struct tfc_shape *s, bool channels_first, struct norm *n) {
  TFC_KERNEL_CHECK(s->rank == 4 || s->rank == 5, "input must be 4 or 5-dimensional: %s",
                   tfc_shape_show(s, (char[TFC_SHAPE_TEXT]){0}));
  int axis = channels_first ? 1 : s->rank - 1;
  n->outer = n->inner = 1;
  for (int i = 0; i < axis; i++) n->outer *= s->dims[i];
  for (int i = axis + 1; i < s->rank; i++) n->inner *= s->dims[i];
  n->channels = s->dims[axis];
  return NULL;
}

static double stat(const struct norm *n, const void *p, int64_t c) {
  return n->stat_dtype == TFC_DOUBLE ? ((const double *)p)[c] : (double)((const float *)p)[c];
}
static void set_stat(const struct norm *n, void *p, int64_t c, double v) {
  if (!p) return;
  if (n->stat_dtype == TFC_DOUBLE)
    ((double *)p)[c] = v;
  else
    ((float *)p)[c] = (float)v;
}

enum { WIDTH = 32 }; // channels computed at a time, so that memory is read in stretches

// Runs `body` for every element of channels [first, first + count): `v` is the element's index, `k` its channel in the
// group.
#define EACH_ELEMENT(body)                                                                                             \
  if (n->inner == 1) {                                                                                                 \
    for (int64_t o = 0; o < n->outer; o++) {                                                                           \
      const int64_t row = o * n->channels + first;                                                                     \
      for (int64_t k = 0; k < count; k++) {                                                                            \
        const int64_t at = row + k;                                                                                    \
        body                                                                                                           \
      }                                                                                                                \
    }                                                                                                                  \
  } else {                                                                                                             \
    for (int64_t k = 0; k < count; k++)                                                                                \
      for (int64_t o = 0; o < n->outer; o++) {                                                                         \
        const int64_t row = (o * n->channels + first + k) * n->inner;                                                  \
        for (int64_t at = row; at < row + n->inner; at++) {                                                            \
          body                                                                                                         \
        }                                                                                                              \
      }                                                                                                                \
  }

OPS_CLONES static void forward(void *arg, int64_t begin, int64_t end) {
  const struct norm *n = arg;
  const int64_t rest = n->outer * n->inner;
  OPS_SWITCH(OPS_FLOATS, n->dtype, {
    const S *x = n->x;
    S *y = n->y;
    for (int64_t first = begin; first < end; first += WIDTH) {
      const int64_t count = end - first < WIDTH ? end - first : WIDTH;
      double mean[WIDTH] = {0}, variance[WIDTH] = {0};
      C scale[WIDTH], shift[WIDTH], center[WIDTH];
      if (n->st->training) {
        EACH_ELEMENT({ mean[k] += (double)OPS_GET(x[at]); })
        for (int64_t k = 0; k < count; k++) mean[k] /= (double)rest;
        EACH_ELEMENT({
          const double d = (double)OPS_GET(x[at]) - mean[k];
          variance[k] += d * d;
        })
        for (int64_t k = 0; k < count; k++) {
          const int64_t c = first + k;
          variance[k] /= (double)rest;
          double unbiased = rest > 1 ? variance[k] * ((double)rest / (double)(rest - 1)) : variance[k],
                 f = n->st->factor;
          set_stat(n, n->saved_mean, c, mean[k]);
          set_stat(n, n->saved_variance, c, variance[k]);
          if (f == 1) {
            set_stat(n, n->out_mean, c, mean[k]);
            set_stat(n, n->out_variance, c, unbiased);
          } else {
            set_stat(n, n->out_mean, c, (1 - f) * stat(n, n->mean, c) + f * mean[k]);
            set_stat(n, n->out_variance, c, (1 - f) * stat(n, n->variance, c) + f * unbiased);
          }
        }
      } else {
        for (int64_t k = 0; k < count; k++) {
          mean[k] = stat(n, n->mean, first + k);
          variance[k] = stat(n, n->variance, first + k);
          set_stat(n, n->out_mean, first + k, mean[k]);
          set_stat(n, n->out_variance, first + k, variance[k]);
          set_stat(n, n->saved_mean, first + k, mean[k]);
          set_stat(n, n->saved_variance, first + k, variance[k]);
        }
      }
      for (int64_t k = 0; k < count; k++) {
        scale[k] = (C)(stat(n, n->scale, first + k) / sqrt(variance[k] + n->st->epsilon));
        shift[k] = (C)stat(n, n->offset, first + k);
        center[k] = (C)mean[k];
      }
      EACH_ELEMENT({ OPS_PUT(y[at], (OPS_GET(x[at]) - center[k]) * scale[k] + shift[k]); })
    }
  })
}

// With r = 1 / sqrt(variance + epsilon) and centered = x - mean:
//   dscale = sum(dy centered) r, doffset = sum(dy)
//   training: dx = scale r (dy - mean(dy) - centered r^2 mean(dy centered)); else dx = dy scale r
OPS_CLONES static void backward(void *arg, int64_t begin, int64_t end) {
  const struct norm *n = arg;
  const double rest = (double)(n->outer * n->inner);
  OPS_SWITCH(OPS_FLOATS, n->dtype, {
    const S *x = n->x, *dy = n->dy;
    S *dx = n->y;
    for (int64_t first = begin; first < end; first += WIDTH) {
      const int64_t count = end - first < WIDTH ? end - first : WIDTH;
      double mean[WIDTH], r[WIDTH], sum[WIDTH] = {0}, product[WIDTH] = {0};
      for (int64_t k = 0; k < count; k++) {
        mean[k] = stat(n, n->mean, first + k);
        r[k] = 1 / sqrt(stat(n, n->variance, first + k) + n->st->epsilon);
      }
      EACH_ELEMENT({
        const double g = (double)OPS_GET(dy[at]);
        sum[k] += g;
        product[k] += g * ((double)OPS_GET(x[at]) - mean[k]);
      })
      C factor[WIDTH], less[WIDTH], slope[WIDTH], center[WIDTH];
      for (int64_t k = 0; k < count; k++) {
        set_stat(n, n->dscale, first + k, product[k] * r[k]);
        set_stat(n, n->doffset, first + k, sum[k]);
        factor[k] = (C)(stat(n, n->scale, first + k) * r[k]);
        center[k] = (C)mean[k];
        less[k] = n->st->training ? (C)(sum[k] / rest) : 0;
        slope[k] = n->st->training ? (C)(r[k] * r[k] * product[k] / rest) : 0;
      }
      if (n->st->training)
        EACH_ELEMENT(
            { OPS_PUT(dx[at], factor[k] * (OPS_GET(dy[at]) - less[k] - (OPS_GET(x[at]) - center[k]) * slope[k])); })
      else
        EACH_ELEMENT({ OPS_PUT(dx[at], factor[k] * OPS_GET(dy[at])); })
    }
  })
}

static tfc_status check_vector(const struct tfc_tensor *t, int64_t channels, const char *what) {
  TFC_KERNEL_CHECK(t->shape.rank == 1 && t->shape.dims[0] == channels,
                   "%s must be a vector with as many elements as x has channels (%lld), but is %s", what,
                   (long long)channels, tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}

static void fill_nan(const struct norm *n, void *p) {
  for (int64_t c = 0; c < n->channels; c++) set_stat(n, p, c, NAN);
}

// Inputs: x, scale, offset, mean, variance; outputs: y, batch_mean, batch_variance, reserve_space_1, _2 (, _3).
static tfc_status batch_norm(struct tfc_kernel_ctx *ctx) {
  const struct norm_state *st = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct norm n = {.st = st, .dtype = x->dtype, .stat_dtype = ctx->inputs[1]->dtype};
  TFC_RETURN_IF_ERROR(split(&x->shape, st->channels_first, &n));
  struct tfc_shape vector = TFC_SHAPE(n.channels);
  struct tfc_tensor *y = NULL, *stats[4], *third = NULL;
  TFC_RETURN_IF_ERROR(check_vector(ctx->inputs[1], n.channels, "scale"));
  TFC_RETURN_IF_ERROR(check_vector(ctx->inputs[2], n.channels, "offset"));
  for (uint32_t i = 3; i < 5; i++) {
    const char *what = i == 3 ? "mean" : "variance";
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 1, "estimated_%s must be 1-dimensional", what);
    if (!st->training || st->factor != 1) TFC_RETURN_IF_ERROR(check_vector(ctx->inputs[i], n.channels, what));
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  for (uint32_t i = 0; i < 4; i++) TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i + 1, n.stat_dtype, &vector, &stats[i]));
  if (ctx->output_count > 5) {
    // cuDNN keeps something here for the gradient; on other devices it is a scalar that no operation reads
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 5, n.stat_dtype, &TFC_SHAPE_SCALAR, &third));
    memset(third->data, 0, third->size);
  }
  n.x = x->data, n.y = y->data;
  n.scale = ctx->inputs[1]->data, n.offset = ctx->inputs[2]->data;
  n.mean = ctx->inputs[3]->data, n.variance = ctx->inputs[4]->data;
  n.out_mean = stats[0]->data, n.out_variance = stats[1]->data;
  n.saved_mean = stats[2]->data, n.saved_variance = stats[3]->data;
  if (tfc_tensor_elements(x) == 0) {
    for (int i = 0; i < 4; i++) fill_nan(&n, stats[i]->data);
    return NULL;
  }
  tfc_kernel_parallel_for(ctx, n.channels, WIDTH, forward, &n);
  return NULL;
}

// Inputs: dy, x, scale, reserve_space_1, reserve_space_2 (, _3); outputs: dx, dscale, doffset, and two that no
// operation reads.
static tfc_status batch_norm_grad(struct tfc_kernel_ctx *ctx) {
  const struct norm_state *st = ctx->state;
  const struct tfc_tensor *dy = ctx->inputs[0], *x = ctx->inputs[1];
  struct norm n = {.st = st, .dtype = x->dtype, .stat_dtype = ctx->inputs[3]->dtype};
  TFC_RETURN_IF_ERROR(split(&x->shape, st->channels_first, &n));
  TFC_KERNEL_CHECK(tfc_shape_equal(&dy->shape, &x->shape), "x and y_backprop must have same shape");
  TFC_RETURN_IF_ERROR(check_vector(ctx->inputs[2], n.channels, "scale"));
  TFC_RETURN_IF_ERROR(check_vector(ctx->inputs[3], n.channels, "reserve_space_1"));
  TFC_RETURN_IF_ERROR(check_vector(ctx->inputs[4], n.channels, "reserve_space_2"));
  struct tfc_shape vector = TFC_SHAPE(n.channels);
  struct tfc_tensor *dx = NULL, *dscale = NULL, *doffset = NULL, *rest = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &dx));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, n.stat_dtype, &vector, &dscale));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2, n.stat_dtype, &vector, &doffset));
  for (uint32_t i = 3; i < 5; i++) TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, n.stat_dtype, &TFC_SHAPE(0), &rest));
  if (tfc_tensor_elements(x) == 0) {
    memset(dscale->data, 0, dscale->size);
    memset(doffset->data, 0, doffset->size);
    return NULL;
  }
  // `scale` is float here and the statistics have type U, which is also float on all devices except for double.
  n.x = x->data, n.dy = dy->data, n.y = dx->data;
  n.scale = ctx->inputs[2]->data, n.mean = ctx->inputs[3]->data, n.variance = ctx->inputs[4]->data;
  n.dscale = dscale->data, n.doffset = doffset->data;
  tfc_kernel_parallel_for(ctx, n.channels, WIDTH, backward, &n);
  return NULL;
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static tfc_status image(struct tfc_shape_ctx *ctx, uint32_t i, struct tfc_shape *out, int *out_axis) {
  bool first = tfc_str_starts(tfc_node_attr_string(ctx->graph, ctx->node, "data_format", "NHWC"), "NC");
  *out = *ctx->inputs[i];
  tfc_str format = tfc_node_attr_string(ctx->graph, ctx->node, "data_format", "NHWC");
  int rank = format.size == 5 ? 5 : 4;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, rank, out));
  *out_axis = first ? 1 : rank - 1;
  return NULL;
}
static tfc_status shape_batch_norm(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, vector;
  int axis;
  TFC_RETURN_IF_ERROR(image(ctx, 0, &x, &axis));
  bool training = tfc_node_attr_bool(ctx->graph, ctx->node, "is_training", true) &&
                  tfc_node_attr_float(ctx->graph, ctx->node, "exponential_avg_factor", 1) == 1;
  for (uint32_t i = 1; i < (training ? 3u : 5u); i++) {
    TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, 1, &vector));
    TFC_RETURN_IF_ERROR(tfc_dim_merge(x.dims[axis], vector.dims[0], &x.dims[axis]));
  }
  ctx->outputs[0] = x;
  for (uint32_t i = 1; i < 5; i++) ctx->outputs[i] = TFC_SHAPE(x.dims[axis]);
  if (ctx->node->output_count > 5) ctx->outputs[5] = TFC_SHAPE_UNKNOWN;
  return NULL;
}
static tfc_status shape_batch_norm_grad(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, dy, vector;
  int axis;
  TFC_RETURN_IF_ERROR(image(ctx, 0, &dy, &axis));
  TFC_RETURN_IF_ERROR(image(ctx, 1, &x, &axis));
  TFC_RETURN_IF_ERROR(tfc_shape_merge(&x, &dy, &ctx->outputs[0]));
  x = ctx->outputs[0];
  for (uint32_t i = 2; i < 5; i++) {
    TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, 1, &vector));
    TFC_RETURN_IF_ERROR(tfc_dim_merge(x.dims[axis], vector.dims[0], &x.dims[axis]));
  }
  ctx->outputs[0] = x;
  ctx->outputs[1] = ctx->outputs[2] = TFC_SHAPE(x.dims[axis]);
  ctx->outputs[3] = ctx->outputs[4] = TFC_SHAPE(0);
  return NULL;
}

// --- Gradient ----------------------------------------------------------------------------------------------------
static struct tfc_output transpose(const struct tfc_grad_ctx *c, struct tfc_output x, const int32_t *order,
                                   uint32_t n) {
  return tfc_add2(c->builder, "Transpose", x, tfc_add_i32_vector(c->builder, order, n));
}
static tfc_status grad_of_batch_norm(struct tfc_grad_ctx *c) {
  static const int32_t last4[] = {0, 2, 3, 1}, first4[] = {0, 3, 1, 2};
  static const int32_t last5[] = {0, 2, 3, 4, 1}, first5[] = {0, 4, 1, 2, 3};
  tfc_str op = tfc_builder_node(c->builder, c->node)->op;
  const char *grad_op = tfc_str_ends(op, "V3")   ? "FusedBatchNormGradV3"
                        : tfc_str_ends(op, "V2") ? "FusedBatchNormGradV2"
                                                 : "FusedBatchNormGrad";
  bool v3 = tfc_str_ends(op, "V3"), training = grad_attr_bool(c, "is_training", true);
  const struct tfc_attr *format = grad_attr(c, "data_format");
  tfc_str layout = format && format->kind == TFC_ATTR_STRING ? format->s : TFC_STR("NHWC");
  struct tfc_output x = grad_in(c, 0), dy = c->grad_outputs[0], dx;
  uint32_t rank = layout.size == 5 ? 5 : 4;
  // For frozen statistics, TensorFlow computes with channels last.
  bool transposed = !training && tfc_str_starts(layout, "NC");
  if (transposed) {
    x = transpose(c, x, rank == 5 ? last5 : last4, rank);
    dy = transpose(c, dy, rank == 5 ? last5 : last4, rank);
  }
  struct tfc_output inputs[6] = {dy, x, grad_in(c, 1), training ? grad_out(c, 3) : grad_in(c, 3),
                                 training ? grad_out(c, 4) : grad_in(c, 4)};
  if (v3) inputs[5] = grad_out(c, 5);
  struct tfc_attr attrs[3] = {
      tfc_attr_float("epsilon", grad_attr_float(c, "epsilon", 0.0001)), tfc_attr_bool("is_training", training),
      tfc_attr_string("data_format", transposed ? (rank == 5 ? TFC_STR("NDHWC") : TFC_STR("NHWC")) : layout)};
  dx = tfc_add(c->builder, grad_op, NULL, inputs, v3 ? 6 : 5, attrs, 3);
  c->grad_inputs[1] = (struct tfc_output){dx.node, 1};
  c->grad_inputs[2] = (struct tfc_output){dx.node, 2};
  if (transposed) dx = transpose(c, dx, rank == 5 ? first5 : first4, rank);
  c->grad_inputs[0] = dx;
  return grad_status(c);
}

static void cost_forward(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                         const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  int64_t count = tfc_shape_elements(&outputs[0]);
  out->flops = count > 0 ? 7 * (double)count : 0;
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
}

#define FORWARD                                                                                                        \
  .flags = TFC_OP_INPLACE, .role = TFC_ROLE_BATCH_NORM, .images = {.inputs = 1, .outputs = 1},                         \
  .types = OPS_BITS(OPS_FLOATS), .shape = shape_batch_norm, .gradient = grad_of_batch_norm, .cost = cost_forward,      \
  .prepare = norm_prepare, .kernel = batch_norm
#define BACKWARD                                                                                                       \
  .flags = TFC_OP_INPLACE, .images = {.inputs = 3, .outputs = 1}, .types = OPS_BITS(OPS_FLOATS),                       \
  .shape = shape_batch_norm_grad, .cost = cost_forward, .gradient = ops_grad_batch_norm_grad, .prepare = norm_prepare, \
  .kernel = batch_norm_grad
#define SAMPLES "float[2,3,3,4], float[4], float[4], float[0], float[0]"
static const struct tfc_op_def nn_batch_norm_rows[] = {
    {.name = "FusedBatchNorm",
     .inputs = "x: T, scale: T, offset: T, mean: T, variance: T",
     .outputs = "y: T, batch_mean: T, batch_variance: T, reserve_space_1: T, reserve_space_2: T",
     .attrs = "T: {float}, epsilon: float = 9.999999747378752e-05, exponential_avg_factor: float = 1, data_format: "
              "{'NHWC', 'NCHW'} = 'NHWC', is_training: bool = true",
     FORWARD,
     .samples = SAMPLES},
    {.name = "FusedBatchNormV2",
     .inputs = "x: T, scale: U, offset: U, mean: U, variance: U",
     .outputs = "y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U",
     .attrs = "T: {half, bfloat16, float}, U: {float}, epsilon: float = 9.999999747378752e-05, exponential_avg_factor: "
              "float = 1, data_format: {'NHWC', 'NCHW'} = 'NHWC', is_training: bool = true",
     FORWARD,
     .samples = SAMPLES},
    {.name = "FusedBatchNormV3",
     .inputs = "x: T, scale: U, offset: U, mean: U, variance: U",
     .outputs = "y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U",
     .attrs = "T: {half, bfloat16, float}, U: {bfloat16, float}, epsilon: float = 9.999999747378752e-05, "
              "exponential_avg_factor: float = 1, data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC', "
              "is_training: bool = true",
     FORWARD,
     .samples = SAMPLES},
    {.name = "FusedBatchNormGrad",
     .inputs = "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T",
     .outputs = "x_backprop: T, scale_backprop: T, offset_backprop: T, reserve_space_3: T, reserve_space_4: T",
     .attrs = "T: {float}, epsilon: float = 9.999999747378752e-05, data_format: {'NHWC', 'NCHW'} = 'NHWC', "
              "is_training: bool = true",
     BACKWARD},
    {.name = "FusedBatchNormGradV2",
     .inputs = "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U",
     .outputs = "x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_3: U, reserve_space_4: U",
     .attrs = "T: {half, bfloat16, float}, U: {float}, epsilon: float = 9.999999747378752e-05, data_format: {'NHWC', "
              "'NCHW'} = 'NHWC', is_training: bool = true",
     BACKWARD},
    {.name = "FusedBatchNormGradV3",
     .inputs = "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U",
     .outputs = "x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_4: U, reserve_space_5: U",
     .attrs = "T: {half, bfloat16, float}, U: {float}, epsilon: float = 9.999999747378752e-05, data_format: {'NHWC', "
              "'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC', is_training: bool = true",
     BACKWARD},
};
TFC_REGISTER_OPS(nn_batch_norm_rows);
