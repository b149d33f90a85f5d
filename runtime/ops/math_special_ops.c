// Operations that compute special functions: error functions, gamma functions and related ones, Bessel functions. They
// compute in double precision and round once, but Erf in float32 is vectorised (math_vector.h) and Erfc is libm's.
#include <math.h>
#include <tgmath.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/math_special.h"
#include "runtime/ops/math_vector.h"
#include "runtime/ops/row.h"

// --- Kernels -----------------------------------------------------------------------------------------------------
#undef erf // defined by <tgmath.h>
#define ERF(x) _Generic((x), float : tfc_erff, double : erf)(x)
OPS_UNARY_COSTLY(Erf, OPS_FLOATS, ERF(x))
OPS_UNARY_COSTLY(Erfc, OPS_FLOATS, erfc(x))
#define DOUBLE_LOOP(t, name, fn) OPS_UNARY_LOOP(t, name, t, fn((double)x))
#define UNARY_DOUBLE(name, LIST, fn)                                                                                   \
  LIST(DOUBLE_LOOP, name, fn)                                                                                          \
  OPS_UNARY_TABLE(name, LIST, TFC_DTYPE_NONE, 256)
UNARY_DOUBLE(Lgamma, OPS_FLOATS, ops_lgamma)
UNARY_DOUBLE(Digamma, OPS_FLOATS, ops_digamma)
UNARY_DOUBLE(Erfinv, OPS_FLOATS, ops_erfinv)
UNARY_DOUBLE(Ndtri, OPS_FLOATS, ops_ndtri)
UNARY_DOUBLE(BesselI0e, OPS_FLOATS, ops_bessel_i0e)
UNARY_DOUBLE(BesselI1e, OPS_FLOATS, ops_bessel_i1e)

#define DOUBLE_BINARY_LOOP(t, name, fn) OPS_BINARY_LOOP(t, name, t, fn((double)a, (double)b))
#define BINARY_DOUBLE(name, fn)                                                                                        \
  OPS_FLOATS(DOUBLE_BINARY_LOOP, name, fn)                                                                             \
  OPS_BINARY_TABLE(name, OPS_FLOATS, TFC_DTYPE_NONE, 256)
BINARY_DOUBLE(Igamma, ops_igamma)
BINARY_DOUBLE(Igammac, ops_igammac)
BINARY_DOUBLE(IgammaGradA, ops_igamma_grad_a)
BINARY_DOUBLE(Polygamma, ops_polygamma)
BINARY_DOUBLE(Zeta, ops_zeta)

