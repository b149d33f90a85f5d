// Operations that compute exponentials, logarithms, trigonometric and hyperbolic functions of one operand.
//
// exp, log, tanh and sigmoid in float32 are vectorised (math_vector.h); the other functions are libm's. The 16-bit
// floats compute in float32 and round once.
#include <math.h>
#include <tgmath.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/math_vector.h"
#include "runtime/ops/row.h"

// --- Kernels -----------------------------------------------------------------------------------------------------
static inline double sigmoid_f64(double x) {
  return 1 / (1 + exp(-x));
}
static inline float _Complex sigmoid_c64(float _Complex x) {
  return 1 / (1 + exp(-x));
}
static inline double _Complex sigmoid_c128(double _Complex x) {
  return 1 / (1 + exp(-x));
}
#define EXP(x) _Generic((x), float : tfc_expf, double : exp, float _Complex : cexpf, double _Complex : cexp)(x)
#define LOG(x) _Generic((x), float : tfc_logf, double : log, float _Complex : clogf, double _Complex : clog)(x)
#define TANH(x) _Generic((x), float : tfc_tanhf, double : tanh, float _Complex : ctanhf, double _Complex : ctanh)(x)
#define SIGMOID(x)                                                                                                     \
  _Generic((x), float                                                                                                  \
           : tfc_sigmoidf, double                                                                                      \
           : sigmoid_f64, float _Complex                                                                               \
           : sigmoid_c64, double _Complex                                                                              \
           : sigmoid_c128)(x)
#undef exp // <tgmath.h>'s macros would expand once more inside _Generic
#undef log
#undef tanh

OPS_UNARY_COSTLY(Exp, OPS_FLOATS_COMPLEX, EXP(x))
OPS_UNARY_COSTLY(Log, OPS_FLOATS_COMPLEX, LOG(x))
OPS_UNARY_COSTLY(Tanh, OPS_FLOATS_COMPLEX, TANH(x))
OPS_UNARY_COSTLY(Sigmoid, OPS_FLOATS_COMPLEX, SIGMOID(x))

OPS_FLOATS(OPS_UNARY_SAME_LOOP, Expm1, (C)expm1(x))
OPS_COMPLEX(OPS_UNARY_SAME_LOOP, Expm1, EXP(x) - 1)
OPS_UNARY_TABLE(Expm1, OPS_FLOATS_COMPLEX, TFC_DTYPE_NONE, OPS_GRAIN_COSTLY)
OPS_FLOATS(OPS_UNARY_SAME_LOOP, Log1p, (C)log1p(x))
// As in TensorFlow: x log(1+x) / ((1+x) - 1). The rounding of 1+x then does no harm.
#define COMPLEX_LOG1P(t, log_)                                                                                         \
  static inline ops_##t log1p_##t(ops_##t x) {                                                                         \
    const ops_##t y = 1 + x, l = log_(y);                                                                              \
    return y == 1 || y == l ? x : x * ops_divide_##t(l, y - 1);                                                        \
  }
COMPLEX_LOG1P(c64, clogf)
COMPLEX_LOG1P(c128, clog)
OPS_UNARY_LOOP(c64, Log1p, c64, log1p_c64(x))
OPS_UNARY_LOOP(c128, Log1p, c128, log1p_c128(x))
OPS_UNARY_TABLE(Log1p, OPS_FLOATS_COMPLEX, TFC_DTYPE_NONE, OPS_GRAIN_COSTLY)

OPS_UNARY_COSTLY(Sin, OPS_FLOATS_COMPLEX, sin(x))
OPS_UNARY_COSTLY(Cos, OPS_FLOATS_COMPLEX, cos(x))
OPS_UNARY_COSTLY(Tan, OPS_FLOATS_COMPLEX, tan(x))
OPS_UNARY_COSTLY(Asin, OPS_FLOATS_COMPLEX, asin(x))
OPS_UNARY_COSTLY(Acos, OPS_FLOATS_COMPLEX, acos(x))
OPS_UNARY_COSTLY(Atan, OPS_FLOATS_COMPLEX, atan(x))
OPS_UNARY_COSTLY(Sinh, OPS_FLOATS_COMPLEX, sinh(x))
OPS_UNARY_COSTLY(Cosh, OPS_FLOATS_COMPLEX, cosh(x))
OPS_UNARY_COSTLY(Asinh, OPS_FLOATS_COMPLEX, asinh(x))
OPS_UNARY_COSTLY(Acosh, OPS_FLOATS_COMPLEX, acosh(x))
OPS_UNARY_COSTLY(Atanh, OPS_FLOATS_COMPLEX, atanh(x))

