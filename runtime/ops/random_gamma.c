// Gamma and Poisson samples. Each output has its own 256 draws of the stream, so that the numbers do not depend on how
// the work is split.
//
// Gamma uses Marsaglia and Tsang 2000, "A simple method for generating gamma variables". Poisson multiplies uniform
// numbers (Knuth) if the rate is below 10, and otherwise uses transformed rejection (Hörmann 1993).
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/random_stateless.h"
#include "runtime/ops/random_stream.h"
#include "runtime/ops/row.h"

enum { RESERVED = 256, PIECE = 64 };

static double next_normal(struct tfc_philox_pairs *n) {
  if (n->left == 0) {
    uint32_t w[4];
    tfc_philox_draw(n->p, w);
    tfc_box_muller_double(w, n->values);
    n->left = 2;
  }
  return n->values[--n->left];
}

static double gamma_sample(struct tfc_philox p, double alpha) {
  struct tfc_philox_pairs normals = {.p = &p}, uniforms = {.p = &p};
  if (alpha == 1.0) return -log1p(-tfc_philox_uniform(&uniforms)); // alpha 1 is the exponential distribution
  bool below = alpha < 1;
  double d = alpha + (below ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);
  for (;;) {
    double x = next_normal(&normals), v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    double u = tfc_philox_uniform(&uniforms);
    if (u < 1 - 0.0331 * (x * x) * (x * x) || log(u) < 0.5 * x * x + d * (1 - v + log(v))) {
      double result = d * v;
      if (below) result *= pow(tfc_philox_uniform(&uniforms), 1 / alpha);
      return result;
    }
  }
}

static double poisson_sample(struct tfc_philox p, double rate, double highest) {
  struct tfc_philox_pairs uniforms = {.p = &p};
  if (rate > highest) return highest; // samples that fit the type are too rare to wait for
  if (rate < 10) {
    double limit = exp(-rate), product = 1;
    for (double x = 0;; x++) {
      product *= tfc_philox_uniform(&uniforms);
      if (product <= limit && x <= highest) return x;
    }
  }
  double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (;;) {
    double u = tfc_philox_uniform(&uniforms) - 0.5, v = tfc_philox_uniform(&uniforms), shifted = 0.5 - fabs(u);
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
// Draws outputs [begin, end) in the order of the stream: all samples of a parameter, then those of the next one.
static void sample(void *arg, int64_t begin, int64_t end) {
  const struct samples *s = arg;
  for (int64_t i = begin; i < end; i++) {
    struct tfc_philox p = s->generator;
    tfc_philox_skip(&p, (uint64_t)i * RESERVED);
    int64_t which = i / s->per_parameter, at = i % s->per_parameter * s->parameter_count + which;
    double parameter = 0, value;
    OPS_SWITCH(OPS_REALS, s->parameters->dtype,
               { parameter = (double)OPS_GET(((const S *)s->parameters->data)[which]); })
    if (s->poisson && isinf(parameter) && parameter > 0)
      value = INFINITY;
    else if (isnan(parameter))
      value = NAN;
    else
      value = s->poisson ? poisson_sample(p, parameter, s->highest) : gamma_sample(p, parameter);
    switch ((int)s->out->dtype) {
    case TFC_INT32: ((int32_t *)s->out->data)[at] = isfinite(value) ? (int32_t)value : INT32_MAX; break;
    case TFC_INT64: ((int64_t *)s->out->data)[at] = isfinite(value) ? (int64_t)value : INT64_MAX; break;
    default: OPS_SWITCH(OPS_FLOATS, s->out->dtype, { OPS_PUT(((S *)s->out->data)[at], value); })
    }
  }
}

// Draws `per_parameter` samples for each parameter, from the generator `seeded` or, if that is NULL, from the node's
// own.
static tfc_status fill(struct tfc_kernel_ctx *ctx, bool poisson, const struct tfc_tensor *parameters,
                       const struct tfc_shape *shape, int64_t per_parameter, const struct tfc_philox *seeded) {
  int64_t n = tfc_tensor_elements(parameters);
  struct samples s = {
      .parameters = parameters, .parameter_count = n, .per_parameter = per_parameter, .poisson = poisson};
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, shape, &s.out));
  if (tfc_tensor_elements(s.out) == 0) return NULL;
  s.highest = type == TFC_INT32                           ? INT32_MAX
              : type == TFC_INT64                         ? 0x1.fffffffffffffp62 // the next double does not fit int64
              : type == TFC_HALF                          ? 65504.0
              : type == TFC_FLOAT || type == TFC_BFLOAT16 ? 3.38e38
                                                          : 1.79e308;
  s.generator = seeded ? *seeded : tfc_random_reserve(ctx, (uint64_t)(per_parameter * n) * RESERVED);
  tfc_kernel_parallel_for(ctx, per_parameter * n, PIECE, sample, &s);
  return NULL;
}
// Inputs: (shape, alpha or rate); the output has `shape` followed by the parameters' shape.
static tfc_status run(struct tfc_kernel_ctx *ctx, bool poisson) {
  struct tfc_shape shape;
  const struct tfc_tensor *parameters = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &shape));
  int64_t per_parameter = tfc_shape_elements(&shape);
  for (int i = 0; i < parameters->shape.rank; i++) {
    TFC_KERNEL_CHECK(shape.rank < TFC_MAX_RANK, "too many dimensions");
    shape.dims[shape.rank++] = parameters->shape.dims[i];
  }
  return fill(ctx, poisson, parameters, &shape, per_parameter, NULL);
}
static tfc_status random_gamma(struct tfc_kernel_ctx *ctx) {
  return run(ctx, false);
}
static tfc_status random_poisson(struct tfc_kernel_ctx *ctx) {
  return run(ctx, true);
}

