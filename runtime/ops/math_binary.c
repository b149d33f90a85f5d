// Element-wise arithmetic of two operands, broadcast against each other.
//
// Integers wrap. Integer division and modulus by zero, and integer powers with a negative exponent, are errors; the
// smallest integer divided by -1 wraps.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// --- Kernels -----------------------------------------------------------------------------------------------------
OPS_BINARY(Add, OPS_NUMBERS, (U)a + (U)b)
OPS_BINARY(Sub, OPS_NUMBERS, (U)a - (U)b)
OPS_BINARY(Mul, OPS_NUMBERS, (U)a *(U)b)

// If an operand is NaN, so is the result.
OPS_FLOATS(OPS_BINARY_SAME_LOOP, Maximum, ((a < b) | (b != b)) ? b : a)
OPS_INTS(OPS_BINARY_SAME_LOOP, Maximum, a < b ? b : a)
OPS_BINARY_TABLE(Maximum, OPS_REALS, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)
OPS_FLOATS(OPS_BINARY_SAME_LOOP, Minimum, ((b < a) | (b != b)) ? b : a)
OPS_INTS(OPS_BINARY_SAME_LOOP, Minimum, b < a ? b : a)
OPS_BINARY_TABLE(Minimum, OPS_REALS, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

#define SQUARED_DIFFERENCE(t, ...) OPS_BINARY_LOOP(t, SquaredDifference, t, OPS_ROUND_##t(a - b) * OPS_ROUND_##t(a - b))
OPS_FLOATS(SQUARED_DIFFERENCE, ~)
OPS_INTS(OPS_BINARY_SAME_LOOP, SquaredDifference, ((U)a - (U)b) * ((U)a - (U)b))
OPS_COMPLEX(OPS_BINARY_SAME_LOOP, SquaredDifference, (a - b) * conj(a - b))
OPS_BINARY_TABLE(SquaredDifference, OPS_NUMBERS, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

OPS_BINARY(DivNoNan, OPS_FLOATS_COMPLEX, b == 0 ? 0 : a / b)
OPS_BINARY(MulNoNan, OPS_FLOATS_COMPLEX, b == 0 ? 0 : a * b)
OPS_BINARY_COSTLY(Atan2, OPS_FLOATS, atan2(a, b))
OPS_BINARY(NextAfter, OPS_WIDE_FLOATS, nextafter(a, b))
OPS_FLOATS(OPS_BINARY_SAME_LOOP, Xdivy, a == 0 ? 0 : a / b)
OPS_BINARY_LOOP(c64, Xdivy, c64, a == 0 ? 0 : ops_divide_c64(a, b))
OPS_BINARY_LOOP(c128, Xdivy, c128, a == 0 ? 0 : ops_divide_c128(a, b))
OPS_BINARY_TABLE(Xdivy, OPS_FLOATS_COMPLEX, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)
OPS_BINARY_COSTLY(Xlogy, OPS_FLOATS_COMPLEX, a == 0 ? 0 : a * log(b))
OPS_FLOATS(OPS_BINARY_SAME_LOOP, Xlog1py, a == 0 ? 0 : a * log1p(b))
OPS_COMPLEX(OPS_BINARY_SAME_LOOP, Xlog1py, a == 0 ? 0 : a * log(1 + b))
OPS_BINARY_TABLE(Xlog1py, OPS_FLOATS_COMPLEX, TFC_DTYPE_NONE, OPS_GRAIN_COSTLY)

// The callers check that integer divisors are not 0.
OPS_FLOATS(OPS_BINARY_SAME_LOOP, Div, a / b)
OPS_BINARY_LOOP(c64, Div, c64, ops_divide_c64(a, b))
OPS_BINARY_LOOP(c128, Div, c128, ops_divide_c128(a, b))
OPS_SIGNED(OPS_BINARY_SAME_LOOP, Div, b == -1 ? (U)0 - (U)a : (U)(a / b))
OPS_UNSIGNED(OPS_BINARY_SAME_LOOP, Div, a / b)
OPS_BINARY_TABLE(Div, OPS_NUMBERS, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

#define TRUNCATE_DIV(t, ...) OPS_BINARY_LOOP(t, TruncateDiv, t, trunc(OPS_ROUND_##t(a / b)))
OPS_FLOATS(TRUNCATE_DIV, ~)
OPS_SIGNED(OPS_BINARY_SAME_LOOP, TruncateDiv, b == -1 ? (U)0 - (U)a : (U)(a / b))
OPS_UNSIGNED(OPS_BINARY_SAME_LOOP, TruncateDiv, a / b)
OPS_BINARY_TABLE(TruncateDiv, OPS_REALS, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

#define FLOOR_DIV(t, ...) OPS_BINARY_LOOP(t, FloorDiv, t, floor(OPS_ROUND_##t(a / b)))
OPS_FLOATS(FLOOR_DIV, ~)
OPS_SIGNED(OPS_BINARY_SAME_LOOP, FloorDiv, b == -1 ? (U)0 - (U)a : (U)(a / b) - (U)(a % b != 0 && (a < 0) != (b < 0)))
OPS_UNSIGNED(OPS_BINARY_SAME_LOOP, FloorDiv, a / b)
OPS_BINARY_TABLE(FloorDiv, OPS_REALS, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

OPS_FLOATS(OPS_BINARY_SAME_LOOP, Mod, fmod(a, b))
OPS_SIGNED(OPS_BINARY_SAME_LOOP, Mod, b == -1 ? 0 : a % b)
OPS_UNSIGNED(OPS_BINARY_SAME_LOOP, Mod, a % b)
OPS_BINARY_TABLE(Mod, OPS_REALS, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

// The remainder has the divisor's sign.
#define FLOOR_MOD(t)                                                                                                   \
  static inline ops_##t##_c floor_mod_##t(ops_##t##_c a, ops_##t##_c b) {                                              \
    ops_##t##_c r = fmod(a, b);                                                                                        \
    return r != 0 && (b < 0) != (r < 0) ? r + b : r;                                                                   \
  }
FLOOR_MOD(f32)
FLOOR_MOD(f64)
#define FLOOR_MOD_OF(x, y) _Generic((x), float : floor_mod_f32, double : floor_mod_f64)(x, y)
OPS_FLOATS(OPS_BINARY_SAME_LOOP, FloorMod, FLOOR_MOD_OF(a, b))
OPS_SIGNED(OPS_BINARY_SAME_LOOP, FloorMod, b == -1 ? 0 : a % b + ((a % b != 0 && (b < 0) != (a % b < 0)) ? b : 0))
OPS_UNSIGNED(OPS_BINARY_SAME_LOOP, FloorMod, a % b)
OPS_BINARY_TABLE(FloorMod, OPS_REALS, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

// Integer powers by squaring.
#define INT_POWER(t, ...)                                                                                              \
  static inline ops_##t##_u power_##t(ops_##t##_u base, uint64_t n) {                                                  \
    ops_##t##_u r = 1;                                                                                                 \
    for (; n; n >>= 1, base *= base)                                                                                   \
      if (n & 1) r *= base;                                                                                            \
    return r;                                                                                                          \
  }
#define POWER_LOOP(t, ...) OPS_BINARY_LOOP(t, Pow, t, power_##t((U)a, (uint64_t)b))
OPS_INTS(INT_POWER, ~)
OPS_INTS(POWER_LOOP, ~)
OPS_FLOATS_COMPLEX(OPS_BINARY_SAME_LOOP, Pow, pow(a, b))
OPS_BINARY_TABLE(Pow, OPS_NUMBERS, TFC_DTYPE_NONE, OPS_GRAIN_COSTLY)

// Whether an element is zero (or negative).
#define HAS_ZERO(t, ...)                                                                                               \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) found |= ((const ops_##t *)x->data)[i] == 0;                                       \
    break;
#define HAS_NEGATIVE(t, ...)                                                                                           \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) found |= ((const ops_##t *)x->data)[i] < 0;                                        \
    break;
static bool has_zero(const struct tfc_tensor *x) {
  int64_t n = tfc_tensor_elements(x);
  bool found = false;
  switch (x->dtype) {
    OPS_INTS(HAS_ZERO, ~)
  default: break;
  }
  return found;
}
static bool has_negative(const struct tfc_tensor *x) {
  int64_t n = tfc_tensor_elements(x);
  bool found = false;
  switch (x->dtype) {
    OPS_SIGNED(HAS_NEGATIVE, ~)
  default: break;
  }
  return found;
}

static tfc_status divide(struct tfc_kernel_ctx *ctx, ops_binary_fn *const *table) {
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  if (tfc_dtype_is_integer(b->dtype) && tfc_tensor_elements(a) != 0)
    TFC_KERNEL_CHECK(!has_zero(b), "Integer division by zero");
  return ops_binary_kernel(ctx, table, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP);
}
static tfc_status divide_Div(struct tfc_kernel_ctx *ctx) {
  return divide(ctx, table_Div);
}
static tfc_status divide_TruncateDiv(struct tfc_kernel_ctx *ctx) {
  return divide(ctx, table_TruncateDiv);
}
static tfc_status divide_FloorDiv(struct tfc_kernel_ctx *ctx) {
  return divide(ctx, table_FloorDiv);
}
static tfc_status divide_Mod(struct tfc_kernel_ctx *ctx) {
  return divide(ctx, table_Mod);
}
static tfc_status divide_FloorMod(struct tfc_kernel_ctx *ctx) {
  return divide(ctx, table_FloorMod);
}
static tfc_status checked_Pow(struct tfc_kernel_ctx *ctx) {
  if (tfc_tensor_elements(ctx->inputs[0]) != 0)
    TFC_KERNEL_CHECK(!has_negative(ctx->inputs[1]), "Integers to negative integer powers are not allowed");
  return kernel_Pow(ctx);
}

// The sum of strings joins them.
struct join_job {
  bool failed;
};
static void join_run(void *arg, const void *const in[3], const int64_t step[3], void *y, int64_t n) {
  struct join_job *job = arg;
  const struct tfc_string *a = in[0], *b = in[1];
  struct tfc_string *out = y;
  for (int64_t i = 0; i < n; i++, a += step[0], b += step[1]) {
    size_t size = a->size + b->size;
    char *text = size ? malloc(size) : NULL;
    if (size && !text) {
      job->failed = true;
      return;
    }
    if (a->size) memcpy(text, a->data, a->size);
    if (b->size) memcpy(text + a->size, b->data, b->size);
    out[i] = (struct tfc_string){text, size};
  }
}
static tfc_status add_any(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  if (a->dtype != TFC_STRING) return kernel_Add(ctx);
  struct join_job join = {false};
  struct tfc_tensor *y = NULL;
  size_t size = sizeof(struct tfc_string);
  struct ops_broadcast_job job = {
      .count = 2, .fn = join_run, .arg = &join, .in = {a->data, b->data}, .size = {size, size}, .out_size = size};
  const struct tfc_shape *shapes[2] = {&a->shape, &b->shape};
  TFC_RETURN_IF_ERROR(ops_broadcast_plan(shapes, 2, &job.plan));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &job.plan.shape, &y));
  job.out = y->data;
  ops_broadcast_run(&job, 0, job.plan.total);
  return join.failed ? tfc_status_no_memory(NULL) : NULL;
}

// --- Gradients ---------------------------------------------------------------------------------------------------
// Sets the gradients of both inputs: sums over what was broadcast.
static tfc_status both(struct tfc_grad_ctx *g, struct tfc_output gx, struct tfc_output gy) {
  grad_unbroadcast(g, X, g->input_shapes[0], grad_in(g, 1), g->input_shapes[1], &gx, &gy);
  g->grad_inputs[0] = gx;
  g->grad_inputs[1] = gy;
  return NULL;
}
#define X2 (grad_in(g, 1))

OPS_GRADIENT(Add) {
  return both(g, G, G);
}
OPS_GRADIENT(Sub) {
  return both(g, G, g_neg(g, G));
}
OPS_GRADIENT(Mul) {
  struct tfc_output gx = g_mul(g, G, grad_conj(g, X2));
  return both(g, gx, g_mul(g, grad_conj(g, X), G));
}
OPS_GRADIENT(MulNoNan) {
  struct tfc_output gx = grad_op2(g, "MulNoNan", G, X2);
  return both(g, gx, grad_op2(g, "MulNoNan", X, G));
}
static tfc_status quotient(struct tfc_grad_ctx *g, const char *op) { // gradients G / y and G ((-x / y) / y)
  struct tfc_output x = grad_conj(g, X), y = grad_conj(g, X2);
  struct tfc_output gx = grad_op2(g, op, G, y);
  struct tfc_output once = grad_op2(g, op, g_neg(g, x), y);
  return both(g, gx, g_mul(g, G, grad_op2(g, op, once, y)));
}
OPS_GRADIENT(RealDiv) {
  return quotient(g, "RealDiv");
}
OPS_GRADIENT(DivNoNan) {
  return quotient(g, "DivNoNan");
}
OPS_GRADIENT(FloorMod) {
  struct tfc_output floor = grad_op2(g, "FloorDiv", X, X2);
  return both(g, G, g_mul(g, G, g_neg(g, floor)));
}
OPS_GRADIENT(Pow) {
  struct tfc_output x = grad_conj(g, X), y = grad_conj(g, X2);
  struct tfc_output power = grad_op2(g, "Pow", x, g_sub(g, y, grad_const(g, y, 1)));
  struct tfc_output gx = g_mul(g, g_mul(g, G, y), power);
  struct tfc_output zero = grad_const(g, x, 0);
  bool is_complex = tfc_dtype_is_complex(grad_type(g, x));
  struct tfc_output mask = grad_op2(g, is_complex ? "NotEqual" : "Greater", x, zero);
  struct tfc_output safe = grad_op3(g, "SelectV2", mask, x, grad_op1(g, "OnesLike", x));
  struct tfc_output log = grad_op3(g, "SelectV2", mask, grad_op1(g, "Log", safe), grad_op1(g, "ZerosLike", x));
  return both(g, gx, g_mul(g, g_mul(g, G, grad_conj(g, Y)), log));
}
static tfc_status extremum(struct tfc_grad_ctx *g, const char *wins) { // if both are equal, x gets the gradient
  struct tfc_output mask = grad_op2(g, wins, X, X2), zeros = grad_op1(g, "ZerosLike", G);
  struct tfc_output gx = grad_op3(g, "SelectV2", mask, G, zeros);
  return both(g, gx, grad_op3(g, "SelectV2", mask, zeros, G));
}
OPS_GRADIENT(Maximum) {
  return extremum(g, "GreaterEqual");
}
OPS_GRADIENT(Minimum) {
  return extremum(g, "LessEqual");
}
OPS_GRADIENT(SquaredDifference) {
  struct tfc_output gx = g_mul(g, g_mul(g, grad_const(g, G, 2), G), g_sub(g, X, X2));
  return both(g, gx, g_neg(g, gx));
}
OPS_GRADIENT(Atan2) { // for (y, x): x G / (y² + x²) and -y G / (y² + x²)
  struct tfc_output sum = g_add(g, grad_op1(g, "Square", X), grad_op1(g, "Square", X2));
  struct tfc_output scaled = g_div(g, G, sum);
  struct tfc_output gy = g_mul(g, X2, scaled);
  return both(g, gy, g_mul(g, g_neg(g, X), scaled));
}
// These functions are a f(y), and 0 if a is 0: their derivative by a is f(y), or 0 if a is 0. This is 0 where a is 0,
// and 1 elsewhere.
static struct tfc_output not_zero(struct tfc_grad_ctx *g) {
  return grad_cast(g, grad_op2(g, "NotEqual", X, grad_const(g, X, 0)), grad_type(g, X));
}
OPS_GRADIENT(Xlogy) {
  struct tfc_output px = grad_op2(g, "Xlogy", not_zero(g), X2), py = grad_op2(g, "Xdivy", X, X2);
  struct tfc_output gx = g_mul(g, px, G);
  return both(g, gx, g_mul(g, py, G));
}
OPS_GRADIENT(Xlog1py) {
  struct tfc_output px = grad_op2(g, "Xlog1py", not_zero(g), X2);
  struct tfc_output py = grad_op2(g, "Xdivy", X, g_add(g, X2, grad_const(g, X2, 1)));
  struct tfc_output gx = g_mul(g, px, G);
  return both(g, gx, g_mul(g, py, G));
}
OPS_GRADIENT(Xdivy) {
  struct tfc_output px = grad_op2(g, "Xdivy", not_zero(g), X2);
  struct tfc_output square = grad_op2(g, "Pow", X2, grad_const(g, X2, 2));
  struct tfc_output py = grad_op2(g, "Xdivy", g_neg(g, X), square);
  struct tfc_output gx = g_mul(g, px, G);
  return both(g, gx, g_mul(g, py, G));
}
OPS_GRADIENT(NextAfter) {
  struct tfc_output gx = g_mul(g, grad_op1(g, "OnesLike", X), G);
  return both(g, gx, g_mul(g, grad_op1(g, "ZerosLike", X2), G));
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define FLOATS                                                                                                         \
  "float[3,4], float[3,4]; float[3,4], float[4]; float[2,1,4], float[3,1]; float[], float[5]; double[3], double[3]; "  \
  "half[4], half[4]; float[0,3], float[3]"
#define REALS FLOATS "; int32[4], int32[4]; int64[2,1], int64[3]"
#define ROW(op, run)                                                                                                   \
  .types = (uint32_t)types_##op, .shape = ops_shape_broadcast, .cost = ops_cost_outputs, .kernel = run,                \
  .elementwise = &loops_##op
#define INPLACE .flags = TFC_OP_INPLACE
#define COMMUTES .flags = TFC_OP_INPLACE | TFC_OP_COMMUTATIVE

static const struct tfc_op_def math_binary_rows[] = {
    {.name = "Add",
     .plan_trait = TFC_PLAN_ADD,
     .broadcasts = true,
     .is_cheap = true,
     .role = TFC_ROLE_ADD,
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}",
     .types = (uint32_t)types_Add | TFC_TYPE_BIT(TFC_STRING),
     .host = {"T", TFC_INT32_BIT},
     .shape = ops_shape_broadcast,
     .cost = ops_cost_outputs,
     .kernel = add_any,
     INPLACE,
     .gradient = gradient_Add,
     .samples = REALS},
    {.name = "AddV2",
     .plan_trait = TFC_PLAN_ADD,
     .broadcasts = true,
     .is_cheap = true,
     .role = TFC_ROLE_ADD,
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, "
              "complex128}",
     ROW(Add, kernel_Add),
     COMMUTES,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_Add,
     .samples = REALS},
    {.name = "Sub",
     .plan_trait = TFC_PLAN_SUBTRACT,
     .broadcasts = true,
     .is_cheap = true,
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, "
              "uint32, uint64}",
     ROW(Sub, kernel_Sub),
     INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_Sub,
     .samples = REALS},
    {.name = "Mul",
     .plan_trait = TFC_PLAN_MULTIPLY,
     .broadcasts = true,
     .is_cheap = true,
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
              "complex128}",
     ROW(Mul, kernel_Mul),
     COMMUTES,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_Mul,
     .samples = REALS},
    {.name = "MulNoNan",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX,
     ROW(MulNoNan, kernel_MulNoNan),
     INPLACE,
     .gradient = gradient_MulNoNan,
     .samples = FLOATS},
    {.name = "Div",
     .broadcasts = true,
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
              "complex128}",
     ROW(Div, divide_Div),
     INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_RealDiv,
     .samples = FLOATS},
    {.name = "RealDiv",
     .broadcasts = true,
     .is_cheap = true,
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
              "complex128}",
     ROW(Div, divide_Div),
     INPLACE,
     .gradient = gradient_RealDiv,
     .samples = FLOATS},
    {.name = "DivNoNan",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {half, float, bfloat16, double, complex64, complex128}",
     ROW(DivNoNan, kernel_DivNoNan),
     INPLACE,
     .gradient = gradient_DivNoNan,
     .samples = FLOATS},
    {.name = "TruncateDiv",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
              "complex128}",
     ROW(TruncateDiv, divide_TruncateDiv),
     INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .gradient = ops_grad_none,
     .samples = FLOATS},
    {.name = "FloorDiv",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
              "complex128}",
     ROW(FloorDiv, divide_FloorDiv),
     INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_IN_PIECES,
     .gradient = ops_grad_none,
     .samples = FLOATS},
    {.name = "Mod",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {int32, int64, half, half, bfloat16, float, double}",
     ROW(Mod, divide_Mod),
     .flags = TFC_OP_INPLACE | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"T", TFC_INT32_BIT},
     .samples = FLOATS},
    {.name = "TruncateMod",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {int32, int64, bfloat16, half, float, double}",
     ROW(Mod, divide_Mod),
     .flags = TFC_OP_INPLACE | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"T", TFC_INT32_BIT},
     .samples = FLOATS},
    {.name = "FloorMod",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}",
     ROW(FloorMod, divide_FloorMod),
     INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_FloorMod,
     .samples = FLOATS},
    {.name = "Pow",
     .broadcasts = true,
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
     ROW(Pow, checked_Pow),
     INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_Pow,
     .samples = FLOATS},
    {.name = "Maximum",
     .broadcasts = true,
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
     ROW(Maximum, kernel_Maximum),
     INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .gradient = gradient_Maximum,
     .samples = REALS},
    {.name = "Minimum",
     .broadcasts = true,
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
     ROW(Minimum, kernel_Minimum),
     INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .gradient = gradient_Minimum,
     .samples = REALS},
    {.name = "SquaredDifference",
     .broadcasts = true,
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
     ROW(SquaredDifference, kernel_SquaredDifference),
     COMMUTES,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_SquaredDifference,
     .samples = REALS},
    {.name = "Atan2",
     .inputs = "y: T, x: T",
     .outputs = "z: T",
     .attrs = "T: " OPS_TYPES_FLOAT,
     ROW(Atan2, kernel_Atan2),
     INPLACE,
     .gradient = gradient_Atan2,
     .samples = FLOATS},
    {.name = "NextAfter",
     .inputs = "x1: T, x2: T",
     .outputs = "output: T",
     .attrs = "T: {double, float} = float",
     ROW(NextAfter, kernel_NextAfter),
     INPLACE,
     .gradient = gradient_NextAfter,
     .samples = "float[3,4], float[3,4]; double[3], double[2,3]"},
    {.name = "Xdivy",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {half, bfloat16, float, double, complex64, complex128}",
     ROW(Xdivy, kernel_Xdivy),
     INPLACE,
     .gradient = gradient_Xdivy,
     .samples = FLOATS},
    {.name = "Xlogy",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {half, bfloat16, float, double, complex64, complex128}",
     ROW(Xlogy, kernel_Xlogy),
     INPLACE,
     .gradient = gradient_Xlogy,
     .samples = FLOATS},
    {.name = "Xlog1py",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {half, bfloat16, float, double, complex64, complex128}",
     ROW(Xlog1py, kernel_Xlog1py),
     INPLACE,
     .gradient = gradient_Xlog1py,
     .samples = FLOATS},
};
TFC_REGISTER_OPS(math_binary_rows);