// --- Gradients ---------------------------------------------------------------------------------------------------
// The gradient G factor e^(-x²).
static tfc_status bell(struct tfc_grad_ctx *g, double factor) {
  struct tfc_output curve = grad_op1(g, "Exp", g_neg(g, grad_op1(g, "Square", X)));
  g->grad_inputs[0] = g_mul(g, g_mul(g, G, grad_const(g, G, factor)), curve);
  return NULL;
}
OPS_GRADIENT(Erf) {
  return bell(g, M_2_SQRTPI);
}
OPS_GRADIENT(Erfc) {
  return bell(g, -M_2_SQRTPI);
}
OPS_GRADIENT(Erfinv) {
  struct tfc_output scaled = g_mul(g, G, grad_const(g, G, 1 / M_2_SQRTPI));
  g->grad_inputs[0] = g_mul(g, scaled, grad_op1(g, "Exp", grad_op1(g, "Square", Y)));
  return NULL;
}
OPS_GRADIENT(Ndtri) {
  struct tfc_output scaled = g_mul(g, G, grad_const(g, G, 2.50662827463100050));
  struct tfc_output half = g_div(g, grad_op1(g, "Square", Y), grad_const(g, G, 2));
  g->grad_inputs[0] = g_mul(g, scaled, grad_op1(g, "Exp", half));
  return NULL;
}
OPS_GRADIENT(Lgamma) {
  g->grad_inputs[0] = g_mul(g, G, grad_op1(g, "Digamma", X));
  return NULL;
}
OPS_GRADIENT(Digamma) {
  g->grad_inputs[0] = g_mul(g, G, grad_op2(g, "Polygamma", grad_const(g, X, 1), X));
  return NULL;
}
OPS_GRADIENT(BesselI0e) {
  struct tfc_output slope = g_sub(g, grad_op1(g, "BesselI1e", X), g_mul(g, grad_op1(g, "Sign", X), Y));
  g->grad_inputs[0] = g_mul(g, G, slope);
  return NULL;
}
OPS_GRADIENT(BesselI1e) { // slope I₀e - y (sign x + 1/x), or ½ at 0
  struct tfc_output both = g_add(g, grad_op1(g, "Sign", X), grad_op1(g, "Reciprocal", X));
  struct tfc_output slope = g_sub(g, grad_op1(g, "BesselI0e", X), g_mul(g, Y, both));
  struct tfc_output at_zero = grad_op2(g, "Equal", X, grad_const(g, X, 0));
  g->grad_inputs[0] = g_mul(g, G, grad_op3(g, "SelectV2", at_zero, grad_const(g, X, 0.5), slope));
  return NULL;
}
static void igamma_slopes(struct tfc_grad_ctx *g, struct tfc_output *ga, struct tfc_output *gx) {
  struct tfc_output a = X, x = grad_in(g, 1);
  struct tfc_output power = g_mul(g, g_sub(g, a, grad_const(g, a, 1)), grad_op1(g, "Log", x));
  struct tfc_output exponent = g_sub(g, g_add(g, g_neg(g, x), power), grad_op1(g, "Lgamma", a));
  *ga = g_mul(g, grad_op2(g, "IgammaGradA", a, x), G);
  *gx = g_mul(g, grad_op1(g, "Exp", exponent), G);
  grad_unbroadcast(g, a, g->input_shapes[0], x, g->input_shapes[1], ga, gx);
}
OPS_GRADIENT(Igamma) {
  igamma_slopes(g, &g->grad_inputs[0], &g->grad_inputs[1]);
  return NULL;
}
OPS_GRADIENT(Igammac) {
  struct tfc_output ga, gx;
  igamma_slopes(g, &ga, &gx);
  g->grad_inputs[0] = g_neg(g, ga);
  g->grad_inputs[1] = g_neg(g, gx);
  return NULL;
}
OPS_GRADIENT(Polygamma) {
  struct tfc_output n = X, x = grad_in(g, 1), none = TFC_NO_OUTPUT;
  struct tfc_output gx = g_mul(g, grad_op2(g, "Polygamma", g_add(g, n, grad_const(g, n, 1)), x), G);
  grad_unbroadcast(g, n, g->input_shapes[0], x, g->input_shapes[1], &none, &gx);
  g->grad_inputs[1] = gx;
  return NULL;
}
OPS_GRADIENT(Zeta) {
  struct tfc_output s = X, q = grad_in(g, 1), none = TFC_NO_OUTPUT;
  struct tfc_output slope = g_mul(g, g_neg(g, s), grad_op2(g, "Zeta", g_add(g, s, grad_const(g, s, 1)), q));
  struct tfc_output gq = g_mul(g, slope, G);
  grad_unbroadcast(g, s, g->input_shapes[0], q, g->input_shapes[1], &none, &gq);
  g->grad_inputs[1] = gq;
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define UNARY(op)                                                                                                      \
  .flags = TFC_OP_INPLACE, .types = (uint32_t)types_##op, .shape = ops_shape_same, .cost = ops_cost_outputs,           \
  .kernel = kernel_##op, .gradient = gradient_##op, .samples = "float[3,4]; double[5]; half[2,3]; float[0]"
#define BINARY(op)                                                                                                     \
  .flags = TFC_OP_INPLACE, .types = (uint32_t)types_##op, .shape = ops_shape_broadcast, .cost = ops_cost_outputs,      \
  .kernel = kernel_##op, .samples = "float[3,4], float[4]; double[3], double[]"

static const struct tfc_op_def math_special_rows[] = {
    {.name = "Erf",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: " OPS_TYPES_FLOAT,
     UNARY(Erf),
     .elementwise = &loops_Erf},
    {.name = "Erfc",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: " OPS_TYPES_FLOAT,
     UNARY(Erfc),
     .elementwise = &loops_Erfc},
    {.name = "Erfinv", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT, UNARY(Erfinv)},
    {.name = "Ndtri", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT, UNARY(Ndtri)},
    {.name = "Lgamma", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT, UNARY(Lgamma)},
    {.name = "Digamma", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT, UNARY(Digamma)},
    {.name = "BesselI0e", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT, UNARY(BesselI0e)},
    {.name = "BesselI1e", .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT, UNARY(BesselI1e)},
    {.name = "Igamma",
     .inputs = "a: T, x: T",
     .outputs = "z: T",
     .attrs = "T: " OPS_TYPES_FLOAT,
     BINARY(Igamma),
     .gradient = gradient_Igamma},
    {.name = "Igammac",
     .inputs = "a: T, x: T",
     .outputs = "z: T",
     .attrs = "T: " OPS_TYPES_FLOAT,
     BINARY(Igammac),
     .gradient = gradient_Igammac},
    {.name = "IgammaGradA",
     .inputs = "a: T, x: T",
     .outputs = "z: T",
     .attrs = "T: {float, double}",
     BINARY(IgammaGradA)},
    {.name = "Polygamma",
     .inputs = "a: T, x: T",
     .outputs = "z: T",
     .attrs = "T: {float, double}",
     BINARY(Polygamma),
     .gradient = gradient_Polygamma},
    {.name = "Zeta",
     .inputs = "x: T, q: T",
     .outputs = "z: T",
     .attrs = "T: {float, double}",
     BINARY(Zeta),
     .gradient = gradient_Zeta},
};
TFC_REGISTER_OPS(math_special_rows);
