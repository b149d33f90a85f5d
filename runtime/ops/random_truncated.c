// Normal numbers within bounds that are inputs, drawn by rejection (Robert 1995, "Simulation of truncated normal
// variables"): normal, uniform or exponential numbers are proposed, whichever suits the bounds.
//
// How many draws a number takes depends on the rejections, so all numbers are drawn from one stream, in order. (With
// several threads, TensorFlow starts a new stream at each piece of a large tensor. These are the numbers that it gives
// with one thread, and for tensors that are too small to be divided.) Results are rounded to the element type after
// each operation.
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/random_stateless.h"
#include "runtime/ops/random_stream.h"
#include "runtime/ops/row.h"

enum { MAX_ITERATIONS = 1000, SAMPLES_PER_PIECE = 100 };

static double rounded(tfc_dtype type, double x) {
  return type == TFC_DOUBLE  ? x
         : type == TFC_FLOAT ? (double)(float)x
                             : (double)tfc_half_to_float(tfc_float_to_half((float)x));
}
static double exponential(tfc_dtype type, double x) {
  return type == TFC_DOUBLE ? exp(x) : rounded(type, (double)expf((float)x));
}
static double logarithm(tfc_dtype type, double x) {
  return type == TFC_DOUBLE ? log(x) : rounded(type, (double)logf((float)x));
}

// Draws one group of numbers; returns how many it has.
static int draw_group(tfc_dtype type, struct tfc_philox *p, bool normal, double out[4]) {
  uint32_t w[4];
  tfc_philox_draw(p, w);
  if (type == TFC_DOUBLE) {
    if (normal)
      tfc_box_muller_double(w, out);
    else
      out[0] = tfc_bits_to_double(w[0], w[1]), out[1] = tfc_bits_to_double(w[2], w[3]);
    return 2;
  }
  float f[4];
  if (normal) tfc_box_muller_float(w[0], w[1], f), tfc_box_muller_float(w[2], w[3], f + 2);
  for (int i = 0; i < 4; i++)
    out[i] = normal              ? rounded(type, (double)f[i])
             : type == TFC_FLOAT ? (double)tfc_bits_to_float(w[i])
                                 : (double)(w[i] & 0x3ffu) * 0x1p-10;
  return 4;
}

struct bounds {
  double mean, deviation, low, high;
};
struct sampler {
  tfc_dtype type;
  struct tfc_philox generator;
  struct bounds b; // low and high are normalised
  int iterations;
  void (*store)(void *arg, double value); // takes the next number
  void *arg;
};

static void accept(struct sampler *s, double z) {
  s->store(s->arg, rounded(s->type, rounded(s->type, z * s->b.deviation) + s->b.mean));
  s->iterations = 0;
}

static tfc_status from_normal(struct sampler *s, int64_t count) {
  while (count > 0) {
    double z[4];
    int n = draw_group(s->type, &s->generator, true, z);
    for (int i = 0; i < n && count > 0; i++)
      if (z[i] >= s->b.low && z[i] <= s->b.high)
        accept(s, z[i]), count--;
      else if (++s->iterations > MAX_ITERATIONS)
        return tfc_status_make(TFC_INTERNAL, "TruncatedNormal randn rejection sampler failed to accept a sample.");
  }
  return NULL;
}
static tfc_status from_uniform(struct sampler *s, int64_t count, double width) {
  tfc_dtype t = s->type;
  double top = s->b.low < 0 ? 0 : rounded(t, s->b.low * s->b.low);
  while (count > 0) {
    double z[4], u[4];
    int n = draw_group(t, &s->generator, false, z);
    for (int i = 0; i < n; i++) z[i] = rounded(t, rounded(t, z[i] * width) + s->b.low);
    draw_group(t, &s->generator, false, u);
    for (int i = 0; i < n && count > 0; i++) {
      double g = rounded(t, rounded(t, top - rounded(t, z[i] * z[i])) / 2);
      if (u[i] <= exponential(t, g))
        accept(s, z[i]), count--;
      else if (++s->iterations >= MAX_ITERATIONS)
        return tfc_status_make(TFC_INTERNAL, "TruncatedNormal uniform rejection sampler failed to  accept a sample.");
    }
  }
  return NULL;
}
static tfc_status from_exponential(struct sampler *s, int64_t count, double root) {
  tfc_dtype t = s->type;
  double rate = rounded(t, rounded(t, s->b.low + root) / 2);
  while (count > 0) {
    double w[4];
    int n = draw_group(t, &s->generator, false, w);
    for (int i = 0; i < n && count > 0; i += 2) {
      double z = rounded(t, rounded(t, -logarithm(t, w[i]) / rate) + s->b.low);
      double x = s->b.low < rate ? rounded(t, rate - z) : rounded(t, s->b.low - rate);
      double g = exponential(t, rounded(t, rounded(t, -x * x) / 2));
      if (w[i + 1] <= g && z < s->b.high)
        accept(s, z), count--;
      else if (++s->iterations >= MAX_ITERATIONS)
        return tfc_status_make(TFC_INTERNAL,
                               "TruncatedNormal exponential distribution rejection sampler failed to accept a sample.");
    }
  }
  return NULL;
}

