// Softmax and the cross entropies that contain it, row by row: the largest logit is subtracted first; sums are in
// double.
//
// logits [batch, classes]; loss [batch]; backprop [batch, classes] is d loss / d logits.
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_narrow.h"
#include "runtime/ops/math_softmax.h"
#include "runtime/ops/row.h"

struct rows {
  const void *logits, *labels;
  void *out, *loss;
  int64_t classes;
  int64_t logits_row, logits_column, labels_row, labels_column; // strides; 0: broadcast
  tfc_dtype dtype, label_dtype;
  bool log;
};

static int64_t rows_per_piece(int64_t classes) {
  return classes >= 4096 ? 1 : 4096 / (classes + 1) + 1;
}

static void float_softmax_rows(const struct rows *r, int64_t begin, int64_t end) {
  const int64_t n = r->classes;
  for (int64_t row = begin; row < end; row++) {
    const float *x = (const float *)r->logits + row * n;
    float *y = (float *)r->out + row * n, max = ops_softmax_max(x, n);
    double sum = ops_softmax_sum(x, max, r->log ? NULL : y, n);
    if (r->log) {
      const float log_sum = (float)log(sum);
      for (int64_t i = 0; i < n; i++) y[i] = x[i] - max - log_sum;
    } else {
      ops_softmax_scale(y, (float)(1 / sum), n);
    }
  }
}

// Softmax of rows of 16-bit floats, in blocks of float32. A row of at most one block is converted once. A longer row is
// converted again in each loop: its exponentials cannot be kept in the 16-bit output, because they would be rounded
// before they are divided by the sum.
enum { narrow_block = 2048 };
static void narrow_softmax_rows(const struct rows *r, int64_t begin, int64_t end) {
  const int64_t n = r->classes;
  float block[narrow_block];
  for (int64_t row = begin; row < end; row++) {
    const uint16_t *x = (const uint16_t *)r->logits + row * n;
    uint16_t *y = (uint16_t *)r->out + row * n;
    float max = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < n; i += narrow_block) {
      const int64_t m = n - i < narrow_block ? n - i : narrow_block;
      ops_narrow_to_float(r->dtype, x + i, block, m);
      const float most = ops_softmax_max(block, m);
      max = most > max || isnan(most) ? most : max;
    }
    for (int64_t i = 0; i < n; i += narrow_block) {
      const int64_t m = n - i < narrow_block ? n - i : narrow_block;
      if (n > narrow_block) ops_narrow_to_float(r->dtype, x + i, block, m);
      sum += ops_softmax_sum(block, max, n > narrow_block || r->log ? NULL : block, m);
    }
    const float log_sum = r->log ? (float)log(sum) : 0, scale = (float)(1 / sum);
    for (int64_t i = 0; i < n; i += narrow_block) {
      const int64_t m = n - i < narrow_block ? n - i : narrow_block;
      if (n > narrow_block) ops_narrow_to_float(r->dtype, x + i, block, m);
      if (r->log) {
        for (int64_t k = 0; k < m; k++) block[k] = block[k] - max - log_sum;
      } else {
        if (n > narrow_block) (void)ops_softmax_sum(block, max, block, m);
        ops_softmax_scale(block, scale, m);
      }
      ops_narrow_from_float(r->dtype, block, y + i, m);
    }
  }
}

static void softmax_rows(void *arg, int64_t begin, int64_t end) {
  const struct rows *r = arg;
  const int64_t n = r->classes;
  if (r->dtype != TFC_DOUBLE) {
    (r->dtype == TFC_FLOAT ? float_softmax_rows : narrow_softmax_rows)(r, begin, end);
    return;
  }
  for (int64_t row = begin; row < end; row++) {
    const double *x = (const double *)r->logits + row * n;
    double *y = (double *)r->out + row * n, max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) max = x[i] > max || isnan(x[i]) ? x[i] : max;
    for (int64_t i = 0; i < n; i++) {
      const double e = exp(x[i] - max);
      y[i] = r->log ? x[i] - max : e;
      sum += e;
    }
    const double log_sum = log(sum), scale = 1 / sum;
    for (int64_t i = 0; i < n; i++) y[i] = r->log ? y[i] - log_sum : y[i] * scale;
  }
}

