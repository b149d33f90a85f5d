// Random ops without state: the stream is determined by a seed, which is an input (V1), or by a key and a counter (V2).
#include "runtime/ops/random_stateless.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/random_stream.h"
#include "runtime/ops/row.h"

enum { ALGORITHM_PHILOX = 1, ALGORITHM_AUTO = 3 };

// Scrambles two seeds into a key and a counter, by one draw of a generator with a fixed key.
static struct tfc_philox scramble(uint64_t seed0, uint64_t seed1) {
  struct tfc_philox p = {{(uint32_t)seed0, (uint32_t)(seed0 >> 32), (uint32_t)seed1, (uint32_t)(seed1 >> 32)},
                         {0x3ec8f720u, 0x02461e29u}};
  uint32_t mix[4];
  tfc_philox_draw(&p, mix);
  return (struct tfc_philox){{0, 0, mix[2], mix[3]}, {mix[0], mix[1]}};
}

tfc_status tfc_random_of_seed(const struct tfc_tensor *seed, struct tfc_philox *out) {
  TFC_KERNEL_CHECK(seed->shape.rank == 1 && seed->shape.dims[0] == 2, "seed must have shape [2], not %s",
                   tfc_shape_show(&seed->shape, (char[TFC_SHAPE_TEXT]){0}));
  *out = scramble((uint64_t)tfc_tensor_int(seed, 0), (uint64_t)tfc_tensor_int(seed, 1));
  return NULL;
}

