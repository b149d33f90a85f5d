// Rows of the kernel table for random ops: those that continue a stream of numbers from step to step, and the stateless
// ones.
#include "runtime/device/cuda/kernels/random.h"

#include "runtime/device/cuda/kernels/common.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/random_stream.h"
#include "runtime/ops/row.h"

_Static_assert((int)TFC_CUDA_RANDOM_FULL_INT == (int)TFC_RANDOM_FULL_INT, "kinds are numbered alike");

static tfc_status fill(struct tfc_cuda_launch *l, enum tfc_random_kind kind, const struct tfc_philox *generator,
                       int64_t low, uint64_t range, struct tfc_tensor *y) {
  struct tfc_cuda_random r = {.low = low, .range = range};
  memcpy(r.counter, generator->counter, sizeof r.counter);
  memcpy(r.key, generator->key, sizeof r.key);
  if (y->size)
    TFC_CUDA_LAUNCHED(l, tfc_cuda_random_fill((int)kind, (int)y->dtype, &r, y->data, tfc_cuda_count(y), l->stream));
  return NULL;
}
static tfc_dtype output_type(const struct tfc_kernel_ctx *ctx) {
  return ctx->graph->output_dtypes[ctx->node->output_begin];
}
static tfc_status output_of(struct tfc_kernel_ctx *ctx, struct tfc_tensor **out) {
  struct tfc_shape shape;
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &shape));
  return tfc_kernel_output(ctx, 0, output_type(ctx), &shape, out);
}

// --- Ops that continue a stream: every input is on the host --------------------------------------------------------
enum { RESERVED_DRAWS_PER_OUTPUT = 256 };
static tfc_status stream_prepare(struct tfc_cuda_prepare *p) {
  if (!tfc_cuda_on_host(p, 0)) TFC_CUDA_DECLINE("the shape is on the device");
  return tfc_random_prepare(p->base);
}
static tfc_status run_floats(struct tfc_cuda_launch *l, enum tfc_random_kind kind) {
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(output_of(l->ctx, &y));
  struct tfc_philox g = tfc_random_reserve(l->ctx, (uint64_t)tfc_cuda_count(y) * RESERVED_DRAWS_PER_OUTPUT);
  return fill(l, kind, &g, 0, 0, y);
}
static tfc_status launch_uniform(struct tfc_cuda_launch *l) {
  return run_floats(l, TFC_RANDOM_UNIFORM);
}
static tfc_status launch_normal(struct tfc_cuda_launch *l) {
  return run_floats(l, TFC_RANDOM_NORMAL);
}
static tfc_status launch_truncated(struct tfc_cuda_launch *l) {
  return run_floats(l, TFC_RANDOM_TRUNCATED_NORMAL);
}
static tfc_status launch_ints(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *low = l->ctx->inputs[1], *high = l->ctx->inputs[2];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(low->shape.rank == 0 && high->shape.rank == 0, "minval and maxval must be scalars");
  TFC_RETURN_IF_ERROR(output_of(l->ctx, &y));
  if (!y->size) return NULL;
  int64_t a = ops_scalar_int(low), b = ops_scalar_int(high);
  TFC_KERNEL_CHECK(a < b, "Need minval < maxval, got %lld >= %lld", (long long)a, (long long)b);
  struct tfc_philox g = tfc_random_reserve(l->ctx, (uint64_t)tfc_cuda_count(y) * RESERVED_DRAWS_PER_OUTPUT);
  return fill(l, TFC_RANDOM_UNIFORM_INT, &g, a, (uint64_t)b - (uint64_t)a, y);
}