static tfc_status softmax_of(struct tfc_kernel_ctx *ctx, bool log) {
  const struct tfc_tensor *x = ctx->inputs[0];
  TFC_KERNEL_CHECK(x->shape.rank >= 1, "logits must have >= 1 dimension, got %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  int64_t classes = x->shape.dims[x->shape.rank - 1], total = tfc_tensor_elements(x);
  if (total == 0) return NULL;
  struct rows r = {.logits = x->data, .out = y->data, .classes = classes, .dtype = x->dtype, .log = log};
  tfc_kernel_parallel_for(ctx, total / classes, rows_per_piece(classes), softmax_rows, &r);
  return NULL;
}
static tfc_status softmax(struct tfc_kernel_ctx *ctx) {
  return softmax_of(ctx, false);
}
static tfc_status log_softmax(struct tfc_kernel_ctx *ctx) {
  return softmax_of(ctx, true);
}

// Writes exp(logits - max) to `out` and computes max and sum.
#define EXPONENTIALS(x, column, out, max, sum)                                                                         \
  C max = (C)-INFINITY;                                                                                                \
  double sum = 0;                                                                                                      \
  for (int64_t i = 0; i < n; i++) {                                                                                    \
    const C v = OPS_GET(x[i * column]);                                                                                \
    max = v > max || isnan(v) ? v : max;                                                                               \
  }                                                                                                                    \
  for (int64_t i = 0; i < n; i++) sum += (double)exp(OPS_GET(x[i * column]) - max);

static void dense_rows(void *arg, int64_t begin, int64_t end) {
  const struct rows *r = arg;
  const int64_t n = r->classes, xc = r->logits_column, lc = r->labels_column;
  OPS_SWITCH(OPS_FLOATS, r->dtype, {
    for (int64_t row = begin; row < end; row++) {
      const S *x = (const S *)r->logits + row * r->logits_row;
      const S *label = (const S *)r->labels + row * r->labels_row;
      S *back = (S *)r->out + row * n;
      EXPONENTIALS(x, xc, back, max, sum)
      const C log_sum = (C)log(sum);
      const C scale = (C)(1 / sum);
      double loss = 0;
      for (int64_t i = 0; i < n; i++) {
        const C v = OPS_GET(x[i * xc]) - max, p = OPS_GET(label[i * lc]);
        if (p != (C)0 || isnan(v)) loss += (double)(p * (log_sum - v));
        OPS_PUT(back[i], exp(v) * scale - p);
      }
      OPS_PUT(((S *)r->loss)[row], loss);
    }
  })
}

// Returns a shape of at most two dimensions, with ones in front up to two.
static struct tfc_shape matrix_of(const struct tfc_shape *s) {
  return s->rank == 2 ? *s : TFC_SHAPE(1, s->rank == 1 ? s->dims[0] : 1);
}

static tfc_status cross_entropy(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *labels = ctx->inputs[1];
  struct tfc_shape shape, xs = matrix_of(&x->shape), ls = matrix_of(&labels->shape);
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&x->shape, &labels->shape, &shape));
  TFC_KERNEL_CHECK(shape.rank == 2,
                   "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional");
  struct tfc_tensor *loss = NULL, *back = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &TFC_SHAPE(shape.dims[0]), &loss));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, x->dtype, &shape, &back));
  int64_t classes = shape.dims[1];
  struct rows r = {.logits = x->data,
                   .labels = labels->data,
                   .out = back->data,
                   .loss = loss->data,
                   .classes = classes,
                   .logits_row = xs.dims[0] == 1 ? 0 : xs.dims[1],
                   .logits_column = xs.dims[1] == 1 ? 0 : 1,
                   .labels_row = ls.dims[0] == 1 ? 0 : ls.dims[1],
                   .labels_column = ls.dims[1] == 1 ? 0 : 1,
                   .dtype = x->dtype};
  if (shape.dims[0] == 0) return NULL;
  TFC_KERNEL_CHECK(classes > 0, "Must have at least one class");
  tfc_kernel_parallel_for(ctx, shape.dims[0], rows_per_piece(classes), dense_rows, &r);
  return NULL;
}