// Draws `count` numbers within these bounds.
static tfc_status sample(struct sampler *s, struct bounds b, int64_t count) {
  tfc_dtype t = s->type;
  TFC_KERNEL_CHECK(b.deviation > 0 && b.low < b.high && (isfinite(b.low) || isfinite(b.high)), "Invalid parameters");
  // If there is only an upper bound, or both bounds are below the mean, the distribution is mirrored: then the lower
  // bound is finite, or both are above the mean.
  if ((isinf(b.low) && b.low < 0) || b.high < b.mean) {
    double low = b.low;
    b.low = b.high, b.high = low, b.deviation = -b.deviation;
  }
  b.low = rounded(t, rounded(t, b.low - b.mean) / b.deviation);
  b.high = rounded(t, rounded(t, b.high - b.mean) / b.deviation);
  s->b = b;
  s->iterations = 0;
  const double inside =
      // Bounds beyond this many deviations make normal numbers worth proposing.
      rounded(t, t == TFC_DOUBLE ? 1.3 : (double)1.3f);
  double root = rounded(t, sqrt(rounded(t, rounded(t, b.low * b.low) + 4)));
  double power = rounded(t, 0.5 + rounded(t, rounded(t, b.low * rounded(t, b.low - root)) / 4));
  double cutoff = rounded(t, rounded(t, 2 * exponential(t, power)) / rounded(t, b.low + root));
  double width = rounded(t, b.high - b.low);
  if ((b.low < -inside && b.high >= 0) || (b.high > inside && b.low <= 0)) return from_normal(s, count);
  return width < cutoff ? from_uniform(s, count, width) : from_exponential(s, count, root);
}

static double number(const struct tfc_tensor *t, int64_t i) {
  double value = 0;
  OPS_SWITCH(OPS_FLOATS, t->dtype, { value = (double)OPS_GET(((const S *)t->data)[i]); })
  return value;
}
struct place {
  struct tfc_tensor *out;
  int64_t at, step;
};
static void store(void *arg, double value) {
  struct place *p = arg;
  OPS_SWITCH(OPS_FLOATS, p->out->dtype, { OPS_PUT(((S *)p->out->data)[p->at], value); })
  p->at += p->step;
}

// Inputs: shape, means, stdevs, minvals, maxvals; output [batches, ...]. Each parameter is a scalar or has one value
// for each batch.
static tfc_status parameterized(struct tfc_kernel_ctx *ctx) {
  static const char *const names[] = {"", "means", "stddevs", "minvals", "maxvals"};
  struct tfc_shape shape;
  struct tfc_tensor *out = NULL;
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 1, "Input shape should be a vector, got shape: %s",
                   tfc_shape_show(&ctx->inputs[0]->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[0]) > 0, "Shape tensor must not be empty");
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &shape));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ctx->inputs[1]->dtype, &shape, &out));
  int64_t total = tfc_tensor_elements(out), batches = shape.dims[0], per_batch = 1;
  for (int i = 1; i < shape.rank; i++) per_batch *= shape.dims[i];
  TFC_KERNEL_CHECK(total <= INT32_MAX && per_batch <= INT32_MAX, "too many numbers for one operation");
  bool alike = true;
  int64_t step[5] = {0};
  for (uint32_t i = 1; i < 5; i++) {
    const struct tfc_shape *p = &ctx->inputs[i]->shape;
    TFC_KERNEL_CHECK(p->rank <= 1, "Input %s should be a scalar or vector, got shape: %s", names[i],
                     tfc_shape_show(p, (char[TFC_SHAPE_TEXT]){0}));
    alike &= p->rank == 0 || (i < 3 && p->dims[0] == 1);
    step[i] = p->rank == 1 && p->dims[0] != 1;
  }
  if (alike) {
    batches = (total + SAMPLES_PER_PIECE - 1) / SAMPLES_PER_PIECE;
    per_batch = SAMPLES_PER_PIECE;
  }
  for (uint32_t i = 1; i < 5; i++)
    TFC_KERNEL_CHECK(!step[i] || ctx->inputs[i]->shape.dims[0] == batches,
                     "Input %s should have length 1 or shape[0], got shape: %s", names[i],
                     tfc_shape_show(&ctx->inputs[i]->shape, (char[TFC_SHAPE_TEXT]){0}));
  // TensorFlow computes this number in 32 bits, which wrap.
  int32_t draws = (int32_t)((uint32_t)batches * 2u * MAX_ITERATIONS * (uint32_t)(per_batch + 3)) / 4;
  struct place place = {.out = out, .step = 1};
  struct sampler s = {.type = out->dtype,
                      .generator = tfc_random_reserve(ctx, (uint64_t)(int64_t)draws),
                      .store = store,
                      .arg = &place};
  for (int64_t b = 0; b < batches; b++) {
    struct bounds bounds = {number(ctx->inputs[1], b * step[1]), number(ctx->inputs[2], b * step[2]),
                            number(ctx->inputs[3], b * step[3]), number(ctx->inputs[4], b * step[4])};
    int64_t left = total - b * per_batch;
    TFC_RETURN_IF_ERROR(sample(&s, bounds, left < per_batch ? left : per_batch));
  }
  return NULL;
}

