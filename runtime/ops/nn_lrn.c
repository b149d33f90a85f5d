// Local response normalisation over neighbouring channels (Krizhevsky et al. 2012):
//   y = x / (bias + alpha * sum over |c' - c| <= depth_radius of x[c']^2) ^ beta
// Images are [rows, channels]. In float32, a row's channels are computed in vectors, and for the usual exponents (beta
// 0.5, 0.75, 1) square roots and quotients replace pow.
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

struct lrn {
  int64_t channels, radius;
  double bias, alpha, beta;
  tfc_dtype dtype;
  const void *x, *y, *dy;
  void *out;
};

static tfc_status lrn_prepare(struct tfc_prepare_ctx *ctx) {
  struct lrn *s = TFC_ARENA_NEW(ctx->arena, struct lrn);
  if (!s) return tfc_status_no_memory(NULL);
  s->radius = tfc_node_attr_int(ctx->graph, ctx->node, "depth_radius", 5);
  s->bias = (double)(float)tfc_node_attr_float(ctx->graph, ctx->node, "bias", 1);
  s->alpha = (double)(float)tfc_node_attr_float(ctx->graph, ctx->node, "alpha", 1);
  s->beta = (double)(float)tfc_node_attr_float(ctx->graph, ctx->node, "beta", 0.5);
  ctx->state = s;
  return NULL;
}

#define NORM(x, c)                                                                                                     \
  ({                                                                                                                   \
    const int64_t lo_ = (c) > l->radius ? (c)-l->radius : 0;                                                           \
    const int64_t hi_ = l->channels - (c) > l->radius ? (c) + l->radius + 1 : l->channels;                             \
    C sum_ = 0;                                                                                                        \
    for (int64_t k_ = lo_; k_ < hi_; k_++) sum_ += OPS_GET(x[k_]) * OPS_GET(x[k_]);                                    \
    (C) l->bias + (C)l->alpha *sum_;                                                                                   \
  })

// norm ^ -beta by a root, a quotient, or a logarithm, as TensorFlow computes it: the results differ if a norm is not
// positive.
static inline double power_of(const struct lrn *l, double norm) {
  if (l->beta == 1) return 1 / norm;
  if (l->beta == 0.5) return 1 / sqrt(norm);
  return norm > 0 && isfinite(norm) ? pow(norm, -l->beta) : exp(-l->beta * log(norm));
}

// TensorFlow multiplies the squares by a matrix of ones and zeros: a value that is not finite makes the whole row NaN.
#define SPREAD(x, y)                                                                                                   \
  do {                                                                                                                 \
    C all_ = 0;                                                                                                        \
    for (int64_t c_ = 0; c_ < l->channels; c_++) all_ += OPS_GET(x[c_]) * OPS_GET(x[c_]) * (C)0;                       \
    if (all_ == (C)0) break;                                                                                           \
    for (int64_t c_ = 0; c_ < l->channels; c_++)                                                                       \
      for (int64_t k_ = 0; k_ < l->channels; k_++)                                                                     \
        if ((k_ < c_ - l->radius || k_ > c_ + l->radius) && !isfinite(OPS_GET(x[k_]) * OPS_GET(x[k_])))                \
          OPS_PUT(y[c_], (C)NAN);                                                                                      \
  } while (0)

static void forward(void *arg, int64_t begin, int64_t end) {
  const struct lrn *l = arg;
  OPS_SWITCH(OPS_FLOATS, l->dtype, {
    for (int64_t row = begin; row < end; row++) {
      const S *x = (const S *)l->x + row * l->channels;
      S *y = (S *)l->out + row * l->channels;
      for (int64_t c = 0; c < l->channels; c++) OPS_PUT(y[c], OPS_GET(x[c]) * (C)power_of(l, NORM(x, c)));
      SPREAD(x, y);
    }
  })
}

