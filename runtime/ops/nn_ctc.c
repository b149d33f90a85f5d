// CTCLoss (Graves et al. 2006): the negative log probability that unaligned class scores are read as a given sequence
// of labels, and its gradient, by the forward-backward algorithm in logarithms.
//
// inputs [time, batch, classes] (the last class is the blank), labels_indices [n, 2] of (batch, position),
// labels_values [n], sequence_length [batch] -> loss [batch], gradient like inputs.
#include <stdlib.h>
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

static double log_add(double a, double b) {
  if (a == -INFINITY) return b;
  if (b == -INFINITY) return a;
  return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

struct ctc {
  int64_t time, batch, classes;
  bool collapse, merge, ignore_longer;
};
struct work {           // arrays for one sequence
  int64_t *labels;      // [2 n + 1]: the labels with blanks before, between and behind them
  double *y;            // [time, classes] probabilities
  double *alpha, *beta; // [time, 2 n + 1]
  double *sum;          // [classes]
};

// Fills alpha and beta for a sequence of `steps` and `u_count` labels (with the blanks), and returns the logarithm of
// the labels' probability.
static double forward_backward(const struct ctc *c, const struct work *w, int64_t steps, int64_t u_count) {
  const int64_t blank = c->classes - 1, U = u_count;
  for (int64_t i = 0; i < steps * U; i++) w->alpha[i] = w->beta[i] = -INFINITY;
  w->alpha[0] = log(w->y[blank]);
  if (U > 1) w->alpha[1] = log(w->y[w->labels[1]]);
  for (int64_t t = 1; t < steps; t++)
    for (int64_t u = 0; u < U; u++) {
      const int64_t label = w->labels[u];
      const double *last = w->alpha + (t - 1) * U;
      double sum = -INFINITY;
      if (c->merge || label == blank) sum = last[u];
      if (u > 0) sum = log_add(sum, last[u - 1]);
      if (u > 1 && label != blank && !(c->merge && label == w->labels[u - 2])) sum = log_add(sum, last[u - 2]);
      w->alpha[t * U + u] = sum + log(w->y[t * c->classes + label]);
    }
  w->beta[(steps - 1) * U + U - 1] = 0;
  if (U > 1) w->beta[(steps - 1) * U + U - 2] = 0;
  for (int64_t t = steps - 1; t-- > 0;)
    for (int64_t u = 0; u < U; u++) {
      const int64_t label = w->labels[u];
      const double *next = w->beta + (t + 1) * U, *y = w->y + (t + 1) * c->classes;
      double sum = -INFINITY;
      if (c->merge || label == blank) sum = next[u] + log(y[label]);
      if (u + 1 < U) sum = log_add(sum, next[u + 1] + log(y[w->labels[u + 1]]));
      if (u + 2 < U && label != blank && !(c->merge && label == w->labels[u + 2]))
        sum = log_add(sum, next[u + 2] + log(y[w->labels[u + 2]]));
      w->beta[t * U + u] = sum;
    }
  double log_p = -INFINITY;
  for (int64_t u = 0; u < U; u++) log_p = log_add(log_p, w->alpha[u] + w->beta[u]);
  return log_p;
}

static double input_at(const struct tfc_tensor *x, int64_t i) {
  return x->dtype == TFC_FLOAT ? (double)((const float *)x->data)[i] : ((const double *)x->data)[i];
}
static void set_at(struct tfc_tensor *x, int64_t i, double v) {
  if (x->dtype == TFC_FLOAT)
    ((float *)x->data)[i] = (float)v;
  else
    ((double *)x->data)[i] = v;
}

// Computes sequence `b`, whose labels are [first, last) of labels_values.
static tfc_status one(struct tfc_kernel_ctx *ctx, const struct ctc *c, const struct work *w, int64_t b, int64_t first,
                      int64_t last, struct tfc_tensor *loss, struct tfc_tensor *gradient) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const int32_t *values = ctx->inputs[2]->data;
  const int64_t steps = tfc_tensor_int(ctx->inputs[3], b), blank = c->classes - 1;
  int64_t n = 0;
  TFC_KERNEL_CHECK(steps >= 0 && steps <= c->time, "sequence_length(%lld) <= %lld", (long long)b, (long long)c->time);
  bool finished = false; // after a null label: one that is not less than the number of the blank
  for (int64_t i = first; i < last; i++) {
    if (c->collapse && i > first && values[i] == values[i - 1]) continue;
    if (values[i] >= blank) {
      finished = true;
      continue;
    }
    TFC_KERNEL_CHECK(!finished,
                     "Saw a non-null label (index >= num_classes - 1) following a null label, batch: %lld num_classes: "
                     "%lld labels: %d",
                     (long long)b, (long long)c->classes, values[i]);
    TFC_KERNEL_CHECK(values[i] >= 0, "All labels must be nonnegative integers, batch: %lld labels: %d", (long long)b,
                     values[i]);
    w->labels[2 * n] = blank;
    w->labels[2 * n + 1] = values[i];
    n++;
  }
  w->labels[2 * n] = blank;
  set_at(loss, b, 0);
  if (last - first > steps) {
    // Null labels count too. A repeated label needs one step more, for the blank before it, which is not counted here:
    // sequences that lack such a step have no path.
    TFC_KERNEL_CHECK(c->ignore_longer,
                     "Not enough time for target transition sequence (required: %lld, available: "
                     "%lld)%lld. You can turn this error into a warning by using the flag "
                     "ignore_longer_outputs_than_inputs",
                     (long long)(last - first), (long long)steps, (long long)b);
    return NULL;
  }
  if (steps == 0) return NULL;
  for (int64_t t = 0; t < steps; t++) { // softmax
    double max = -INFINITY, sum = 0, *y = w->y + t * c->classes;
    const int64_t at = (t * c->batch + b) * c->classes;
    for (int64_t k = 0; k < c->classes; k++)
      if (input_at(x, at + k) > max) max = input_at(x, at + k);
    for (int64_t k = 0; k < c->classes; k++) sum += y[k] = exp(input_at(x, at + k) - max);
    for (int64_t k = 0; k < c->classes; k++) y[k] /= sum;
  }
  const int64_t U = 2 * n + 1;
  double log_p = forward_backward(c, w, steps, U);
  set_at(loss, b, -log_p);
  for (int64_t t = 0; t < steps; t++) {
    const double *y = w->y + t * c->classes;
    for (int64_t k = 0; k < c->classes; k++) w->sum[k] = -INFINITY;
    for (int64_t u = 0; u < U; u++)
      w->sum[w->labels[u]] = log_add(w->sum[w->labels[u]], w->alpha[t * U + u] + w->beta[t * U + u]);
    for (int64_t k = 0; k < c->classes; k++)
      set_at(gradient, (t * c->batch + b) * c->classes + k, log_p == -INFINITY ? y[k] : y[k] - exp(w->sum[k] - log_p));
  }
  return NULL;
}

