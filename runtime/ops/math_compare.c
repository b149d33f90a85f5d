// Operations that compare values, combine booleans, or work on the bits of integers.
#include <math.h>
#include <tgmath.h>

#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// --- Kernels -----------------------------------------------------------------------------------------------------
OPS_COMPARE(Less, OPS_REALS, a < b)
OPS_COMPARE(LessEqual, OPS_REALS, a <= b)
OPS_COMPARE(Greater, OPS_REALS, a > b)
OPS_COMPARE(GreaterEqual, OPS_REALS, a >= b)
OPS_COMPARE(Equal, OPS_ALL, a == b)
OPS_COMPARE(NotEqual, OPS_ALL, a != b)

#define BOOL_ONLY(M, ...) M(b8, __VA_ARGS__)
OPS_BINARY(LogicalAnd, BOOL_ONLY, a &b)
OPS_BINARY(LogicalOr, BOOL_ONLY, a | b)

OPS_BINARY(BitwiseAnd, OPS_INTS, (U)a &(U)b)
OPS_BINARY(BitwiseOr, OPS_INTS, (U)a | (U)b)
OPS_BINARY(BitwiseXor, OPS_INTS, (U)a ^ (U)b)

// Shift distances outside of [0, bits) are clamped to that range.
#define BITS ((int)(sizeof(C) * 8))
#define SHIFT_BY(b) ((b) < 0 ? 0 : (uint64_t)(b) > (uint64_t)(BITS - 1) ? BITS - 1 : (int)(b))
OPS_SIGNED(OPS_BINARY_SAME_LOOP, LeftShift, (U)a << SHIFT_BY(b))
OPS_SIGNED(OPS_BINARY_SAME_LOOP, RightShift, a >> SHIFT_BY(b))
#define UNSIGNED_SHIFT_BY(b) ((b) > (C)(BITS - 1) ? BITS - 1 : (int)(b))
OPS_UNSIGNED(OPS_BINARY_SAME_LOOP, LeftShift, (U)a << UNSIGNED_SHIFT_BY(b))
OPS_UNSIGNED(OPS_BINARY_SAME_LOOP, RightShift, a >> UNSIGNED_SHIFT_BY(b))
OPS_BINARY_TABLE(LeftShift, OPS_INTS, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)
OPS_BINARY_TABLE(RightShift, OPS_INTS, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

// Compares strings, for Equal and NotEqual.
static void string_compare(void *arg, const void *const in[3], const int64_t step[3], void *y, int64_t n) {
  const bool *wanted = arg;
  const struct tfc_string *a = in[0], *b = in[1];
  for (int64_t i = 0; i < n; i++) {
    const struct tfc_string *p = &a[i * step[0]], *q = &b[i * step[1]];
    ((bool *)y)[i] = (p->size == q->size && (p->size == 0 || memcmp(p->data, q->data, p->size) == 0)) == *wanted;
  }
}

static tfc_status equality(struct tfc_kernel_ctx *ctx, ops_binary_fn *const *table, bool wanted) {
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  const bool *must_match = ctx->state;
  if (must_match && !*must_match && !tfc_shape_equal(&a->shape, &b->shape)) {
    // incompatible_shape_error is false: tensors whose shapes do not broadcast are unequal, and the result is a scalar.
    struct tfc_shape joined;
    tfc_status s = tfc_shape_broadcast(&a->shape, &b->shape, &joined);
    if (s) {
      tfc_status_free(s);
      struct tfc_tensor *y = NULL;
      TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_BOOL, &TFC_SHAPE_SCALAR, &y));
      *(bool *)y->data = !wanted;
      return NULL;
    }
  }
  if (a->dtype != TFC_STRING) return ops_binary_kernel(ctx, table, TFC_BOOL, OPS_GRAIN_CHEAP);
  struct tfc_tensor *y = NULL;
  struct ops_broadcast_job job = {.count = 2,
                                  .fn = string_compare,
                                  .arg = &wanted,
                                  .in = {a->data, b->data},
                                  .size = {sizeof(struct tfc_string), sizeof(struct tfc_string)},
                                  .out_size = 1};
  const struct tfc_shape *shapes[2] = {&a->shape, &b->shape};
  TFC_RETURN_IF_ERROR(ops_broadcast_plan(shapes, 2, &job.plan));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_BOOL, &job.plan.shape, &y));
  job.out = y->data;
  ops_broadcast_run(&job, 0, job.plan.total);
  return NULL;
}
static tfc_status equal(struct tfc_kernel_ctx *ctx) {
  return equality(ctx, table_Equal, true);
}
static tfc_status not_equal(struct tfc_kernel_ctx *ctx) {
  return equality(ctx, table_NotEqual, false);
}