// dx[k] = sum over c near k of dy[c] * ((c == k) norm[c]^-beta - 2 alpha beta x[k] y[c] / norm[c])
static void backward(void *arg, int64_t begin, int64_t end) {
  const struct lrn *l = arg;
  OPS_SWITCH(OPS_FLOATS, l->dtype, {
    for (int64_t row = begin; row < end; row++) {
      const S *x = (const S *)l->x + row * l->channels, *y = (const S *)l->y + row * l->channels;
      const S *dy = (const S *)l->dy + row * l->channels;
      S *dx = (S *)l->out + row * l->channels;
      for (int64_t k = 0; k < l->channels; k++) {
        const int64_t lo = k > l->radius ? k - l->radius : 0;
        const int64_t hi = l->channels - k > l->radius ? k + l->radius + 1 : l->channels;
        C sum = 0;
        for (int64_t c = lo; c < hi; c++) {
          const C norm = NORM(x, c);
          C d = (C)(-2 * l->alpha * l->beta) * OPS_GET(x[k]) * OPS_GET(y[c]) / norm;
          if (c == k) d += pow(norm, (C)-l->beta);
          sum += d * OPS_GET(dy[c]);
        }
        OPS_PUT(dx[k], sum);
      }
    }
  })
}

// --- float32, channels side by side ---------------------------------------------------------------------------------
enum { WIDEST = 2048 }; // the most channels, including both margins, that fit into a buffer

// sum[c] becomes the sum of from[c - radius .. c + radius], in ascending order; `from` has margins of zeros.
static inline __attribute__((always_inline)) void sum_windows(const float *from, int64_t channels, int64_t radius,
                                                              float *sum) {
  for (int64_t c = 0; c < channels; c++) sum[c] = 0;
  for (int64_t d = 0; d <= 2 * radius; d++)
    for (int64_t c = 0; c < channels; c++) sum[c] += from[c + d];
}

// Computes norm [channels] of a row, and power = norm ^ -beta.
static inline __attribute__((always_inline)) void norms(const struct lrn *l, const float *x, float *squares,
                                                        float *norm, float *power) {
  const float bias = (float)l->bias, alpha = (float)l->alpha, beta = (float)l->beta;
  for (int64_t c = 0; c < l->channels; c++) squares[l->radius + c] = x[c] * x[c];
  sum_windows(squares, l->channels, l->radius, norm);
  for (int64_t c = 0; c < l->channels; c++) norm[c] = bias + alpha * norm[c];
  if (beta == 0.75f)
    for (int64_t c = 0; c < l->channels; c++) {
      float root = __builtin_sqrtf(norm[c]);
      power[c] = 1.0f / (root * __builtin_sqrtf(root));
    }
  else if (beta == 0.5f)
    for (int64_t c = 0; c < l->channels; c++) power[c] = 1.0f / __builtin_sqrtf(norm[c]);
  else if (beta == 1.0f)
    for (int64_t c = 0; c < l->channels; c++) power[c] = 1.0f / norm[c];
  else
    for (int64_t c = 0; c < l->channels; c++)
      power[c] = norm[c] > 0 && isfinite(norm[c]) ? powf(norm[c], -beta) : (float)power_of(l, norm[c]);
}

OPS_CLONES static void forward_rows(void *arg, int64_t begin, int64_t end) {
  const struct lrn *l = arg;
  float squares[WIDEST] = {0}, norm[WIDEST], power[WIDEST];
  for (int64_t row = begin; row < end; row++) {
    const float *x = (const float *)l->x + row * l->channels;
    float *y = (float *)l->out + row * l->channels;
    norms(l, x, squares, norm, power);
    for (int64_t c = 0; c < l->channels; c++) y[c] = x[c] * power[c];
    typedef float C;
    SPREAD(x, y);
  }
}

// dx = dy norm^-beta - 2 alpha beta x (sum over the window of dy y / norm)
OPS_CLONES static void backward_rows(void *arg, int64_t begin, int64_t end) {
  const struct lrn *l = arg;
  const float factor = (float)(-2 * l->alpha * l->beta);
  float squares[WIDEST] = {0}, shares[WIDEST] = {0}, norm[WIDEST], power[WIDEST], sum[WIDEST];
  for (int64_t row = begin; row < end; row++) {
    const float *x = (const float *)l->x + row * l->channels, *y = (const float *)l->y + row * l->channels;
    const float *dy = (const float *)l->dy + row * l->channels;
    float *dx = (float *)l->out + row * l->channels;
    norms(l, x, squares, norm, power);
    for (int64_t c = 0; c < l->channels; c++) shares[l->radius + c] = dy[c] * y[c] / norm[c];
    sum_windows(shares, l->channels, l->radius, sum);
    for (int64_t c = 0; c < l->channels; c++) dx[c] = dy[c] * power[c] + factor * x[c] * sum[c];
  }
}