// Derivatives, computed from the function's value `a` and the incoming gradient `b`.
#define TANH_SLOPE(t, ...) OPS_BINARY_LOOP(t, TanhGrad, t, b *OPS_ROUND_##t(1 - OPS_ROUND_##t(a * a)))
OPS_FLOATS(TANH_SLOPE, ~)
OPS_COMPLEX(OPS_BINARY_SAME_LOOP, TanhGrad, b *(1 - a * a))
OPS_PAIRED_TABLE(TanhGrad, OPS_FLOATS_COMPLEX, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)
OPS_FLOATS(OPS_BINARY_SAME_LOOP, SigmoidGrad, b *(a *(1 - a)))
OPS_COMPLEX(OPS_BINARY_SAME_LOOP, SigmoidGrad, b *(a *(1 - a)))
OPS_PAIRED_TABLE(SigmoidGrad, OPS_FLOATS_COMPLEX, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)

// --- Gradients ---------------------------------------------------------------------------------------------------
// The gradients G f(x̄) and G / f(ȳ), where another op computes the derivative f.
static tfc_status times(struct tfc_grad_ctx *g, struct tfc_output slope) {
  g->grad_inputs[0] = g_mul(g, G, slope);
  return NULL;
}
OPS_GRADIENT(Exp) {
  return times(g, grad_conj(g, Y));
}
OPS_GRADIENT(Expm1) {
  return times(g, grad_op1(g, "Exp", grad_conj(g, X)));
}
OPS_GRADIENT(Log) {
  return times(g, grad_op1(g, "Reciprocal", grad_conj(g, X)));
}
OPS_GRADIENT(Log1p) {
  struct tfc_output x = grad_conj(g, X);
  return times(g, grad_op1(g, "Reciprocal", g_add(g, grad_const(g, x, 1), x)));
}
OPS_GRADIENT(Sin) {
  return times(g, grad_op1(g, "Cos", grad_conj(g, X)));
}
OPS_GRADIENT(Cos) {
  g->grad_inputs[0] = g_mul(g, g_neg(g, G), grad_op1(g, "Sin", grad_conj(g, X)));
  return NULL;
}
OPS_GRADIENT(Tan) {
  struct tfc_output secant = grad_op1(g, "Reciprocal", grad_op1(g, "Cos", grad_conj(g, X)));
  g->grad_inputs[0] = g_mul(g, grad_op1(g, "Square", secant), G);
  return NULL;
}
static struct tfc_output inverse_root(struct tfc_grad_ctx *g) { // the derivative 1 / sqrt(1 - x²)
  struct tfc_output square = grad_op1(g, "Square", grad_conj(g, X));
  return grad_op1(g, "Reciprocal", grad_op1(g, "Sqrt", g_sub(g, grad_const(g, G, 1), square)));
}
OPS_GRADIENT(Asin) {
  return times(g, inverse_root(g));
}
OPS_GRADIENT(Acos) {
  struct tfc_output inverse = inverse_root(g);
  g->grad_inputs[0] = g_mul(g, g_neg(g, G), inverse);
  return NULL;
}
OPS_GRADIENT(Atan) {
  struct tfc_output square = grad_op1(g, "Square", grad_conj(g, X));
  return times(g, grad_op1(g, "Reciprocal", g_add(g, grad_const(g, G, 1), square)));
}
OPS_GRADIENT(Sinh) {
  return times(g, grad_op1(g, "Cosh", grad_conj(g, X)));
}
OPS_GRADIENT(Cosh) {
  return times(g, grad_op1(g, "Sinh", grad_conj(g, X)));
}
OPS_GRADIENT(Asinh) {
  g->grad_inputs[0] = g_div(g, G, grad_op1(g, "Cosh", grad_conj(g, Y)));
  return NULL;
}
OPS_GRADIENT(Acosh) {
  g->grad_inputs[0] = g_div(g, G, grad_op1(g, "Sinh", grad_conj(g, Y)));
  return NULL;
}
OPS_GRADIENT(Atanh) {
  struct tfc_output square = grad_op1(g, "Square", grad_conj(g, X));
  return times(g, grad_op1(g, "Reciprocal", g_sub(g, grad_const(g, G, 1), square)));
}
OPS_GRADIENT(Tanh) {
  g->grad_inputs[0] = grad_op2(g, "TanhGrad", grad_conj(g, Y), G);
  return NULL;
}
OPS_GRADIENT(Sigmoid) {
  g->grad_inputs[0] = grad_op2(g, "SigmoidGrad", grad_conj(g, Y), G);
  return NULL;
}
OPS_GRADIENT(TanhGrad) { // for y = b (1 - a²)
  struct tfc_output a = grad_conj(g, X), b = grad_conj(g, grad_in(g, 1));
  g->grad_inputs[0] = g_mul(g, g_mul(g, g_mul(g, G, grad_const(g, G, -2)), b), a);
  g->grad_inputs[1] = grad_op2(g, "TanhGrad", a, G);
  return NULL;
}
OPS_GRADIENT(SigmoidGrad) { // for y = b a (1 - a)
  struct tfc_output a = grad_conj(g, X), gb = g_mul(g, G, grad_conj(g, grad_in(g, 1)));
  g->grad_inputs[0] = g_sub(g, gb, g_mul(g, g_mul(g, grad_const(g, gb, 2), gb), a));
  g->grad_inputs[1] = grad_op2(g, "SigmoidGrad", a, G);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define ROW(op)                                                                                                        \
  .flags = TFC_OP_INPLACE, .types = (uint32_t)types_##op, .shape = ops_shape_same, .cost = ops_cost_outputs,           \
  .kernel = kernel_##op, .elementwise = &loops_##op, .gradient = gradient_##op,                                        \
  .samples = "float[3,4]; double[5]; half[2,3]; float[0]"
#define SLOPE_ROW(op)                                                                                                  \
  .flags = TFC_OP_INPLACE, .types = (uint32_t)types_##op, .shape = ops_shape_same, .cost = ops_cost_outputs,           \
  .kernel = kernel_##op, .elementwise = &loops_##op, .gradient = gradient_##op,                                        \
  .samples = "float[3,4], float[3,4]; double[5], double[5]"

static const struct tfc_op_def math_transcendental_rows[] = {
    {.name = "Exp", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Exp)},
    {.name = "Expm1", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Expm1)},
    {.name = "Log", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Log)},
    {.name = "Log1p", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Log1p)},
    {.name = "Sin", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Sin)},
    {.name = "Cos", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Cos)},
    {.name = "Tan", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Tan)},
    {.name = "Asin", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Asin)},
    {.name = "Acos", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Acos)},
    {.name = "Atan", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Atan)},
    {.name = "Sinh", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Sinh)},
    {.name = "Cosh", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Cosh)},
    {.name = "Asinh", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Asinh)},
    {.name = "Acosh", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Acosh)},
    {.name = "Atanh", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Atanh)},
    {.name = "Tanh", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Tanh)},
    {.name = "Sigmoid", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX, ROW(Sigmoid)},
    {.name = "TanhGrad",
     .inputs = "y: T, dy: T",
     .outputs = "z: T",
     .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX,
     SLOPE_ROW(TanhGrad)},
    {.name = "SigmoidGrad",
     .inputs = "y: T, dy: T",
     .outputs = "z: T",
     .attrs = "T: " OPS_TYPES_FLOAT_COMPLEX,
     SLOPE_ROW(SigmoidGrad)},
};
TFC_REGISTER_OPS(math_transcendental_rows);