static tfc_status prepare_equality(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, bool, must_match);
  *must_match = tfc_node_attr_bool(ctx->graph, ctx->node, "incompatible_shape_error", true);
  return NULL;
}

static tfc_status shape_equality(struct tfc_shape_ctx *ctx) {
  if (tfc_node_attr_bool(ctx->graph, ctx->node, "incompatible_shape_error", true)) return ops_shape_broadcast(ctx);
  // Shapes that do not broadcast give a scalar. If one dimension is unknown and the other is not 1, they may or may not
  // broadcast, so the result's shape is unknown.
  const struct tfc_shape *a = ctx->inputs[0], *b = ctx->inputs[1];
  struct tfc_shape joined;
  tfc_status s = tfc_shape_broadcast(a, b, &joined);
  if (s) joined = TFC_SHAPE_SCALAR;
  tfc_status_free(s);
  for (int i = 1; a->rank >= i && b->rank >= i; i++) {
    const int64_t x = a->dims[a->rank - i], y = b->dims[b->rank - i];
    if (tfc_dim_known(x) != tfc_dim_known(y) && x != 1 && y != 1) joined = TFC_SHAPE_UNKNOWN;
  }
  ctx->outputs[0] = joined;
  return NULL;
}

struct approximate_state {
  double tolerance;
};
#define APPROXIMATELY(t, ...)                                                                                          \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      double p = (double)OPS_GET_##t(((const ops_##t *)a->data)[i]);                                                   \
      double q = (double)OPS_GET_##t(((const ops_##t *)b->data)[i]);                                                   \
      ((bool *)y->data)[i] = fabs((ops_##t##_c)(p - q)) <= (ops_##t##_c)tolerance;                                     \
    }                                                                                                                  \
    return NULL;
static tfc_status approximately_equal(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  double tolerance = ((const struct approximate_state *)ctx->state)->tolerance;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(tfc_shape_equal(&a->shape, &b->shape), "x and y must be of the same shape");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_BOOL, &a->shape, &y));
  int64_t n = tfc_tensor_elements(a);
  switch (a->dtype) {
    OPS_FLOATS(APPROXIMATELY, ~)
  default: break;
  }
  switch (a->dtype) {
#define APPROXIMATELY_INT(t, ...)                                                                                      \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      ops_##t p = ((const ops_##t *)a->data)[i], q = ((const ops_##t *)b->data)[i];                                    \
      ((bool *)y->data)[i] = (p > q ? (double)p - (double)q : (double)q - (double)p) <= (double)(ops_##t)tolerance;    \
    }                                                                                                                  \
    return NULL;
    OPS_INTS(APPROXIMATELY_INT, ~)
  default: return ops_unsupported_type(ctx, a->dtype);
  }
}
static tfc_status prepare_approximate(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct approximate_state, state);
  state->tolerance = (float)tfc_node_attr_float(ctx->graph, ctx->node, "tolerance", 1e-5);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define REALS                                                                                                          \
  "float[3,4], float[3,4]; float[3,4], float[4]; float[2,1,4], float[3,1]; int32[4], int32[4]; int64[], int64[3]; "    \
  "float[0,3], float[3]"
