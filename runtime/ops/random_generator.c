// Generators whose state is a variable (tf.random.Generator): RngReadAndSkip, RngSkip. The state of Philox is the
// counter in two words of 64 bits and the key; numbers are drawn from it by the stateless ops.
#include "runtime/ops/math_row.h"
#include "runtime/ops/random_philox.h"
#include "runtime/ops/state_common.h"

enum { STATE_WORDS = 3, DRAWS_PER_NUMBER = 256, PHILOX = 1, AUTO = 3 }; // AUTO: on a CPU that is Philox

tfc_status tfc_random_of_variable(struct tfc_kernel_ctx *ctx, uint64_t numbers, struct tfc_philox *out) {
  const struct tfc_tensor *algorithm = ctx->inputs[1];
  struct tfc_variable *v = NULL;
  TFC_KERNEL_CHECK(algorithm->shape.rank == 0, "algorithm must be a scalar");
  TFC_KERNEL_CHECK(tfc_tensor_int(algorithm, 0) == PHILOX || tfc_tensor_int(algorithm, 0) == AUTO,
                   "Unsupported algorithm id: %lld (only Philox, 1, has a counter)",
                   (long long)tfc_tensor_int(algorithm, 0));
  TFC_RETURN_IF_ERROR(tfc_state_writable(ctx, 0, &v));
  TFC_KERNEL_CHECK(v->dtype == TFC_INT64, "dtype of RNG state variable must be int64, not %s",
                   tfc_dtype_name(v->dtype));
  TFC_KERNEL_CHECK(v->value.shape.rank == 1, "RNG state must have one and only one dimension, not %d",
                   v->value.shape.rank);
  TFC_KERNEL_CHECK(v->value.shape.dims[0] >= STATE_WORDS,
                   "For the Philox algorithm, the size of state must be at least %d; got %lld", STATE_WORDS,
                   (long long)v->value.shape.dims[0]);
  int64_t *state = v->value.data;
  uint64_t low = (uint64_t)state[0], high = (uint64_t)state[1], key = (uint64_t)state[2];
  struct tfc_philox p = {{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)},
                         {(uint32_t)key, (uint32_t)(key >> 32)}};
  *out = p;
  tfc_philox_skip(&p, numbers * DRAWS_PER_NUMBER);
  state[0] = (int64_t)(p.counter[0] | (uint64_t)p.counter[1] << 32);
  state[1] = (int64_t)(p.counter[2] | (uint64_t)p.counter[3] << 32);
  return NULL;
}

static tfc_status skip(struct tfc_kernel_ctx *ctx, bool read) { // resource, algorithm, delta
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
static tfc_status shape_skip(struct tfc_shape_ctx *ctx) {
  struct tfc_shape scalar;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 0, &scalar));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 0, &scalar));
  if (!ctx->node->output_count) return NULL;
  int64_t algorithm; // 2, ThreeFry, has one word less of state
  bool known = ops_known_int(ctx, 1, &algorithm);
  ctx->outputs[0] = TFC_SHAPE(!known ? TFC_DIM_UNKNOWN : algorithm == 2 ? 2 : 3);
  return NULL;
}

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
};
TFC_REGISTER_OPS(random_generator_rows);