// Inputs: (shape, seed, alpha or rate) or (shape, key, counter, alg, alpha); the output has `shape`, which ends in the
// parameters' shape.
static tfc_status run_seeded(struct tfc_kernel_ctx *ctx, bool poisson) {
  struct tfc_shape shape;
  struct tfc_philox p;
  uint32_t rest;
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &shape));
  TFC_RETURN_IF_ERROR(tfc_random_of_inputs(ctx, &p, &rest));
  const struct tfc_tensor *parameters = ctx->inputs[rest];
  const int64_t n = tfc_tensor_elements(parameters);
  bool ends = parameters->shape.rank <= shape.rank;
  for (int i = 1; ends && i <= parameters->shape.rank; i++)
    ends = parameters->shape.dims[parameters->shape.rank - i] == shape.dims[shape.rank - i];
  TFC_KERNEL_CHECK(ends || tfc_shape_elements(&shape) == 0,
                   "Shape passed in must end with the shape of the parameters: %s does not end with %s",
                   tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&parameters->shape, (char[TFC_SHAPE_TEXT]){0}));
  return fill(ctx, poisson, parameters, &shape, n ? tfc_shape_elements(&shape) / n : 0, &p);
}
static tfc_status stateless_gamma(struct tfc_kernel_ctx *ctx) {
  return run_seeded(ctx, false);
}
static tfc_status stateless_poisson(struct tfc_kernel_ctx *ctx) {
  return run_seeded(ctx, true);
}