static tfc_status ctc_loss(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *indices = ctx->inputs[1], *values = ctx->inputs[2];
  TFC_KERNEL_CHECK(x->shape.rank == 3, "inputs is not a 3-Tensor");
  TFC_KERNEL_CHECK(indices->shape.rank == 2 && indices->shape.dims[1] == 2, "labels_indices must be [n, 2]");
  TFC_KERNEL_CHECK(values->shape.rank == 1 && values->shape.dims[0] == indices->shape.dims[0],
                   "labels_indices and labels_values must contain the same number of rows");
  struct ctc c = {.time = x->shape.dims[0], .batch = x->shape.dims[1], .classes = x->shape.dims[2]};
  TFC_KERNEL_CHECK(ctx->inputs[3]->shape.rank == 1 && ctx->inputs[3]->shape.dims[0] == c.batch,
                   "len(sequence_length) != batch_size. len(sequence_length): %lld batch_size: %lld",
                   (long long)tfc_tensor_elements(ctx->inputs[3]), (long long)c.batch);
  TFC_KERNEL_CHECK(c.classes > 0 && c.time > 0, "inputs must not be empty");
  c.collapse = tfc_node_attr_bool(ctx->graph, ctx->node, "preprocess_collapse_repeated", false);
  c.merge = tfc_node_attr_bool(ctx->graph, ctx->node, "ctc_merge_repeated", true);
  c.ignore_longer = tfc_node_attr_bool(ctx->graph, ctx->node, "ignore_longer_outputs_than_inputs", false);
  struct tfc_tensor *loss = NULL, *gradient = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &TFC_SHAPE(c.batch), &loss));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 1, x, &gradient));
  if (gradient->size) memset(gradient->data, 0, gradient->size);
  int64_t n = tfc_tensor_elements(values), at = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t b = tfc_tensor_int(indices, 2 * i), t = tfc_tensor_int(indices, 2 * i + 1);
    bool ordered = i == 0 || tfc_tensor_int(indices, 2 * i - 2) < b ||
                   (tfc_tensor_int(indices, 2 * i - 2) == b && tfc_tensor_int(indices, 2 * i - 1) < t);
    TFC_KERNEL_CHECK(b >= 0 && b < c.batch && t >= 0 && t < INT64_MAX && ordered,
                     "label SparseTensor is not valid: indices[%lld] = [%lld,%lld] is out of bounds or out of order",
                     (long long)i, (long long)b, (long long)t);
  }
  size_t states = (size_t)(2 * n + 1);
  tfc_status s = NULL;
  struct work w = {.labels = malloc(states * sizeof *w.labels),
                   .y = malloc((size_t)(c.time * c.classes) * sizeof *w.y),
                   .alpha = malloc((size_t)c.time * states * sizeof *w.alpha),
                   .beta = malloc((size_t)c.time * states * sizeof *w.beta),
                   .sum = malloc((size_t)c.classes * sizeof *w.sum)};
  if (!w.labels || !w.y || !w.alpha || !w.beta || !w.sum) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (int64_t b = 0; b < c.batch; b++) {
    int64_t first = at;
    while (at < n && tfc_tensor_int(indices, 2 * at) == b) at++;
    TFC_TRY(s, one(ctx, &c, &w, b, first, at, loss, gradient));
  }
  if (at != n)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "labels_indices must be sorted by batch, in [0, %lld)", (long long)c.batch);