static int64_t label_of(const struct rows *r, int64_t row) {
  return r->label_dtype == TFC_INT32 ? ((const int32_t *)r->labels)[row] : ((const int64_t *)r->labels)[row];
}

static void float_sparse_rows(const struct rows *r, int64_t begin, int64_t end) {
  const int64_t n = r->classes;
  for (int64_t row = begin; row < end; row++) {
    const float *x = (const float *)r->logits + row * n;
    const int64_t label = label_of(r, row);
    float *back = (float *)r->out + row * n, max = ops_softmax_max(x, n), own = x[label];
    double sum = ops_softmax_sum(x, max, back, n);
    ops_softmax_scale(back, (float)(1 / sum), n);
    back[label] -= 1;
    ((float *)r->loss)[row] = (float)log(sum) - (own - max);
  }
}

static void sparse_rows(void *arg, int64_t begin, int64_t end) {
  const struct rows *r = arg;
  const int64_t n = r->classes;
  if (r->dtype == TFC_FLOAT) {
    float_sparse_rows(r, begin, end);
    return;
  }
  OPS_SWITCH(OPS_FLOATS, r->dtype, {
    for (int64_t row = begin; row < end; row++) {
      const S *x = (const S *)r->logits + row * n;
      S *back = (S *)r->out + row * n;
      const int64_t label = label_of(r, row);
      EXPONENTIALS(x, 1, back, max, sum)
      const C scale = (C)(1 / sum);
      for (int64_t i = 0; i < n; i++) OPS_PUT(back[i], exp(OPS_GET(x[i]) - max) * scale - (C)(i == label));
      OPS_PUT(((S *)r->loss)[row], (C)log(sum) - (OPS_GET(x[label]) - max));
    }
  })
}

// Makes the output for the gradient of the logits, in their own memory if there is no other reference to it: each row
// is read before it is written.
static tfc_status gradient_of_logits(struct tfc_kernel_ctx *ctx, struct tfc_tensor **out) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_buffer *b = ctx->reusable & 1 && x->dtype == TFC_FLOAT ? x->buffer : NULL;
  if (!b || x->data != b->data || atomic_load_explicit(&b->references, memory_order_acquire) != 1)
    return tfc_kernel_output_like(ctx, 1, x, out);
  tfc_buffer_written(b);
  *out = ctx->outputs[1];
  return tfc_kernel_set_output(ctx, 1, x);
}