// Sets the gradient of alpha: d sample / d alpha, summed over the samples of each alpha, whose dimensions are the last
// ones.
static void grad_of_alpha(struct tfc_grad_ctx *g, uint32_t input, bool shape_is_whole) {
  struct tfc_builder *b = g->builder;
  struct tfc_output alpha = grad_in(g, input), shape = grad_in(g, 0), sample = grad_out(g, 0);
  struct tfc_output count = tfc_add1(b, "Size", shape);
  if (shape_is_whole) count = tfc_add2(b, "Sub", count, tfc_add1(b, "Rank", alpha));
  struct tfc_output ones = tfc_add2(b, "Fill", tfc_add2(b, "ExpandDims", count, tfc_add_i32(b, 0)), tfc_add_i32(b, 1));
  struct tfc_output both[] = {ones, tfc_add1(b, "Shape", alpha), tfc_add_i32(b, 0)};
  struct tfc_output wide = tfc_add(b, "ConcatV2", NULL, both, 3, NULL, 0);
  struct tfc_output slope = tfc_add2(b, "RandomGammaGrad", tfc_add2(b, "Reshape", alpha, wide), sample);
  struct tfc_output range[] = {tfc_add_i32(b, 0), count, tfc_add_i32(b, 1)};
  struct tfc_output axes = tfc_add(b, "Range", NULL, range, 3, NULL, 0);
  g->grad_inputs[input] = tfc_add2(b, "Sum", tfc_add2(b, "Mul", g->grad_outputs[0], slope), axes);
}
static tfc_status gradient_gamma(struct tfc_grad_ctx *g) {
  grad_of_alpha(g, 1, false);
  return grad_status(g);
}
static tfc_status gradient_stateless_gamma(struct tfc_grad_ctx *g) {
  grad_of_alpha(g, grad_in_count(g) - 1, true);
  return grad_status(g);
}

static tfc_status shape_samples(struct tfc_shape_ctx *ctx) {
  struct tfc_shape shape = ops_described_shape(ctx, 0);
  const struct tfc_shape *p = ctx->inputs[1];
  ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  if (shape.rank < 0 || p->rank < 0) return NULL;
  if (shape.rank + p->rank > TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
  for (int i = 0; i < p->rank; i++) shape.dims[shape.rank++] = p->dims[i];
  ctx->outputs[0] = shape;
  return NULL;
}
static tfc_status shape_seeded(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ops_described_shape(ctx, 0);
  return NULL;
}
OPS_COST_PER_ELEMENT(cost_sample, 200)
#define SEEDED(kernel_) .host_inputs = UINT32_MAX, .shape = shape_seeded, .cost = cost_sample, .kernel = kernel_
static const struct tfc_op_def random_gamma_rows[] = {
    {.name = "RandomGamma",
     .inputs = "shape: S, alpha: T",
     .outputs = "output: T",
     .attrs = "seed: int = 0, seed2: int = 0, S: {int32, int64}, T: {half, float, double}",
     .flags = TFC_OP_STATEFUL,
     .gradient = gradient_gamma,
     .host_inputs = 1,
     .node_state = TFC_RANDOM_NODE_STATE,
     .shape = shape_samples,
     .cost = cost_sample,
     .prepare = tfc_random_prepare,
     .kernel = random_gamma},
    {.name = "RandomPoisson",
     .inputs = "shape: S, rate: dtype",
     .outputs = "output: dtype",
     .attrs = "seed: int = 0, seed2: int = 0, S: {int32, int64}, dtype: {half, float, double}",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .node_state = TFC_RANDOM_NODE_STATE,
     .shape = shape_samples,
     .cost = cost_sample,
     .prepare = tfc_random_prepare,
     .kernel = random_poisson},
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
    {.name = "StatelessRandomGammaV2",
     .inputs = "shape: T, seed: Tseed, alpha: dtype",
     .outputs = "output: dtype",
     .attrs = "dtype: {half, float, double}, T: {int32, int64}, Tseed: {int32, int64} = int64",
     SEEDED(stateless_gamma),
     .gradient = gradient_stateless_gamma,
     .samples = "int32[2]=[3,2], int64[2]=[1,2], float[2]=[0.5,2.5]"},
    {.name = "StatelessRandomGammaV3",
     .inputs = "shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype",
     .outputs = "output: dtype",
     .attrs = "dtype: {half, float, double}, shape_dtype: {int32, int64} = int32",
     SEEDED(stateless_gamma),
     .gradient = gradient_stateless_gamma},
    {.name = "StatelessRandomPoisson",
     .inputs = "shape: T, seed: Tseed, lam: Rtype",
     .outputs = "output: dtype",
     .attrs = "Rtype: {half, float, double, int32, int64}, dtype: {half, float, double, int32, int64}, T: {int32, "
              "int64}, Tseed: {int32, int64} = int64",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     SEEDED(stateless_poisson)},
};
TFC_REGISTER_OPS(random_gamma_rows);
