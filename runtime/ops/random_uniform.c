// Random ops that continue their stream from run to run: uniform, normal, truncated normal, uniform integers. As in
// TensorFlow, each run reserves 256 draws for each output, however many it uses.
#include "runtime/ops/element_types.h"
#include "runtime/ops/random_stream.h"
#include "runtime/ops/row.h"

enum { RESERVED_DRAWS_PER_OUTPUT = 256 };

static tfc_status output_of_shape(struct tfc_kernel_ctx *ctx, tfc_dtype dtype, struct tfc_tensor **out) {
  struct tfc_shape shape;
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &shape));
  return tfc_kernel_output(ctx, 0, dtype, &shape, out);
}

static tfc_dtype output_dtype(const struct tfc_kernel_ctx *ctx) {
  return ctx->graph->output_dtypes[ctx->node->output_begin];
}

static tfc_status run_floats(struct tfc_kernel_ctx *ctx, enum tfc_random_kind kind) {
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(output_of_shape(ctx, output_dtype(ctx), &y));
  uint64_t draws = (uint64_t)tfc_tensor_elements(y) * RESERVED_DRAWS_PER_OUTPUT;
  struct tfc_random_request request = {.kind = kind, .generator = tfc_random_reserve(ctx, draws)};
  tfc_random_fill(ctx, &request, y);
  return NULL;
}
static tfc_status random_uniform(struct tfc_kernel_ctx *ctx) {
  return run_floats(ctx, TFC_RANDOM_UNIFORM);
}
static tfc_status random_normal(struct tfc_kernel_ctx *ctx) {
  return run_floats(ctx, TFC_RANDOM_NORMAL);
}
static tfc_status truncated_normal(struct tfc_kernel_ctx *ctx) {
  return run_floats(ctx, TFC_RANDOM_TRUNCATED_NORMAL);
}

static tfc_status random_uniform_int(struct tfc_kernel_ctx *ctx) {
  for (uint32_t i = 1; i < 3; i++)
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 0, "minval and maxval must be scalars");
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(output_of_shape(ctx, output_dtype(ctx), &y));
  int64_t count = tfc_tensor_elements(y);
  if (count == 0) return NULL;
  int64_t low = ops_scalar_int(ctx->inputs[1]), high = ops_scalar_int(ctx->inputs[2]);
  TFC_KERNEL_CHECK(low < high, "Need minval < maxval, got %lld >= %lld", (long long)low, (long long)high);
  struct tfc_random_request request = {
      .kind = TFC_RANDOM_UNIFORM_INT,
      .generator = tfc_random_reserve(ctx, (uint64_t)count * RESERVED_DRAWS_PER_OUTPUT),
      .low = low,
      .range = (uint64_t)high - (uint64_t)low,
  };
  tfc_random_fill(ctx, &request, y);
  return NULL;
}

static tfc_status shape_from_input(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ops_described_shape(ctx, 0);
  return NULL;
}
OPS_COST_PER_ELEMENT(cost_uniform, 20)
OPS_COST_PER_ELEMENT(cost_normal, 60)

static const struct tfc_op_def random_uniform_rows[] = {
    {.name = "RandomUniform",
     .inputs = "shape: T",
     .outputs = "output: dtype",
     .attrs = "seed: int = 0, seed2: int = 0, dtype: {half, bfloat16, float, double}, T: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 1,
     .node_state = TFC_RANDOM_NODE_STATE,
     .shape = shape_from_input,
     .cost = cost_uniform,
     .prepare = tfc_random_prepare,
     .kernel = random_uniform},
    {.name = "RandomStandardNormal",
     .inputs = "shape: T",
     .outputs = "output: dtype",
     .attrs = "seed: int = 0, seed2: int = 0, dtype: {half, bfloat16, float, double}, T: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 1,
     .node_state = TFC_RANDOM_NODE_STATE,
     .shape = shape_from_input,
     .cost = cost_normal,
     .prepare = tfc_random_prepare,
     .kernel = random_normal},
    {.name = "TruncatedNormal",
     .inputs = "shape: T",
     .outputs = "output: dtype",
     .attrs = "seed: int = 0, seed2: int = 0, dtype: {half, bfloat16, float, double}, T: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 1,
     .node_state = TFC_RANDOM_NODE_STATE,
     .shape = shape_from_input,
     .cost = cost_normal,
     .prepare = tfc_random_prepare,
     .kernel = truncated_normal},
    {.name = "RandomUniformInt",
     .inputs = "shape: T, minval: Tout, maxval: Tout",
     .outputs = "output: Tout",
     .attrs = "seed: int = 0, seed2: int = 0, Tout: {int32, int64}, T: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .types = TFC_TYPE_BIT(TFC_INT32) | TFC_TYPE_BIT(TFC_INT64),
     .host_inputs = 7,
     .node_state = TFC_RANDOM_NODE_STATE,
     .shape = shape_from_input,
     .cost = cost_uniform,
     .prepare = tfc_random_prepare,
     .kernel = random_uniform_int},
};
TFC_REGISTER_OPS(random_uniform_rows);