static tfc_status sparse_cross_entropy(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *labels = ctx->inputs[1];
  TFC_KERNEL_CHECK(x->shape.rank == 2, "logits must be 2-D, but got shape %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(labels->shape.rank == 1, "labels must be 1-D, but got shape %s",
                   tfc_shape_show(&labels->shape, (char[TFC_SHAPE_TEXT]){0}));
  int64_t batch = x->shape.dims[0], classes = x->shape.dims[1];
  TFC_KERNEL_CHECK(labels->shape.dims[0] == batch, "logits %s and labels %s must have the same first dimension",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&labels->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(classes > 0, "Must have at least one class, but got logits shape %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  for (int64_t i = 0; i < batch; i++) {
    int64_t label = tfc_tensor_int(labels, i);
    TFC_KERNEL_CHECK(label >= 0 && label < classes,
                     "Received a label value of %lld which is outside the valid range of [0, %lld)", (long long)label,
                     (long long)classes);
  }
  struct tfc_tensor *loss = NULL, *back = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &TFC_SHAPE(batch), &loss));
  TFC_RETURN_IF_ERROR(gradient_of_logits(ctx, &back));
  struct rows r = {.logits = x->data,
                   .labels = labels->data,
                   .out = back->data,
                   .loss = loss->data,
                   .classes = classes,
                   .dtype = x->dtype,
                   .label_dtype = labels->dtype};
  tfc_kernel_parallel_for(ctx, batch, rows_per_piece(classes), sparse_rows, &r);
  return NULL;
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static tfc_status shape_softmax(struct tfc_shape_ctx *ctx) {
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 1, NULL));
  return ops_shape_same(ctx);
}
static tfc_status shape_cross_entropy(struct tfc_shape_ctx *ctx) {
  struct tfc_shape shape; // the same shape, or otherwise broadcast
  tfc_status s = tfc_shape_merge(ctx->inputs[0], ctx->inputs[1], &shape);
  if (s) {
    tfc_status_free(s);
    TFC_RETURN_IF_ERROR(tfc_shape_broadcast(ctx->inputs[0], ctx->inputs[1], &shape));
  }
  if (shape.rank < 0) shape = tfc_shape_unknown_of_rank(2);
  if (shape.rank != 2)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "logits and labels must be 2-dimensional, but are %s",
                           tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}));
  ctx->outputs[0] = TFC_SHAPE(shape.dims[0]);
  ctx->outputs[1] = shape;
  return NULL;
}
static tfc_status shape_sparse_cross_entropy(struct tfc_shape_ctx *ctx) {
  struct tfc_shape logits, labels;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &logits));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &labels));
  TFC_RETURN_IF_ERROR(tfc_dim_merge(logits.dims[0], labels.dims[0], &logits.dims[0]));
  ctx->outputs[0] = TFC_SHAPE(logits.dims[0]);
  ctx->outputs[1] = logits;
  return NULL;
}

// --- Gradients ---------------------------------------------------------------------------------------------------
static struct tfc_output sum_last(struct tfc_builder *b, struct tfc_output x) {
  struct tfc_attr keep = tfc_attr_bool("keep_dims", true);
  return tfc_add(b, "Sum", NULL, TFC_OUTPUTS(x, tfc_add_i32_vector(b, (int32_t[]){-1}, 1)), &keep, 1);
}
static tfc_status grad_of_softmax(struct tfc_grad_ctx *c) { // (dy - sum(dy y)) y
  struct tfc_builder *b = c->builder;
  struct tfc_output dy = c->grad_outputs[0], y = grad_out(c, 0);
  struct tfc_output sum = sum_last(b, tfc_add2(b, "Mul", dy, y));
  c->grad_inputs[0] = tfc_add2(b, "Mul", tfc_add2(b, "Sub", dy, sum), y);
  return grad_status(c);
}
static tfc_status grad_of_log_softmax(struct tfc_grad_ctx *c) { // dy - sum(dy) exp(y)
  struct tfc_builder *b = c->builder;
  struct tfc_output dy = c->grad_outputs[0], softmax_ = tfc_add1(b, "Exp", grad_out(c, 0));
  c->grad_inputs[0] = tfc_add2(b, "Sub", dy, tfc_add2(b, "Mul", sum_last(b, dy), softmax_));
  return grad_status(c);
}
// [batch] times [batch, classes]
static struct tfc_output scale_rows(struct tfc_builder *b, struct tfc_output vector, struct tfc_output matrix) {
  return tfc_add2(b, "Mul", tfc_add2(b, "ExpandDims", vector, tfc_add_i32(b, -1)), matrix);
}
static tfc_status cross_entropy_gradient(struct tfc_grad_ctx *c, bool labels) {
  struct tfc_builder *b = c->builder;
  struct tfc_output dloss = c->grad_outputs[0], dback = c->grad_outputs[1], logits = grad_in(c, 0);
  struct tfc_output g = TFC_NO_OUTPUT;
  if (tfc_output_valid(dloss)) g = scale_rows(b, dloss, grad_out(c, 1));
  if (!grad_is_zero(c, dback)) { // the backprop output's gradient goes back through its softmax
    struct tfc_output p = tfc_add1(b, "Softmax", logits);
    struct tfc_output product = tfc_add2(b, "BatchMatMulV2", tfc_add2(b, "ExpandDims", dback, tfc_add_i32(b, 1)),
                                         tfc_add2(b, "ExpandDims", p, tfc_add_i32(b, 2)));
    struct tfc_attr squeezed = {
        .name = TFC_STR("squeeze_dims"), .kind = TFC_ATTR_LIST_INT, .count = 1, .ints = (int64_t[]){1}};
    struct tfc_output inner = tfc_add(b, "Squeeze", NULL, &product, 1, &squeezed, 1);
    struct tfc_output second = tfc_add2(b, "Mul", tfc_add2(b, "Sub", dback, inner), p);
    g = tfc_output_valid(g) ? tfc_add2(b, "AddV2", g, second) : second;
  }
  c->grad_inputs[0] = g;
  if (labels && tfc_output_valid(dloss))
    c->grad_inputs[1] = scale_rows(b, dloss, tfc_add1(b, "Neg", tfc_add1(b, "LogSoftmax", logits)));
  return grad_status(c);
}
static tfc_status grad_of_cross_entropy(struct tfc_grad_ctx *c) {
  return cross_entropy_gradient(c, true);
}
static tfc_status grad_of_sparse_cross_entropy(struct tfc_grad_ctx *c) {
  return cross_entropy_gradient(c, false);
}