// Reads (shape, seed, ...) or (shape, key, counter, alg, ...); *rest is the first input after these.
tfc_status tfc_random_of_inputs(struct tfc_kernel_ctx *ctx, struct tfc_philox *out, uint32_t *rest) {
  if (ctx->inputs[1]->dtype != TFC_UINT64) {
    *rest = 2;
    return tfc_random_of_seed(ctx->inputs[1], out);
  }
  const struct tfc_tensor *key = ctx->inputs[1], *counter = ctx->inputs[2], *alg = ctx->inputs[3];
  *rest = 4;
  TFC_KERNEL_CHECK(key->shape.rank == 1 && key->shape.dims[0] == 1, "key must have shape [1], not %s",
                   tfc_shape_show(&key->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(counter->shape.rank == 1 && counter->shape.dims[0] >= 2, "counter must have shape [2], not %s",
                   tfc_shape_show(&counter->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(alg->shape.rank == 0, "alg must be a scalar");
  int64_t algorithm = ops_scalar_int(alg);
  if (algorithm != ALGORITHM_PHILOX && algorithm != ALGORITHM_AUTO)
    return tfc_status_make(TFC_UNIMPLEMENTED, "random algorithm %lld (only Philox, 1)", (long long)algorithm);
  const uint64_t *c = counter->data, k = *(const uint64_t *)key->data;
  *out = (struct tfc_philox){{(uint32_t)c[0], (uint32_t)(c[0] >> 32), (uint32_t)c[1], (uint32_t)(c[1] >> 32)},
                             {(uint32_t)k, (uint32_t)(k >> 32)}};
  return NULL;
}

static tfc_status run(struct tfc_kernel_ctx *ctx, enum tfc_random_kind kind) {
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  struct tfc_random_request request = {.kind = kind};
  uint32_t rest;
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 1, "shape must be a vector of {int32,int64}, got shape %s",
                   tfc_shape_show(&ctx->inputs[0]->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &shape));
  TFC_RETURN_IF_ERROR(tfc_random_of_inputs(ctx, &request.generator, &rest));
  if (kind == TFC_RANDOM_UNIFORM_INT) {
    const struct tfc_tensor *low = ctx->inputs[rest], *high = ctx->inputs[rest + 1];
    TFC_KERNEL_CHECK(low->shape.rank == 0 && high->shape.rank == 0, "minval and maxval must be scalars");
    bool big = low->dtype == TFC_UINT64;
    uint64_t a = big ? *(const uint64_t *)low->data : (uint64_t)ops_scalar_int(low);
    uint64_t b = big ? *(const uint64_t *)high->data : (uint64_t)ops_scalar_int(high);
    TFC_KERNEL_CHECK(big ? a < b : (int64_t)a < (int64_t)b, "Need minval < maxval, got %lld >= %lld", (long long)a,
                     (long long)b);
    request.low = (int64_t)a;
    request.range = b - a;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ctx->graph->output_dtypes[ctx->node->output_begin], &shape, &y));
  tfc_random_fill(ctx, &request, y);
  return NULL;
}
static tfc_status uniform(struct tfc_kernel_ctx *ctx) {
  return run(ctx, TFC_RANDOM_UNIFORM);
}
static tfc_status normal(struct tfc_kernel_ctx *ctx) {
  return run(ctx, TFC_RANDOM_NORMAL);
}
static tfc_status truncated(struct tfc_kernel_ctx *ctx) {
  return run(ctx, TFC_RANDOM_TRUNCATED_NORMAL);
}
static tfc_status uniform_int(struct tfc_kernel_ctx *ctx) {
  return run(ctx, TFC_RANDOM_UNIFORM_INT);
}
static tfc_status full_int(struct tfc_kernel_ctx *ctx) {
  return run(ctx, TFC_RANDOM_FULL_INT);
}

// Input: seed; outputs: key [1], counter [2] (, alg).
static tfc_status get_key_counter(struct tfc_kernel_ctx *ctx) {
  struct tfc_philox p;
  struct tfc_tensor *key = NULL, *counter = NULL, *alg = NULL;
  TFC_RETURN_IF_ERROR(tfc_random_of_seed(ctx->inputs[0], &p));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_UINT64, &TFC_SHAPE(1), &key));
  *(uint64_t *)key->data = (uint64_t)p.key[1] << 32 | p.key[0];
  if (ctx->output_count > 1) {
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, TFC_UINT64, &TFC_SHAPE(2), &counter));
    ((uint64_t *)counter->data)[0] = (uint64_t)p.counter[1] << 32 | p.counter[0];
    ((uint64_t *)counter->data)[1] = (uint64_t)p.counter[3] << 32 | p.counter[2];
  }
  if (ctx->output_count > 2) {
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2, TFC_INT32, &TFC_SHAPE_SCALAR, &alg));
    *(int32_t *)alg->data = ALGORITHM_PHILOX;
  }
  return NULL;
}
static tfc_status get_alg(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *alg = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE_SCALAR, &alg));
  *(int32_t *)alg->data = ALGORITHM_PHILOX;
  return NULL;
}

static tfc_status shape_from_input(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ops_described_shape(ctx, 0);
  return NULL;
}
static tfc_status shape_key_counter(struct tfc_shape_ctx *ctx) {
  static const struct tfc_shape shapes[3] = {{.rank = 1, .dims = {1}}, {.rank = 1, .dims = {2}}, {.rank = 0}};
  for (uint32_t i = 0; i < ctx->node->output_count && i < 3; i++) ctx->outputs[i] = shapes[i];
  return NULL;
}
OPS_COST_PER_ELEMENT(cost_uniform, 20)
OPS_COST_PER_ELEMENT(cost_normal, 60)

