// Operations on generators whose state is a variable (tf.random.Generator): RngReadAndSkip, RngSkip, and the older ops
// that draw numbers themselves. The state of Philox is a counter, of two 64-bit words, and a key.
#include "runtime/ops/random_generator.h"
#include "runtime/ops/random_stream.h"
#include "runtime/ops/row.h"
#include "runtime/ops/state_common.h"

enum { STATE_WORDS = 3, DRAWS_PER_NUMBER = 256, PHILOX = 1, AUTO = 3 }; // AUTO: on a CPU that is Philox

static tfc_status check_algorithm(int64_t id) {
  TFC_KERNEL_CHECK(id == PHILOX || id == AUTO, "Unsupported algorithm id: %lld (only Philox, 1, has a counter)",
                   (long long)id);
  return NULL;
}
// Takes the generator from the variable and skips `numbers` in it. `tagged`: the state's first word is the algorithm.
static tfc_status draw(struct tfc_kernel_ctx *ctx, bool tagged, uint64_t numbers, struct tfc_philox *out) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_writable(ctx, 0, &v));
  TFC_KERNEL_CHECK(v->dtype == TFC_INT64, "dtype of RNG state variable must be int64, not %s",
                   tfc_dtype_name(v->dtype));
  TFC_KERNEL_CHECK(v->value.shape.rank == 1, "RNG state must have one and only one dimension, not %d",
                   v->value.shape.rank);
  TFC_KERNEL_CHECK(v->value.shape.dims[0] >= STATE_WORDS + tagged,
                   "For the Philox algorithm, the size of state must be at least %d; got %lld", STATE_WORDS + tagged,
                   (long long)v->value.shape.dims[0]);
  int64_t *state = v->value.data;
  if (tagged) TFC_RETURN_IF_ERROR(check_algorithm(*state++));
  uint64_t low = (uint64_t)state[0], high = (uint64_t)state[1], key = (uint64_t)state[2];
  struct tfc_philox p = {{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)},
                         {(uint32_t)key, (uint32_t)(key >> 32)}};
  *out = p;
  tfc_philox_skip(&p, numbers * DRAWS_PER_NUMBER);
  state[0] = (int64_t)(p.counter[0] | (uint64_t)p.counter[1] << 32);
  state[1] = (int64_t)(p.counter[2] | (uint64_t)p.counter[3] << 32);
  return NULL;
}

tfc_status tfc_random_of_variable(struct tfc_kernel_ctx *ctx, uint64_t numbers, struct tfc_philox *out) {
  const struct tfc_tensor *algorithm = ctx->inputs[1];
  TFC_KERNEL_CHECK(algorithm->shape.rank == 0, "algorithm must be a scalar");
  TFC_RETURN_IF_ERROR(check_algorithm(tfc_tensor_int(algorithm, 0)));
  return draw(ctx, false, numbers, out);
}

static tfc_status skip(struct tfc_kernel_ctx *ctx, bool read) { // inputs: resource, algorithm, delta
  const struct tfc_tensor *delta = ctx->inputs[2];
  struct tfc_tensor *out = NULL;
  struct tfc_philox p;
  TFC_KERNEL_CHECK(delta->shape.rank == 0, "delta must be a scalar");
  TFC_RETURN_IF_ERROR(tfc_random_of_variable(ctx, *(const uint64_t *)delta->data, &p));
  if (!read) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT64, &TFC_SHAPE(STATE_WORDS), &out));
  int64_t *words = out->data;
  words[0] = (int64_t)(p.counter[0] | (uint64_t)p.counter[1] << 32);
  words[1] = (int64_t)(p.counter[2] | (uint64_t)p.counter[3] << 32);
  words[2] = (int64_t)(p.key[0] | (uint64_t)p.key[1] << 32);
  return NULL;
}
static tfc_status read_and_skip(struct tfc_kernel_ctx *ctx) {
  return skip(ctx, true);
}
static tfc_status only_skip(struct tfc_kernel_ctx *ctx) {
  return skip(ctx, false);
}
// --- Generating random numbers ---------------------------------------------------------------------------------------
static tfc_status fill(struct tfc_kernel_ctx *ctx, enum tfc_random_kind kind) {
  const bool tagged = ctx->input_count == 2; // inputs are resource, shape; otherwise resource, algorithm, shape
  struct tfc_random_request request = {.kind = kind};
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[tagged ? 1 : 2], &shape));
  if (kind == TFC_RANDOM_UNIFORM_INT) {
    const struct tfc_tensor *low = ctx->inputs[3], *high = ctx->inputs[4];
    TFC_KERNEL_CHECK(low->shape.rank == 0 && high->shape.rank == 0, "minval and maxval must be 0-D");
    const bool big = low->dtype == TFC_UINT64;
    const uint64_t a = big ? *(const uint64_t *)low->data : (uint64_t)ops_scalar_int(low);
    const uint64_t b = big ? *(const uint64_t *)high->data : (uint64_t)ops_scalar_int(high);
    TFC_KERNEL_CHECK(big ? a < b : (int64_t)a < (int64_t)b, "Need minval < maxval, got %lld >= %lld", (long long)a,
                     (long long)b);
    request.low = (int64_t)a, request.range = b - a;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ctx->graph->output_dtypes[ctx->node->output_begin], &shape, &y));
  const uint64_t numbers = (uint64_t)tfc_tensor_elements(y);
  if (tagged)
    TFC_RETURN_IF_ERROR(draw(ctx, true, numbers, &request.generator));
  else
    TFC_RETURN_IF_ERROR(tfc_random_of_variable(ctx, numbers, &request.generator));
  tfc_random_fill(ctx, &request, y);
  return NULL;
}
static tfc_status uniform(struct tfc_kernel_ctx *ctx) {
  return fill(ctx, TFC_RANDOM_UNIFORM);
}
static tfc_status normal(struct tfc_kernel_ctx *ctx) {
  return fill(ctx, TFC_RANDOM_NORMAL);
}
static tfc_status truncated(struct tfc_kernel_ctx *ctx) {
  return fill(ctx, TFC_RANDOM_TRUNCATED_NORMAL);
}
static tfc_status uniform_int(struct tfc_kernel_ctx *ctx) {
  return fill(ctx, TFC_RANDOM_UNIFORM_INT);
}
static tfc_status full_int(struct tfc_kernel_ctx *ctx) {
  return fill(ctx, TFC_RANDOM_FULL_INT);
}
// Fills a tensor from a stream of the session's own, without a generator.
static tfc_status any_ints(struct tfc_kernel_ctx *ctx) {
  struct tfc_random_request request = {.kind = TFC_RANDOM_FULL_INT};
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 1, "shape must be a vector");
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &shape));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ctx->graph->output_dtypes[ctx->node->output_begin], &shape, &y));
  request.generator = tfc_random_reserve(ctx, (uint64_t)tfc_tensor_elements(y));
  tfc_random_fill(ctx, &request, y);
  return NULL;
}
static tfc_status shape_numbers(struct tfc_shape_ctx *ctx) {
  const uint32_t n = ctx->node->input_count;
  ctx->outputs[0] = ops_described_shape(ctx, n == 5 ? 2 : n - 1);
  return NULL;
}