static void cost_rows(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  int64_t count = tfc_shape_elements(&inputs[0]);
  out->flops = count > 0 ? 5 * (double)count : 0;
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
}

static const struct tfc_op_def nn_softmax_rows[] = {
    {.name = "Softmax",
     .plan_trait = TFC_PLAN_SOFTMAX,
     .inputs = "logits: T",
     .outputs = "softmax: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .flags = TFC_OP_INPLACE,
     .types = OPS_BITS(OPS_FLOATS),
     .shape = shape_softmax,
     .gradient = grad_of_softmax,
     .cost = cost_rows,
     .kernel = softmax,
     .samples = "float[3,4]; float[0,3]; float[2,3,5]; double[7]; half[2,9]"},
    {.name = "LogSoftmax",
     .plan_trait = TFC_PLAN_LOG_SOFTMAX,
     .inputs = "logits: T",
     .outputs = "logsoftmax: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .flags = TFC_OP_INPLACE,
     .types = OPS_BITS(OPS_FLOATS),
     .shape = shape_softmax,
     .gradient = grad_of_log_softmax,
     .cost = cost_rows,
     .kernel = log_softmax,
     .samples = "float[3,4]; float[0,3]; float[2,3,5]; double[7]; half[2,9]"},
    {.name = "SoftmaxCrossEntropyWithLogits",
     .inputs = "features: T, labels: T",
     .outputs = "loss: T, backprop: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .types = OPS_BITS(OPS_FLOATS),
     .shape = shape_cross_entropy,
     .gradient = grad_of_cross_entropy,
     .cost = cost_rows,
     .kernel = cross_entropy,
     .samples = "float[3,4], float[3,4]; double[2,5], double[2,5]; float[3,4], float[1,4]; float[0,4], float[0,4]"},
    {.name = "SparseSoftmaxCrossEntropyWithLogits",
     .role = TFC_ROLE_CROSS_ENTROPY,
     .inputs = "features: T, labels: Tlabels",
     .outputs = "loss: T, backprop: T",
     .attrs = "T: {half, bfloat16, float, double}, Tlabels: {int32, int64} = int64",
     .types = OPS_BITS(OPS_FLOATS),
     .index_use = TFC_INDEX_CLASSES,
     .shape = shape_sparse_cross_entropy,
     .gradient = grad_of_sparse_cross_entropy,
     .cost = cost_rows,
     .kernel = sparse_cross_entropy},
};
TFC_REGISTER_OPS(nn_softmax_rows);
