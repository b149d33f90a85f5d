// Element-wise operations with one operand (signs, roots, reciprocals, rounding) and the operations for their
// gradients.
#include <math.h>
#include <tgmath.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// --- Kernels -----------------------------------------------------------------------------------------------------
OPS_FLOATS_COMPLEX(OPS_UNARY_SAME_LOOP, Neg, -x)
OPS_INTS(OPS_UNARY_SAME_LOOP, Neg, (U)0 - (U)x)
OPS_UNARY_TABLE(Neg, OPS_NUMBERS, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

OPS_FLOATS(OPS_UNARY_SAME_LOOP, Abs, fabs(x))
OPS_SIGNED(OPS_UNARY_SAME_LOOP, Abs, x < 0 ? (U)0 - (U)x : (U)x)
#define ABS_TYPES(M, ...) OPS_FLOATS(M, __VA_ARGS__) OPS_SIGNED(M, __VA_ARGS__)
OPS_UNARY_TABLE(Abs, ABS_TYPES, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

OPS_UNARY(Square, OPS_NUMBERS, (U)x *(U)x)
OPS_UNARY(Sqrt, OPS_FLOATS_COMPLEX, sqrt(x))
OPS_UNARY(Rsqrt, OPS_FLOATS_COMPLEX, (C)1 / sqrt(x))

// For integers, 1 / 0 gives 0 (in TensorFlow it is undefined).
OPS_FLOATS_COMPLEX(OPS_UNARY_SAME_LOOP, Reciprocal, (C)1 / x)
OPS_INTS(OPS_UNARY_SAME_LOOP, Reciprocal, x == 0 ? 0 : 1 / x)
OPS_UNARY_TABLE(Reciprocal, OPS_NUMBERS, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

OPS_FLOATS(OPS_UNARY_SAME_LOOP, Sign, x != x ? x : (C)((x > 0) - (x < 0)))
OPS_SIGNED(OPS_UNARY_SAME_LOOP, Sign, (x > 0) - (x < 0))
// z / |z|. TensorFlow computes the modulus in vectors of four numbers, and for the last few numbers by a reciprocal; so
// does this.
#define COMPLEX_SIGN(t, r)                                                                                             \
  static void loop_Sign_##t(const void *xv, void *yv, int64_t n) {                                                     \
    const ops_##t *x = xv;                                                                                             \
    ops_##t *y = yv;                                                                                                   \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      const ops_##r a = fabs(creal(x[i])), b = fabs(cimag(x[i])), most = a > b ? a : b, least = a < b ? a : b;         \
      const ops_##r ratio = least / most, one = 1;                                                                     \
      const ops_##r modulus = least == 0 ? most : most * sqrt(1 + ratio * ratio);                                      \
      if (a == 0 && b == 0)                                                                                            \
        y[i] = 0;                                                                                                      \
      else                                                                                                             \
        y[i] = i < n / 4 * 4 ? x[i] / modulus : x[i] * (one / fabs(x[i]));                                             \
    }                                                                                                                  \
  }
COMPLEX_SIGN(c64, f32)
COMPLEX_SIGN(c128, f64)
#define SIGN_TYPES(M, ...) OPS_FLOATS_COMPLEX(M, __VA_ARGS__) OPS_SIGNED(M, __VA_ARGS__)
OPS_UNARY_TABLE(Sign, SIGN_TYPES, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

OPS_UNARY(Floor, OPS_FLOATS, floor(x))
OPS_UNARY(Ceil, OPS_FLOATS, ceil(x))
OPS_UNARY(Rint, OPS_FLOATS, rint(x))
// Halves are rounded to even.
OPS_FLOATS(OPS_UNARY_SAME_LOOP, Round, rint(x))
OPS_SIGNED(OPS_UNARY_SAME_LOOP, Round, x)
OPS_COMPLEX(OPS_UNARY_SAME_LOOP, Round, rint(creal(x)) + rint(cimag(x)) * (C)I)
OPS_UNARY_TABLE(Round, SIGN_TYPES, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

OPS_UNARY(Conj, OPS_COMPLEX, conj(x))
OPS_UNARY(Invert, OPS_INTS, ~(U)x)
OPS_PREDICATE(IsNan, OPS_FLOATS, x != x)
OPS_PREDICATE(IsInf, OPS_FLOATS, fabs(x) == (C)INFINITY)
OPS_PREDICATE(IsFinite, OPS_FLOATS, fabs(x) < (C)INFINITY)

#define BOOL_ONLY(M, ...) M(b8, __VA_ARGS__)
OPS_UNARY(LogicalNot, BOOL_ONLY, !x)

// Computed from the forward output `a` and the incoming gradient `b`. A gradient of 0 gives 0, even where the slope is
// infinite.
OPS_FLOATS(OPS_BINARY_SAME_LOOP, ReciprocalGrad, b == 0 ? 0 : -(a * a) * b)
OPS_COMPLEX(OPS_BINARY_SAME_LOOP, ReciprocalGrad, b == 0 ? 0 : -(conj(a) * conj(a)) * b)
OPS_PAIRED_TABLE(ReciprocalGrad, OPS_FLOATS_COMPLEX, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)
OPS_FLOATS(OPS_BINARY_SAME_LOOP, SqrtGrad, b == 0 ? 0 : (C)0.5 / a * b)
OPS_COMPLEX(OPS_BINARY_SAME_LOOP, SqrtGrad, b == 0 ? 0 : (C)0.5 / conj(a) * b)
OPS_PAIRED_TABLE(SqrtGrad, OPS_FLOATS_COMPLEX, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)
OPS_FLOATS(OPS_BINARY_SAME_LOOP, RsqrtGrad, b == 0 ? 0 : ((C)-0.5 * (a * a)) * (a * b))
OPS_COMPLEX(OPS_BINARY_SAME_LOOP, RsqrtGrad, b == 0 ? 0 : ((C)-0.5 * (conj(a) * conj(a))) * (conj(a) * b))
OPS_PAIRED_TABLE(RsqrtGrad, OPS_FLOATS_COMPLEX, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

// --- Gradients ---------------------------------------------------------------------------------------------------
OPS_GRADIENT(Neg) {
  g->grad_inputs[0] = g_neg(g, G);
  return NULL;
}
OPS_GRADIENT(Abs) {
  g->grad_inputs[0] = g_mul(g, G, grad_op1(g, "Sign", X));
  return NULL;
}
OPS_GRADIENT(Square) { // G (2 x)
  g->grad_inputs[0] = g_mul(g, G, g_mul(g, grad_conj(g, X), grad_const(g, X, 2)));
  return NULL;
}
OPS_GRADIENT(Sqrt) {
  g->grad_inputs[0] = grad_op2(g, "SqrtGrad", Y, G);
  return NULL;
}
OPS_GRADIENT(Rsqrt) {
  g->grad_inputs[0] = grad_op2(g, "RsqrtGrad", Y, G);
  return NULL;
}
OPS_GRADIENT(Reciprocal) {
  g->grad_inputs[0] = grad_op2(g, "ReciprocalGrad", Y, G);
  return NULL;
}
OPS_GRADIENT(ReciprocalGrad) {
  struct tfc_output a = grad_conj(g, X), arrived = grad_conj(g, G);
  struct tfc_output twice = g_mul(g, arrived, grad_const(g, X, -2));
  g->grad_inputs[0] = g_mul(g, g_mul(g, twice, grad_in(g, 1)), a);
  g->grad_inputs[1] = grad_op2(g, "ReciprocalGrad", a, G);
  return NULL;
}
OPS_GRADIENT(SqrtGrad) { // for y = b / (2 a)
  struct tfc_output ga = g_div(g, G, X);
  g->grad_inputs[0] = g_mul(g, g_neg(g, grad_conj(g, ga)), Y);
  g->grad_inputs[1] = g_mul(g, grad_const(g, X, 0.5), ga);
  return NULL;
}
OPS_GRADIENT(RsqrtGrad) { // for y = -b a³ / 2
  struct tfc_output a = grad_conj(g, X), arrived = grad_conj(g, G);
  struct tfc_output scaled = g_mul(g, grad_const(g, X, -1.5), arrived);
  g->grad_inputs[0] = g_mul(g, g_mul(g, scaled, grad_in(g, 1)), grad_op1(g, "Square", a));
  g->grad_inputs[1] = grad_op2(g, "RsqrtGrad", a, G);
  return NULL;
}
OPS_GRADIENT(Sign) {
  g->grad_inputs[0] = grad_op1(g, "ZerosLike", X);
  return NULL;
}
OPS_GRADIENT(Conj) {
  g->grad_inputs[0] = grad_op1(g, "Conj", G);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define ROW(op)                                                                                                        \
  .types = (uint32_t)types_##op, .shape = ops_shape_same, .cost = ops_cost_outputs, .kernel = kernel_##op,             \
  .elementwise = &loops_##op
#define BINARY_ROW(op)                                                                                                 \
  .flags = TFC_OP_INPLACE, .types = (uint32_t)types_##op, .shape = ops_shape_same, .cost = ops_cost_outputs,           \
  .kernel = kernel_##op, .elementwise = &loops_##op, .gradient = gradient_##op,                                        \
  .samples = "float[3,4], float[3,4]; double[5], double[5]"
#define FLOAT_SAMPLES "float[3,4]; double[5]; half[2,3]; float[0]"
#define REAL_SAMPLES FLOAT_SAMPLES "; int32[4]; int64[2,2]"

static const struct tfc_op_def math_unary_rows[] = {
    {.name = "Neg",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
     ROW(Neg),
     .flags = TFC_OP_INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_Neg,
     .samples = REAL_SAMPLES},
    {.name = "Abs",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {bfloat16, half, float, double, int8, int16, int32, int64}",
     ROW(Abs),
     .flags = TFC_OP_INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_Abs,
     .samples = REAL_SAMPLES},
    {.name = "Square",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
              "complex128}",
     ROW(Square),
     .flags = TFC_OP_INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_Square,
     .samples = REAL_SAMPLES},
    {.name = "Sqrt",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX,
     ROW(Sqrt),
     .flags = TFC_OP_INPLACE,
     .gradient = gradient_Sqrt,
     .samples = FLOAT_SAMPLES},
    {.name = "Rsqrt",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX,
     ROW(Rsqrt),
     .flags = TFC_OP_INPLACE,
     .gradient = gradient_Rsqrt,
     .samples = FLOAT_SAMPLES},
    {.name = "Reciprocal",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
     ROW(Reciprocal),
     .flags = TFC_OP_INPLACE,
     .gradient = gradient_Reciprocal,
     .samples = FLOAT_SAMPLES},
    {.name = "Inv",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
     ROW(Reciprocal),
     .flags = TFC_OP_INPLACE,
     .gradient = gradient_Reciprocal,
     .samples = FLOAT_SAMPLES},
    {.name = "Sign",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
     ROW(Sign),
     .flags = TFC_OP_INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_Sign,
     .samples = REAL_SAMPLES},
    {.name = "Floor",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: " OPS_TYPES_FLOAT,
     ROW(Floor),
     .flags = TFC_OP_INPLACE,
     .gradient = ops_grad_none,
     .samples = FLOAT_SAMPLES},
    {.name = "Ceil",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: " OPS_TYPES_FLOAT,
     ROW(Ceil),
     .flags = TFC_OP_INPLACE,
     .gradient = ops_grad_none,
     .samples = FLOAT_SAMPLES},
    {.name = "Rint",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: " OPS_TYPES_FLOAT,
     ROW(Rint),
     .flags = TFC_OP_INPLACE,
     .gradient = ops_grad_none,
     .samples = FLOAT_SAMPLES},
    {.name = "Round",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
     ROW(Round),
     .flags = TFC_OP_INPLACE,
     .gradient = ops_grad_none,
     .samples = REAL_SAMPLES},
    {.name = "Conj",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: {complex64, complex128, variant} = complex64",
     ROW(Conj),
     .flags = TFC_OP_INPLACE,
     .gradient = gradient_Conj,
     .samples = "complex64[3]"},
    {.name = "Invert",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
     ROW(Invert),
     .flags = TFC_OP_INPLACE | TFC_OP_NOT_DIFFERENTIABLE,
     .samples = "int32[4]; uint8[3]"},
    {.name = "IsNan",
     .inputs = "x: T",
     .outputs = "y: bool",
     .attrs = "T: " OPS_TYPES_FLOAT,
     ROW(IsNan),
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .samples = FLOAT_SAMPLES},
    {.name = "IsInf",
     .inputs = "x: T",
     .outputs = "y: bool",
     .attrs = "T: " OPS_TYPES_FLOAT,
     ROW(IsInf),
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .samples = FLOAT_SAMPLES},
    {.name = "IsFinite",
     .inputs = "x: T",
     .outputs = "y: bool",
     .attrs = "T: " OPS_TYPES_FLOAT,
     ROW(IsFinite),
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .samples = FLOAT_SAMPLES},
    {.name = "LogicalNot",
     .inputs = "x: bool",
     .outputs = "y: bool",
     ROW(LogicalNot),
     .flags = TFC_OP_INPLACE | TFC_OP_NOT_DIFFERENTIABLE,
     .samples = "bool[4]; bool[]"},
    {.name = "ReciprocalGrad",
     .inputs = "y: T, dy: T",
     .outputs = "z: T",
     .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX,
     BINARY_ROW(ReciprocalGrad)},
    {.name = "InvGrad",
     .inputs = "y: T, dy: T",
     .outputs = "z: T",
     .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX,
     BINARY_ROW(ReciprocalGrad)},
    {.name = "SqrtGrad",
     .inputs = "y: T, dy: T",
     .outputs = "z: T",
     .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX,
     BINARY_ROW(SqrtGrad)},
    {.name = "RsqrtGrad",
     .inputs = "y: T, dy: T",
     .outputs = "z: T",
     .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX,
     BINARY_ROW(RsqrtGrad)},
};
TFC_REGISTER_OPS(math_unary_rows);