static tfc_status shape_skip(struct tfc_shape_ctx *ctx) {
  struct tfc_shape scalar;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 0, &scalar));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 0, &scalar));
  if (!ctx->node->output_count) return NULL;
  int64_t algorithm; // algorithm 2, ThreeFry, has a state with one word less
  bool known = ops_known_int(ctx, 1, &algorithm);
  ctx->outputs[0] = TFC_SHAPE(known && algorithm == 2 ? 2 : 3);
  return NULL;
}

#define NUMBERS(kernel_)                                                                                               \
  .outputs = "output: dtype", .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,      \
  .shape = shape_numbers, .kernel = kernel_
#define WIDE_INTS                                                                                                      \
  TFC_TYPE_BIT(TFC_INT32) | TFC_TYPE_BIT(TFC_INT64) | TFC_TYPE_BIT(TFC_UINT32) | TFC_TYPE_BIT(TFC_UINT64)
#define DRAWN "resource: resource, algorithm: int64, shape: shape_dtype"
static const struct tfc_op_def random_generator_rows[] = {
    {.name = "RngReadAndSkip",
     .inputs = "resource: resource, alg: int32, delta: uint64",
     .outputs = "value: int64",
     .attrs = "",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .shape = shape_skip,
     .kernel = read_and_skip},
    {.name = "RngSkip",
     .inputs = "resource: resource, algorithm: int64, delta: int64",
     .outputs = "",
     .attrs = "",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .shape = shape_skip,
     .kernel = only_skip},
    {.name = "StatefulUniform",
     .inputs = DRAWN,
     .attrs = "dtype: type = float, shape_dtype: type = int64",
     .types = OPS_BITS(OPS_FLOATS),
     NUMBERS(uniform)},
    {.name = "StatefulStandardNormal",
     .inputs = "resource: resource, shape: shape_dtype",
     .attrs = "dtype: type = float, shape_dtype: type = int64",
     .types = OPS_BITS(OPS_FLOATS),
     NUMBERS(normal)},
    {.name = "StatefulStandardNormalV2",
     .inputs = DRAWN,
     .attrs = "dtype: type = float, shape_dtype: type = int64",
     .types = OPS_BITS(OPS_FLOATS),
     NUMBERS(normal)},
    {.name = "StatefulTruncatedNormal",
     .inputs = DRAWN,
     .attrs = "dtype: type = float, shape_dtype: type = int64",
     .types = OPS_BITS(OPS_FLOATS),
     NUMBERS(truncated)},
    {.name = "StatefulUniformInt",
     .inputs = DRAWN ", minval: dtype, maxval: dtype",
     .attrs = "dtype: type = int64, shape_dtype: type = int64",
     .types = WIDE_INTS,
     NUMBERS(uniform_int)},
    {.name = "StatefulUniformFullInt",
     .inputs = DRAWN,
     .attrs = "dtype: type = uint64, shape_dtype: type = int64",
     .types = WIDE_INTS,
     NUMBERS(full_int)},
    {.name = "NonDeterministicInts",
     .inputs = "shape: shape_dtype",
     .outputs = "output: dtype",
     .attrs = "dtype: type = int64, shape_dtype: type = int64",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .types = WIDE_INTS,
     .node_state = TFC_RANDOM_NODE_STATE,
     .shape = shape_numbers,
     .prepare = tfc_random_prepare,
     .kernel = any_ints},
};
TFC_REGISTER_OPS(random_generator_rows);