#define INTS "int32[4], int32[4]; uint8[2,1], uint8[3]; int64[3], int64[]"
#define BOOLS "bool[4], bool[4]; bool[2,1], bool[3]"
#define ROW(op, flag, given)                                                                                           \
  .types = (uint32_t)types_##op, .flags = TFC_OP_NOT_DIFFERENTIABLE | (flag), .shape = ops_shape_broadcast,            \
  .cost = ops_cost_outputs, .kernel = kernel_##op, .samples = given
#define EQUALITY(run)                                                                                                  \
  .types = (uint32_t)types_Equal | TFC_TYPE_BIT(TFC_STRING), .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_COMMUTATIVE,  \
  .shape = shape_equality, .cost = ops_cost_outputs, .prepare = prepare_equality, .kernel = run, .samples = REALS

static const struct tfc_op_def math_compare_rows[] = {
    {.name = "Less",
     .inputs = "x: T, y: T",
     .outputs = "z: bool",
     .attrs = "T: " OPS_TYPES_REAL,
     ROW(Less, 0, REALS),
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_COMPARED},
    {.name = "LessEqual",
     .inputs = "x: T, y: T",
     .outputs = "z: bool",
     .attrs = "T: " OPS_TYPES_REAL,
     ROW(LessEqual, 0, REALS),
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_COMPARED},
    {.name = "Greater",
     .inputs = "x: T, y: T",
     .outputs = "z: bool",
     .attrs = "T: " OPS_TYPES_REAL,
     ROW(Greater, 0, REALS),
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_COMPARED},
    {.name = "GreaterEqual",
     .plan_trait = TFC_PLAN_AT_LEAST,
     .inputs = "x: T, y: T",
     .outputs = "z: bool",
     .attrs = "T: " OPS_TYPES_REAL,
     ROW(GreaterEqual, 0, REALS),
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_COMPARED},
    {.name = "Equal",
     .inputs = "x: T, y: T",
     .outputs = "z: bool",
     .attrs = "T: type, incompatible_shape_error: bool = true",
     EQUALITY(equal),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "NotEqual",
     .inputs = "x: T, y: T",
     .outputs = "z: bool",
     .attrs = "T: type, incompatible_shape_error: bool = true",
     EQUALITY(not_equal),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ApproximateEqual",
     .inputs = "x: T, y: T",
     .outputs = "z: bool",
     .attrs = "T: " OPS_TYPES_NUMBER ", tolerance: float = 9.99999975e-06",
     .types = OPS_BITS(OPS_REALS),
     .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_COMMUTATIVE,
     .shape = ops_shape_merged,
     .cost = ops_cost_outputs,
     .prepare = prepare_approximate,
     .kernel = approximately_equal,
     .samples = "float[3,4], float[3,4]; int32[4], int32[4]"},
    {.name = "LogicalAnd",
     .inputs = "x: bool, y: bool",
     .outputs = "z: bool",
     ROW(LogicalAnd, TFC_OP_COMMUTATIVE | TFC_OP_INPLACE, BOOLS)},
    {.name = "LogicalOr",
     .inputs = "x: bool, y: bool",
     .outputs = "z: bool",
     ROW(LogicalOr, TFC_OP_COMMUTATIVE | TFC_OP_INPLACE, BOOLS)},
    {.name = "BitwiseAnd",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
     ROW(BitwiseAnd, TFC_OP_COMMUTATIVE | TFC_OP_INPLACE, INTS)},
    {.name = "BitwiseOr",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
     ROW(BitwiseOr, TFC_OP_COMMUTATIVE | TFC_OP_INPLACE, INTS)},
    {.name = "BitwiseXor",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
     ROW(BitwiseXor, TFC_OP_COMMUTATIVE | TFC_OP_INPLACE, INTS)},
    {.name = "LeftShift",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
     ROW(LeftShift, TFC_OP_INPLACE, INTS)},
    {.name = "RightShift",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
     ROW(RightShift, TFC_OP_INPLACE, INTS)},
};
TFC_REGISTER_OPS(math_compare_rows);