#define STATELESS(kernel_, cost_) .host_inputs = UINT32_MAX, .shape = shape_from_input, .cost = cost_, .kernel = kernel_
static const struct tfc_op_def random_stateless_rows[] = {
    {.name = "StatelessRandomUniform",
     .inputs = "shape: T, seed: Tseed",
     .outputs = "output: dtype",
     .attrs =
         "dtype: {half, bfloat16, float, double} = float, T: {int32, int64} = int32, Tseed: {int32, int64} = int64",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     STATELESS(uniform, cost_uniform)},
    {.name = "StatelessRandomNormal",
     .inputs = "shape: T, seed: Tseed",
     .outputs = "output: dtype",
     .attrs =
         "dtype: {half, bfloat16, float, double} = float, T: {int32, int64} = int32, Tseed: {int32, int64} = int64",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     STATELESS(normal, cost_normal)},
    {.name = "StatelessTruncatedNormal",
     .inputs = "shape: T, seed: Tseed",
     .outputs = "output: dtype",
     .attrs =
         "dtype: {half, bfloat16, float, double} = float, T: {int32, int64} = int32, Tseed: {int32, int64} = int64",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     STATELESS(truncated, cost_normal)},
    {.name = "StatelessRandomUniformInt",
     .inputs = "shape: T, seed: Tseed, minval: dtype, maxval: dtype",
     .outputs = "output: dtype",
     .attrs = "dtype: {int32, int64}, T: {int32, int64}, Tseed: {int32, int64} = int64",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     STATELESS(uniform_int, cost_uniform)},
    {.name = "StatelessRandomUniformFullInt",
     .inputs = "shape: T, seed: Tseed",
     .outputs = "output: dtype",
     .attrs = "dtype: {int32, int64, uint32, uint64} = uint64, T: {int32, int64} = int32, Tseed: {int32, int64, "
              "uint32, uint64} = int64",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     STATELESS(full_int, cost_uniform)},
    {.name = "StatelessRandomUniformV2",
     .inputs = "shape: Tshape, key: uint64, counter: uint64, alg: int32",
     .outputs = "output: dtype",
     .attrs = "dtype: {half, bfloat16, float, double} = float, Tshape: {int32, int64} = int32",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     STATELESS(uniform, cost_uniform)},
    {.name = "StatelessRandomNormalV2",
     .inputs = "shape: Tshape, key: uint64, counter: uint64, alg: int32",
     .outputs = "output: dtype",
     .attrs = "dtype: {half, bfloat16, float, double} = float, Tshape: {int32, int64} = int32",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     STATELESS(normal, cost_normal)},
    {.name = "StatelessTruncatedNormalV2",
     .inputs = "shape: Tshape, key: uint64, counter: uint64, alg: int32",
     .outputs = "output: dtype",
     .attrs = "dtype: {half, bfloat16, float, double} = float, Tshape: {int32, int64} = int32",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     STATELESS(truncated, cost_normal)},
    {.name = "StatelessRandomUniformIntV2",
     .inputs = "shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, maxval: dtype",
     .outputs = "output: dtype",
     .attrs = "dtype: {int32, int64, uint32, uint64}, Tshape: {int32, int64} = int32",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     STATELESS(uniform_int, cost_uniform)},
    {.name = "StatelessRandomUniformFullIntV2",
     .inputs = "shape: Tshape, key: uint64, counter: uint64, alg: int32",
     .outputs = "output: dtype",
     .attrs = "dtype: {int32, int64, uint32, uint64} = uint64, Tshape: {int32, int64} = int32",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     STATELESS(full_int, cost_uniform)},
    {.name = "StatelessRandomGetKeyCounter",
     .inputs = "seed: Tseed",
     .outputs = "key: uint64, counter: uint64",
     .attrs = "Tseed: {int32, int64} = int64",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .host_outputs = 7,
     .shape = shape_key_counter,
     .kernel = get_key_counter},
    {.name = "StatelessRandomGetKeyCounterAlg",
     .inputs = "seed: Tseed",
     .outputs = "key: uint64, counter: uint64, alg: int32",
     .attrs = "Tseed: {int32, int64} = int64",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .host_outputs = 7,
     .shape = shape_key_counter,
     .kernel = get_key_counter},
    {.name = "StatelessRandomGetAlg",
     .outputs = "alg: int32",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host_outputs = 1,
     .shape = ops_shape_scalar,
     .kernel = get_alg},
};
TFC_REGISTER_OPS(random_stateless_rows);