// Returns element `i` of a tensor that is broadcast to `shape`.
static double broadcast_number(const struct tfc_tensor *t, const struct tfc_shape *shape, int64_t i) {
  int64_t at = 0, stride = 1;
  for (int d = shape->rank - 1, e = t->shape.rank - 1; e >= 0; i /= shape->dims[d], d--, e--) {
    if (t->shape.dims[e] != 1) at += i % shape->dims[d] * stride;
    stride *= t->shape.dims[e];
  }
  return number(t, at);
}

// Inputs: shape, seed, means, stddevs, minvals, maxvals; the output has `shape`, which ends in the shape to which the
// parameters are broadcast.
static tfc_status stateless_parameterized(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *const *parameters = ctx->inputs + 2;
  struct tfc_shape shape, batch = parameters[0]->shape;
  struct tfc_tensor *out = NULL;
  struct place place = {0};
  struct sampler s = {.type = parameters[0]->dtype, .store = store, .arg = &place};
  TFC_RETURN_IF_ERROR(tfc_random_of_seed(ctx->inputs[1], &s.generator));
  for (int i = 1; i < 4; i++) {
    struct tfc_shape joined;
    TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&batch, &parameters[i]->shape, &joined));
    batch = joined;
  }
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 1, "Input shape should be a vector, got shape: %s",
                   tfc_shape_show(&ctx->inputs[0]->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &shape));
  bool ends = batch.rank <= shape.rank;
  for (int i = 1; ends && i <= batch.rank; i++) ends = batch.dims[batch.rank - i] == shape.dims[shape.rank - i];
  TFC_KERNEL_CHECK(ends, "Shape passed in must end with broadcasted shape.");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, s.type, &shape, &out));
  int64_t total = tfc_tensor_elements(out), batches = tfc_shape_elements(&batch);
  if (total == 0) return NULL;
  for (int64_t b = 0; b < batches; b++) {
    struct bounds bounds = {broadcast_number(parameters[0], &batch, b), broadcast_number(parameters[1], &batch, b),
                            broadcast_number(parameters[2], &batch, b), broadcast_number(parameters[3], &batch, b)};
    place = (struct place){.out = out, .at = b, .step = batches};
    TFC_RETURN_IF_ERROR(sample(&s, bounds, total / batches));
  }
  return NULL;
}

static tfc_status shape_parameterized(struct tfc_shape_ctx *ctx) {
  struct tfc_shape unused;
  for (uint32_t i = 1; i < 5; i++)
    if (ctx->inputs[i]->rank > 1)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d", ctx->inputs[i]->rank);
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 1, &unused));
  ctx->outputs[0] = ops_described_shape(ctx, 0);
  return NULL;
}
static tfc_status shape_stateless(struct tfc_shape_ctx *ctx) {
  struct tfc_shape unused;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 1, &unused));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &unused));
  ctx->outputs[0] = ops_described_shape(ctx, 0);
  return NULL;
}
OPS_COST_PER_ELEMENT(cost_sample, 200)
static const struct tfc_op_def random_truncated_rows[] = {
    {.name = "ParameterizedTruncatedNormal",
     .inputs = "shape: T, means: dtype, stdevs: dtype, minvals: dtype, maxvals: dtype",
     .outputs = "output: dtype",
     .attrs = "seed: int = 0, seed2: int = 0, dtype: {half, bfloat16, float, double}, T: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .types = TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE) | TFC_TYPE_BIT(TFC_HALF),
     .host_inputs = UINT32_MAX,
     .node_state = TFC_RANDOM_NODE_STATE,
     .shape = shape_parameterized,
     .cost = cost_sample,
     .prepare = tfc_random_prepare,
     .kernel = parameterized},
    {.name = "StatelessParameterizedTruncatedNormal",
     .inputs = "shape: S, seed: Tseed, means: dtype, stddevs: dtype, minvals: dtype, maxvals: dtype",
     .outputs = "output: dtype",
     .attrs = "S: {int32, int64}, Tseed: {int32, int64} = int64, dtype: {half, float, double}",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = UINT32_MAX,
     .shape = shape_stateless,
     .cost = cost_sample,
     .kernel = stateless_parameterized,
     .samples = "int32[2]=[3,2], int64[2]=[1,2], float[2]=[0,5], float[]=1, float[]=-1, float[]=4"},
};
TFC_REGISTER_OPS(random_truncated_rows);