static tfc_status run(struct tfc_kernel_ctx *ctx, bool gradient) {
  struct lrn l = *(const struct lrn *)ctx->state;
  const struct tfc_tensor *x = ctx->inputs[gradient ? 1 : 0];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(x->shape.rank == 4, "in must be 4-dimensional: %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(l.radius >= 0, "depth_radius = %lld must not be negative", (long long)l.radius);
  if (gradient)
    TFC_KERNEL_CHECK(tfc_shape_equal(&x->shape, &ctx->inputs[0]->shape) &&
                         tfc_shape_equal(&x->shape, &ctx->inputs[2]->shape),
                     "input_grads, input_image, and out_image should have the same shape");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  int64_t n = tfc_tensor_elements(x);
  if (n == 0) return NULL;
  l.channels = x->shape.dims[3];
  l.dtype = x->dtype;
  l.x = x->data;
  l.out = y->data;
  if (gradient) l.dy = ctx->inputs[0]->data, l.y = ctx->inputs[2]->data;
  bool side_by_side = l.dtype == TFC_FLOAT && l.radius < WIDEST / 2 && l.channels + 2 * l.radius <= WIDEST;
  if (side_by_side)
    tfc_kernel_parallel_for(ctx, n / l.channels, 64, gradient ? backward_rows : forward_rows, &l);
  else
    tfc_kernel_parallel_for(ctx, n / l.channels, 64, gradient ? backward : forward, &l);
  return NULL;
}
static tfc_status lrn(struct tfc_kernel_ctx *ctx) {
  return run(ctx, false);
}
static tfc_status lrn_grad(struct tfc_kernel_ctx *ctx) {
  return run(ctx, true);
}

static tfc_status shape_lrn(struct tfc_shape_ctx *ctx) {
  return ops_with_rank(ctx, 0, 4, &ctx->outputs[0]);
}
static tfc_status shape_lrn_grad(struct tfc_shape_ctx *ctx) {
  struct tfc_shape shape;
  TFC_RETURN_IF_ERROR(ops_merge_inputs(ctx, 0, 3, &shape));
  ctx->outputs[0] = shape.rank < 0 ? tfc_shape_unknown_of_rank(4) : shape;
  return NULL;
}
static tfc_status grad_of_lrn(struct tfc_grad_ctx *c) {
  c->grad_inputs[0] = grad_node(c, "LRNGrad", TFC_OUTPUTS(c->grad_outputs[0], grad_in(c, 0), grad_out(c, 0)),
                                "depth_radius bias alpha beta");
  return grad_status(c);
}
OPS_COST_PER_ELEMENT(cost_lrn, 20)

static const struct tfc_op_def nn_lrn_rows[] = {
    {.name = "LRN",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5, T: {half, bfloat16, float} "
              "= float",
     .types = OPS_BITS(OPS_FLOATS),
     .shape = shape_lrn,
     .gradient = grad_of_lrn,
     .cost = cost_lrn,
     .prepare = lrn_prepare,
     .kernel = lrn,
     .samples = "float[2,3,3,7]; float[1,2,2,12] {depth_radius=2}"},
    {.name = "LRNGrad",
     .inputs = "input_grads: T, input_image: T, output_image: T",
     .outputs = "output: T",
     .attrs = "depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5, T: {half, bfloat16, float} "
              "= float",
     .types = OPS_BITS(OPS_FLOATS),
     .shape = shape_lrn_grad,
     .cost = cost_lrn,
     .prepare = lrn_prepare,
     .kernel = lrn_grad},
};
TFC_REGISTER_OPS(nn_lrn_rows);
