// Binomial samples: with fewer than ten expected successes by inversion (sums of geometric numbers), otherwise by
// transformed rejection (Hörmann 1993, "The generation of binomial random variates"). Each output has its own draws of
// the stream: 42 for inversion, 256 for rejection, as many as TensorFlow skips.
#include <math.h>

#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/random_generator.h"
#include "runtime/ops/random_stateless.h"
#include "runtime/ops/row.h"
#include "runtime/ops/state_common.h"

enum { RESERVED_INVERSION = 42, RESERVED_REJECTION = 256, PIECE = 64 };

static double inversion(double count, double prob, struct tfc_philox *p) {
  struct tfc_philox_pairs u = {.p = p};
  double sum = 0, below = log1p(-prob);
  for (int successes = 0;; successes++) {
    sum += ceil(log(tfc_philox_uniform(&u)) / below);
    if (!(sum <= count)) return successes;
  }
}

// Returns ln k! minus Stirling's approximation of it.
static double stirling_tail(double k) {
  static const double tails[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                 0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                 0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return tails[(int)k];
  double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}
static double rejection(double count, double prob, struct tfc_philox *p) {
  struct tfc_philox_pairs uniforms = {.p = p};
  double deviation = sqrt(count * prob * (1 - prob)), b = 1.15 + 2.53 * deviation;
  double a = -0.0873 + 0.0248 * b + 0.01 * prob, c = count * prob + 0.5, v_r = 0.92 - 4.2 / b;
  double r = prob / (1 - prob), alpha = (2.83 + 5.1 / b) * deviation, m = floor((count + 1) * prob);
  for (;;) {
    double u = tfc_philox_uniform(&uniforms), v = tfc_philox_uniform(&uniforms);
    u -= 0.5;
    double shifted = 0.5 - fabs(u), k = floor((2 * a / shifted + b) * u + c);
    if (shifted >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > count) continue;
    v = log(v * alpha / (a / (shifted * shifted) + b));
    double bound = (m + 0.5) * log((m + 1) / (r * (count - m + 1))) +
                   (count + 1) * log((count - m + 1) / (count - k + 1)) +
                   (k + 0.5) * log(r * (count - k + 1) / (k + 1)) + stirling_tail(m) + stirling_tail(count - m) -
                   stirling_tail(k) - stirling_tail(count - k);
    if (v <= bound) return k;
  }
}
// Draws output `i` from the stream `p`.
static double binomial_sample(double count, double prob, struct tfc_philox p, int64_t i) {
  if (count <= 0 || prob <= 0) return 0;
  if (prob >= 1) return count;
  if (isnan(prob) || isnan(count)) return NAN;
  double rarer = prob <= 0.5 ? prob : 1 - prob;
  bool many = count * rarer >= 10;
  tfc_philox_skip(&p, (uint64_t)i * (many ? RESERVED_REJECTION : RESERVED_INVERSION));
  double found = many ? rejection(count, rarer, &p) : inversion(count, rarer, &p);
  return prob <= 0.5 ? found : count - found;
}

struct samples {
  struct tfc_philox generator;
  const struct tfc_tensor *counts, *probs;
  struct ops_broadcast plan; // how counts and probs are broadcast
  struct tfc_tensor *out;
  int64_t per_batch;
};
static double number(const struct tfc_tensor *t, int64_t i) {
  switch ((int)t->dtype) {
  case TFC_INT32: return ((const int32_t *)t->data)[i];
  case TFC_INT64: return (double)((const int64_t *)t->data)[i];
  case TFC_HALF: return (double)tfc_half_to_float(((const uint16_t *)t->data)[i]);
  case TFC_FLOAT: return (double)((const float *)t->data)[i];
  default: return ((const double *)t->data)[i];
  }
}
// Draws outputs [begin, end) in the order of the stream: all samples of a pair of parameters, then those of the next
// pair.
static void sample(void *arg, int64_t begin, int64_t end) {
  const struct samples *s = arg;
  for (int64_t i = begin; i < end; i++) {
    int64_t pair = i / s->per_batch, at = i % s->per_batch * s->plan.total + pair, o[2] = {0};
    for (int d = s->plan.rank - 1; d >= 0; pair /= s->plan.dims[d], d--)
      for (int k = 0; k < 2; k++) o[k] += pair % s->plan.dims[d] * s->plan.strides[k][d];
    double value = binomial_sample(number(s->counts, o[0]), number(s->probs, o[1]), s->generator, i);
    switch ((int)s->out->dtype) {
    case TFC_INT32: ((int32_t *)s->out->data)[at] = isfinite(value) ? (int32_t)value : INT32_MIN; break;
    case TFC_INT64: ((int64_t *)s->out->data)[at] = isfinite(value) ? (int64_t)value : INT64_MIN; break;
    case TFC_HALF: ((uint16_t *)s->out->data)[at] = tfc_float_to_half((float)value); break;
    case TFC_FLOAT: ((float *)s->out->data)[at] = (float)value; break;
    default: ((double *)s->out->data)[at] = value;
    }
  }
}

// Reads the output's shape, which must end in the shape to which counts and probs are broadcast.
static tfc_status plan(struct tfc_kernel_ctx *ctx, uint32_t shape_at, struct tfc_shape *shape, struct samples *s) {
  s->counts = ctx->inputs[ctx->input_count - 2], s->probs = ctx->inputs[ctx->input_count - 1];
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[shape_at], shape));
  TFC_RETURN_IF_ERROR(
      ops_broadcast_plan((const struct tfc_shape *[]){&s->counts->shape, &s->probs->shape}, 2, &s->plan));
  bool ends = s->plan.shape.rank <= shape->rank;
  for (int i = 1; ends && i <= s->plan.shape.rank; i++)
    ends = s->plan.shape.dims[s->plan.shape.rank - i] == shape->dims[shape->rank - i];
  TFC_KERNEL_CHECK(ends, "Shape passed in must end with broadcasted shape: %s does not end with %s",
                   tfc_shape_show(shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&s->plan.shape, (char[TFC_SHAPE_TEXT]){0}));
  s->per_batch = s->plan.total ? tfc_shape_elements(shape) / s->plan.total : 0;
  return NULL;
}
static tfc_status draw(struct tfc_kernel_ctx *ctx, const struct tfc_shape *shape, struct samples *s) {
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ctx->graph->output_dtypes[ctx->node->output_begin], shape, &s->out));
  int64_t n = tfc_tensor_elements(s->out);
  if (n) tfc_kernel_parallel_for(ctx, n, PIECE, sample, s);
  return NULL;
}
static tfc_status stateless_binomial(struct tfc_kernel_ctx *ctx) { // inputs: shape, seed, counts, probs
  struct samples s = {0};
  struct tfc_shape shape;
  TFC_RETURN_IF_ERROR(tfc_random_of_seed(ctx->inputs[1], &s.generator));
  TFC_RETURN_IF_ERROR(plan(ctx, 0, &shape, &s));
  return draw(ctx, &shape, &s);
}
static tfc_status stateful_binomial(struct tfc_kernel_ctx *ctx) { // inputs: resource, algorithm, shape, counts, probs
  struct samples s = {0};
  struct tfc_shape shape;
  TFC_RETURN_IF_ERROR(plan(ctx, 2, &shape, &s));
  // TensorFlow reserves this many numbers.
  uint64_t numbers = (uint64_t)(s.plan.total * 200 * (s.per_batch + 3) / 4);
  TFC_RETURN_IF_ERROR(tfc_random_of_variable(ctx, numbers, &s.generator));
  return draw(ctx, &shape, &s);
}
static tfc_status shape_stateful(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ops_described_shape(ctx, 2);
  return NULL;
}
static tfc_status shape_seeded(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ops_described_shape(ctx, 0);
  return NULL;
}
OPS_COST_PER_ELEMENT(cost_sample, 200)
static const struct tfc_op_def random_binomial_rows[] = {
    {.name = "StatelessRandomBinomial",
     .inputs = "shape: S, seed: Tseed, counts: T, probs: T",
     .outputs = "output: dtype",
     .attrs = "S: {int32, int64}, Tseed: {int32, int64} = int64, T: {half, float, double, int32, int64} = double, "
              "dtype: {half, float, double, int32, int64} = int64",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = UINT32_MAX,
     .shape = shape_seeded,
     .cost = cost_sample,
     .kernel = stateless_binomial,
     .samples = "int32[2]=[3,2], int64[2]=[1,2], float[2]=[5,50], float[]=0.4"},
    {.name = "StatefulRandomBinomial",
     .inputs = "resource: resource, algorithm: int64, shape: S, counts: T, probs: T",
     .outputs = "output: dtype",
     .attrs = "S: {int32, int64}, T: {half, float, double, int32, int64} = double, "
              "dtype: {half, float, double, int32, int64} = int64",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .shape = shape_stateful,
     .cost = cost_sample,
     .kernel = stateful_binomial},
};
TFC_REGISTER_OPS(random_binomial_rows);
