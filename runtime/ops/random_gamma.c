// Gamma and Poisson samples. Each output has its own 256 draws of the stream, so that the numbers do not depend on how
// the work is split.
//
// Gamma: Marsaglia and Tsang 2000, "A simple method for generating gamma variables". Poisson: multiplication of
// uniforms (Knuth) below a rate of 10, else transformed rejection (Hörmann 1993).
#include "runtime/ops/nn_common.h"
#include "runtime/ops/random_philox.h"

enum { RESERVED = 256, PIECE = 64 };

// Doubles in pairs, the second of a pair first.
struct pairs {
  struct tfc_philox *p;
  double values[2];
  int left;
};
static double next_uniform(struct pairs *u) {
  if (u->left == 0) {
    uint32_t w[4];
    tfc_philox_draw(u->p, w);
    u->values[0] = tfc_bits_to_double(w[0], w[1]);
    u->values[1] = tfc_bits_to_double(w[2], w[3]);
    u->left = 2;
  }
  return u->values[--u->left];
}
static double next_normal(struct pairs *n) {
  if (n->left == 0) {
    uint32_t w[4];
    tfc_philox_draw(n->p, w);
    tfc_box_muller_double(w, n->values);
    n->left = 2;
  }
  return n->values[--n->left];
}

static double gamma_sample(struct tfc_philox p, double alpha) {
  struct pairs normals = {.p = &p}, uniforms = {.p = &p};
  if (alpha == 1.0) return -log1p(-next_uniform(&uniforms)); // exponential
  bool below = alpha < 1;
  double d = alpha + (below ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);
  for (;;) {
    double x = next_normal(&normals), v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    double u = next_uniform(&uniforms);
    if (u < 1 - 0.0331 * (x * x) * (x * x) || log(u) < 0.5 * x * x + d * (1 - v + log(v))) {
      double result = d * v;
      if (below) result *= pow(next_uniform(&uniforms), 1 / alpha);
      return result;
    }
  }
}

static double poisson_sample(struct tfc_philox p, double rate, double highest) {
  struct pairs uniforms = {.p = &p};
  if (rate < 10) {
    double limit = exp(-rate), product = 1;
    for (double x = 0;; x++) {
      product *= next_uniform(&uniforms);
      if (product <= limit && x <= highest) return x;
    }
  }
  double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (;;) {
    double u = next_uniform(&uniforms) - 0.5, v = next_uniform(&uniforms), shifted = 0.5 - fabs(u);
    double k = floor((2 * a / shifted + b) * u + rate + 0.43);
    if (k > highest) continue;
    if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
    double s = log(v * inverse_alpha / (a / (shifted * shifted) + b));
    if (s <= -rate + k * log_rate - lgamma(k + 1)) return k;
  }
}

struct samples {
  struct tfc_philox generator;
  const struct tfc_tensor *parameters;
  struct tfc_tensor *out;
  int64_t parameter_count, per_parameter;
  bool poisson;
  double highest;
};
// Outputs [begin, end) in the order of the stream: all samples of a parameter, then the next one.
static void sample(void *arg, int64_t begin, int64_t end) {
  const struct samples *s = arg;
  for (int64_t i = begin; i < end; i++) {
    struct tfc_philox p = s->generator;
    tfc_philox_skip(&p, (uint64_t)i * RESERVED);
    int64_t which = i / s->per_parameter, at = i % s->per_parameter * s->parameter_count + which;
    double parameter = 0, value;
    TFC_REAL_CASES(s->parameters->dtype, { parameter = (double)TFC_GET(((const S *)s->parameters->data)[which]); })
    if (s->poisson && isinf(parameter) && parameter > 0)
      value = INFINITY;
    else if (isnan(parameter))
      value = NAN;
    else
      value = s->poisson ? poisson_sample(p, parameter, s->highest) : gamma_sample(p, parameter);
    switch ((int)s->out->dtype) {
    case TFC_INT32: ((int32_t *)s->out->data)[at] = isfinite(value) ? (int32_t)value : INT32_MAX; break;
    case TFC_INT64: ((int64_t *)s->out->data)[at] = isfinite(value) ? (int64_t)value : INT64_MAX; break;
    default: TFC_FLOAT_CASES(s->out->dtype, { TFC_PUT(((S *)s->out->data)[at], value); })
    }
  }
}

// (shape, alpha or rate) -> [shape, parameters' shape]
static tfc_status run(struct tfc_kernel_ctx *ctx, bool poisson) {
  struct tfc_shape shape;
  const struct tfc_tensor *parameters = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &shape));
  int64_t per_parameter = tfc_shape_elements(&shape), n = tfc_tensor_elements(parameters);
  for (int i = 0; i < parameters->shape.rank; i++) {
    TFC_KERNEL_CHECK(shape.rank < TFC_MAX_RANK, "too many dimensions");
    shape.dims[shape.rank++] = parameters->shape.dims[i];
  }
  struct samples s = {
      .parameters = parameters, .parameter_count = n, .per_parameter = per_parameter, .poisson = poisson};
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, &shape, &s.out));
  if (tfc_tensor_elements(s.out) == 0) return NULL;
  s.highest = type == TFC_INT32                           ? INT32_MAX
              : type == TFC_INT64                         ? (double)INT64_MAX
              : type == TFC_HALF                          ? 65504.0
              : type == TFC_FLOAT || type == TFC_BFLOAT16 ? 3.38e38
                                                          : 1.79e308;
  s.generator = tfc_random_reserve(ctx, (uint64_t)(per_parameter * n) * RESERVED);
  tfc_kernel_parallel_for(ctx, per_parameter * n, PIECE, sample, &s);
  return NULL;
}
static tfc_status random_gamma(struct tfc_kernel_ctx *ctx) {
  return run(ctx, false);
}
static tfc_status random_poisson(struct tfc_kernel_ctx *ctx) {
  return run(ctx, true);
}

static tfc_status shape_samples(struct tfc_shape_ctx *ctx) {
  struct tfc_shape shape = tfc_nn_shape_input(ctx, 0);
  const struct tfc_shape *p = ctx->inputs[1];
  ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  if (shape.rank < 0 || p->rank < 0) return NULL;
  if (shape.rank + p->rank > TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
  for (int i = 0; i < p->rank; i++) shape.dims[shape.rank++] = p->dims[i];
  ctx->outputs[0] = shape;
  return NULL;
}
TFC_COST_PER_ELEMENT(cost_sample, 200)
static const struct tfc_op_def random_gamma_rows[] = {
    {.name = "RandomGamma",
     .inputs = "shape: S, alpha: T",
     .outputs = "output: T",
     .attrs = "seed: int = 0, seed2: int = 0, S: {int32, int64}, T: {half, float, double}",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .node_state = TFC_RANDOM_NODE_STATE,
     .shape = shape_samples,
     .cost = cost_sample,
     .prepare = tfc_random_prepare,
     .kernel = random_gamma},
    {.name = "RandomPoissonV2",
     .inputs = "shape: S, rate: R",
     .outputs = "output: dtype",
     .attrs = "seed: int = 0, seed2: int = 0, S: {int32, int64}, R: {half, float, double, int32, int64} = double, "
              "dtype: {half, float, double, int32, int64} = int64",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .node_state = TFC_RANDOM_NODE_STATE,
     .shape = shape_samples,
     .cost = cost_sample,
     .prepare = tfc_random_prepare,
     .kernel = random_poisson},
};
TFC_REGISTER_OPS(random_gamma_rows);