// --- Stateless ops: the inputs are shape, seed, … or shape, key, counter, alg, … -----------------------------------
static tfc_status stateless_prepare(struct tfc_cuda_prepare *p) {
  for (uint32_t i = 0; i < p->base->node->input_count; i++)
    if (!tfc_cuda_on_host(p, i)) TFC_CUDA_DECLINE("input %u is on the device", i);
  return NULL;
}
// Makes the generator that the inputs describe: a key and a counter are used as they are; a seed of two numbers is
// turned into a key and a counter by one draw of a generator with a fixed key. *rest: the index of the first input
// after these.
static tfc_status generator_of(struct tfc_kernel_ctx *ctx, struct tfc_philox *out, uint32_t *rest) {
  const struct tfc_tensor *key = ctx->inputs[1];
  if (key->dtype != TFC_UINT64) {
    *rest = 2;
    TFC_KERNEL_CHECK(key->shape.rank == 1 && key->shape.dims[0] == 2, "seed must have shape [2]");
    uint64_t a = (uint64_t)tfc_tensor_int(key, 0), b = (uint64_t)tfc_tensor_int(key, 1);
    struct tfc_philox p = {{(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32)},
                           {0x3ec8f720u, 0x02461e29u}};
    uint32_t mix[4];
    tfc_philox_draw(&p, mix);
    *out = (struct tfc_philox){{0, 0, mix[2], mix[3]}, {mix[0], mix[1]}};
    return NULL;
  }
  const struct tfc_tensor *counter = ctx->inputs[2], *alg = ctx->inputs[3];
  *rest = 4;
  TFC_KERNEL_CHECK(key->shape.rank == 1 && key->shape.dims[0] == 1 && counter->shape.rank == 1 &&
                       counter->shape.dims[0] >= 2 && alg->shape.rank == 0,
                   "key must have shape [1], counter [2], alg []");
  int64_t algorithm = ops_scalar_int(alg);
  if (algorithm != 1 && algorithm != 3)
    return tfc_status_make(TFC_UNIMPLEMENTED, "random algorithm %lld (only Philox, 1)", (long long)algorithm);
  const uint64_t *c = counter->data, k = *(const uint64_t *)key->data;
  *out = (struct tfc_philox){{(uint32_t)c[0], (uint32_t)(c[0] >> 32), (uint32_t)c[1], (uint32_t)(c[1] >> 32)},
                             {(uint32_t)k, (uint32_t)(k >> 32)}};
  return NULL;
}
static tfc_status run_stateless(struct tfc_cuda_launch *l, enum tfc_random_kind kind) {
  struct tfc_philox g;
  struct tfc_tensor *y = NULL;
  uint32_t rest;
  uint64_t a = 0, b = 0;
  TFC_RETURN_IF_ERROR(generator_of(l->ctx, &g, &rest));
  if (kind == TFC_RANDOM_UNIFORM_INT) {
    const struct tfc_tensor *low = l->ctx->inputs[rest], *high = l->ctx->inputs[rest + 1];
    TFC_KERNEL_CHECK(low->shape.rank == 0 && high->shape.rank == 0, "minval and maxval must be scalars");
    bool big = low->dtype == TFC_UINT64;
    a = big ? *(const uint64_t *)low->data : (uint64_t)ops_scalar_int(low);
    b = big ? *(const uint64_t *)high->data : (uint64_t)ops_scalar_int(high);
    TFC_KERNEL_CHECK(big ? a < b : (int64_t)a < (int64_t)b, "Need minval < maxval, got %lld >= %lld", (long long)a,
                     (long long)b);
  }
  TFC_RETURN_IF_ERROR(output_of(l->ctx, &y));
  return fill(l, kind, &g, (int64_t)a, b - a, y);
}
#define STATELESS(name, kind)                                                                                          \
  static tfc_status name(struct tfc_cuda_launch *l) {                                                                  \
    return run_stateless(l, kind);                                                                                     \
  }
STATELESS(stateless_uniform, TFC_RANDOM_UNIFORM)
STATELESS(stateless_normal, TFC_RANDOM_NORMAL)
STATELESS(stateless_truncated, TFC_RANDOM_TRUNCATED_NORMAL)
STATELESS(stateless_int, TFC_RANDOM_UNIFORM_INT)
STATELESS(stateless_full, TFC_RANDOM_FULL_INT)

#define STREAM(op, launch, on)                                                                                         \
  { op, TFC_CUDA_INDEX, stream_prepare, launch, TFC_CUDA_NO_CAPTURE | (on) }
#define BOTH(op, launch, on)                                                                                           \
  {op, TFC_CUDA_INDEX, stateless_prepare, launch, TFC_CUDA_NO_CAPTURE | (on)}, {                                       \
    op "V2", TFC_CUDA_INDEX, stateless_prepare, launch, TFC_CUDA_NO_CAPTURE | (on)                                     \
  }
static const struct tfc_cuda_kernel random_rows[] = {
    STREAM("RandomUniform", launch_uniform, TFC_CUDA_ON_FLOATS),
    STREAM("RandomStandardNormal", launch_normal, TFC_CUDA_ON_FLOATS),
    STREAM("TruncatedNormal", launch_truncated, TFC_CUDA_ON_FLOATS),
    STREAM("RandomUniformInt", launch_ints, TFC_CUDA_ON_WORDS),
    BOTH("StatelessRandomUniform", stateless_uniform, TFC_CUDA_ON_FLOATS),
    BOTH("StatelessRandomNormal", stateless_normal, TFC_CUDA_ON_FLOATS),
    BOTH("StatelessTruncatedNormal", stateless_truncated, TFC_CUDA_ON_FLOATS),
    BOTH("StatelessRandomUniformInt", stateless_int, TFC_CUDA_ON_WORDS),
    BOTH("StatelessRandomUniformFullInt", stateless_full, TFC_CUDA_ON_WORDS),
};
TFC_CUDA_KERNELS(random_rows);