out:
  free(w.labels), free(w.y), free(w.alpha), free(w.beta), free(w.sum);
  return s;
}

static tfc_status shape_ctc(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, lengths;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 3, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 3, 1, &lengths));
  TFC_RETURN_IF_ERROR(tfc_dim_merge(x.dims[1], lengths.dims[0], &x.dims[1]));
  ctx->outputs[0] = TFC_SHAPE(x.dims[1]);
  ctx->outputs[1] = x;
  return NULL;
}
static tfc_status grad_of_ctc(struct tfc_grad_ctx *c) { // there is no second derivative: PreventGradient reports that
  struct tfc_builder *b = c->builder;
  struct tfc_output kept = grad_out(c, 1);
  struct tfc_attr message =
      tfc_attr_string("message", TFC_STR("Currently there is no way to take the second derivative "
                                         "of ctc_loss"));
  struct tfc_output g = tfc_add(b, "PreventGradient", NULL, &kept, 1, &message, 1);
  c->grad_inputs[0] = tfc_add2(b, "Mul", tfc_add2(b, "ExpandDims", c->grad_outputs[0], tfc_add_i32(b, -1)), g);
  return grad_status(c);
}
static const struct tfc_op_def nn_ctc_rows[] = {
    {.name = "CTCLoss",
     .inputs = "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32",
     .outputs = "loss: T, gradient: T",
     .attrs = "preprocess_collapse_repeated: bool = false, ctc_merge_repeated: bool = true, "
              "ignore_longer_outputs_than_inputs: bool = false, T: {float, double} = float",
     .types = TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE),
     .host_inputs = 14,
     .shape = shape_ctc,
     .gradient = grad_of_ctc,
     .kernel = ctc_loss},
};
TFC_REGISTER_OPS(nn_ctc_rows);
