// Operations that compute Bessel functions and integrals without a closed form, in double precision, rounded once; also
// Betainc and RandomGammaGrad.
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/math_integrals.h"
#include "runtime/ops/row.h"

// --- Kernels -----------------------------------------------------------------------------------------------------
#define DOUBLE_LOOP(t, name, fn) OPS_UNARY_LOOP(t, name, t, fn((double)x))
#define UNARY_DOUBLE(name, fn)                                                                                         \
  OPS_FLOATS(DOUBLE_LOOP, name, fn)                                                                                    \
  OPS_UNARY_TABLE(name, OPS_FLOATS, TFC_DTYPE_NONE, 256)
UNARY_DOUBLE(BesselI0, ops_bessel_i0)
UNARY_DOUBLE(BesselI1, ops_bessel_i1)
UNARY_DOUBLE(BesselJ0, ops_bessel_j0)
UNARY_DOUBLE(BesselJ1, ops_bessel_j1)
UNARY_DOUBLE(BesselK0, ops_bessel_k0)
UNARY_DOUBLE(BesselK1, ops_bessel_k1)
UNARY_DOUBLE(BesselK0e, ops_bessel_k0e)
UNARY_DOUBLE(BesselK1e, ops_bessel_k1e)
UNARY_DOUBLE(BesselY0, ops_bessel_y0)
UNARY_DOUBLE(BesselY1, ops_bessel_y1)
UNARY_DOUBLE(Dawsn, ops_dawsn)
UNARY_DOUBLE(Expint, ops_expint)
UNARY_DOUBLE(FresnelCos, ops_fresnel_cos)
UNARY_DOUBLE(FresnelSin, ops_fresnel_sin)
UNARY_DOUBLE(Spence, ops_spence)

#define GAMMA_LOOP(t, name, fn) OPS_BINARY_LOOP(t, name, t, fn((double)a, (double)b))
OPS_FLOATS(GAMMA_LOOP, RandomGammaGrad, ops_random_gamma_grad)
OPS_BINARY_TABLE(RandomGammaGrad, OPS_FLOATS, TFC_DTYPE_NONE, 256)

#define BETA_RUN(type)                                                                                                 \
  static void beta_##type(void *arg, const void *const in[3], const int64_t step[3], void *yv, int64_t n) {            \
    const type *a = in[0], *b = in[1], *x = in[2];                                                                     \
    type *y = yv;                                                                                                      \
    (void)arg;                                                                                                         \
    for (int64_t i = 0; i < n; i++)                                                                                    \
      y[i] = (type)ops_betainc((double)a[i * step[0]], (double)b[i * step[1]], (double)x[i * step[2]]);                \
  }
BETA_RUN(float)
BETA_RUN(double)
// Computes Betainc. Each operand is a scalar, or has the shape that all others have.
static tfc_status betainc(struct tfc_kernel_ctx *ctx) {
  const struct tfc_shape *shapes[3], *whole = NULL;
  struct tfc_tensor *y = NULL;
  size_t size = tfc_dtype_size(ctx->inputs[0]->dtype);
  struct ops_broadcast_job job = {.count = 3, .fn = size == 4 ? beta_float : beta_double, .out_size = size};
  for (int i = 0; i < 3; i++) {
    shapes[i] = &ctx->inputs[i]->shape;
    job.in[i] = ctx->inputs[i]->data;
    job.size[i] = size;
    if (!shapes[i]->rank) continue;
    if (!whole) whole = shapes[i];
    TFC_KERNEL_CHECK(tfc_shape_equal(whole, shapes[i]), "Shapes of a, b and x are inconsistent: %s vs. %s",
                     tfc_shape_show(whole, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(shapes[i], (char[TFC_SHAPE_TEXT]){0}));
  }
  TFC_RETURN_IF_ERROR(ops_broadcast_plan(shapes, 3, &job.plan));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ctx->inputs[0]->dtype, &job.plan.shape, &y));
  job.out = y->data;
  ops_broadcast_all(ctx, &job, 256);
  return NULL;
}
static tfc_status shape_betainc(struct tfc_shape_ctx *ctx) {
  struct tfc_shape whole = TFC_SHAPE_UNKNOWN;
  bool scalars = true, unknown = false;
  for (uint32_t i = 0; i < 3; i++) {
    const struct tfc_shape *s = ctx->inputs[i];
    unknown |= s->rank < 0;
    if (s->rank <= 0) continue;
    scalars = false;
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&whole, s, &whole));
  }
  ctx->outputs[0] = !scalars ? whole : unknown ? TFC_SHAPE_UNKNOWN : TFC_SHAPE_SCALAR;
  return NULL;
}

// --- Gradients ---------------------------------------------------------------------------------------------------
#define ONE(op, expression)                                                                                            \
  OPS_GRADIENT(op) {                                                                                                   \
    g->grad_inputs[0] = g_mul(g, G, expression);                                                                       \
    return NULL;                                                                                                       \
  }
// Makes `slope`, but `value` where x is 0, because `slope` divides 0 by 0 there.
static struct tfc_output at_zero(const struct tfc_grad_ctx *g, double value, struct tfc_output slope) {
  return grad_op3(g, "SelectV2", grad_op2(g, "Equal", X, grad_const(g, X, 0)), grad_const(g, X, value), slope);
}
ONE(BesselI0, grad_op1(g, "BesselI1", X))
// TensorFlow's value is 1, although the limit is ½
ONE(BesselI1, at_zero(g, 1, g_sub(g, grad_op1(g, "BesselI0", X), g_div(g, Y, X))))
ONE(BesselJ0, g_neg(g, grad_op1(g, "BesselJ1", X)))
ONE(BesselJ1, at_zero(g, 0.5, g_sub(g, grad_op1(g, "BesselJ0", X), g_div(g, Y, X))))
ONE(BesselK0, g_neg(g, grad_op1(g, "BesselK1", X)))
ONE(BesselK1, g_sub(g, g_neg(g, grad_op1(g, "BesselK0", X)), g_div(g, Y, X)))
ONE(BesselK0e, g_sub(g, Y, grad_op1(g, "BesselK1e", X)))
ONE(BesselK1e,
    g_sub(g, g_mul(g, Y, g_sub(g, grad_const(g, X, 1), grad_op1(g, "Reciprocal", X))), grad_op1(g, "BesselK0e", X)))
ONE(BesselY0, g_neg(g, grad_op1(g, "BesselY1", X)))
ONE(BesselY1, g_sub(g, grad_op1(g, "BesselY0", X), g_div(g, Y, X)))
ONE(Dawsn, g_sub(g, grad_const(g, X, 1), g_mul(g, g_mul(g, grad_const(g, X, 2), X), Y)))
OPS_GRADIENT(Expint) {
  g->grad_inputs[0] = g_div(g, g_mul(g, G, grad_op1(g, "Exp", X)), X);
  return NULL;
}
ONE(FresnelCos, grad_op1(g, "Cos", g_mul(g, grad_const(g, X, 1.57079632679489661923), grad_op1(g, "Square", X))))
ONE(FresnelSin, grad_op1(g, "Sin", g_mul(g, grad_const(g, X, 1.57079632679489661923), grad_op1(g, "Square", X))))
OPS_GRADIENT(Spence) {
  struct tfc_output one = grad_const(g, X, 1), slope = g_div(g, grad_op1(g, "Log", X), g_sub(g, one, X));
  struct tfc_output is_one = grad_op2(g, "Equal", X, one);
  g->grad_inputs[0] = g_mul(g, G, grad_op3(g, "SelectV2", is_one, grad_const(g, X, -1), slope));
  return NULL;
}
OPS_GRADIENT(Betainc) { // only x has a gradient
  struct tfc_output a = X, b = grad_in(g, 1), x = grad_in(g, 2), none = TFC_NO_OUTPUT, one = grad_const(g, X, 1);
  struct tfc_output whole = grad_op1(g, "Lgamma", g_add(g, a, b));
  struct tfc_output beta = g_sub(g, g_add(g, grad_op1(g, "Lgamma", a), grad_op1(g, "Lgamma", b)), whole);
  struct tfc_output right = grad_op2(g, "Xlog1py", g_sub(g, b, one), g_neg(g, x));
  struct tfc_output left = grad_op2(g, "Xlogy", g_sub(g, a, one), x);
  struct tfc_output gx = g_mul(g, grad_op1(g, "Exp", g_sub(g, g_add(g, right, left), beta)), G);
  grad_unbroadcast(g, a, g->input_shapes[0], x, g->input_shapes[2], &none, &gx);
  g->grad_inputs[2] = gx;
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define UNARY(op)                                                                                                      \
  {                                                                                                                    \
    .name = #op, .inputs = "x: T", .outputs = "y: T", .attrs = "T: " OPS_TYPES_FLOAT, .flags = TFC_OP_INPLACE,         \
    .types = (uint32_t)types_##op, .shape = ops_shape_same, .cost = ops_cost_outputs, .kernel = kernel_##op,           \
    .gradient = gradient_##op, .samples = "float[3,4]; double[5]; half[2,3]; float[0]"                                 \
  }
static const struct tfc_op_def math_integral_rows[] = {
    UNARY(BesselI0),
    UNARY(BesselI1),
    UNARY(BesselJ0),
    UNARY(BesselJ1),
    UNARY(BesselK0),
    UNARY(BesselK1),
    UNARY(BesselK0e),
    UNARY(BesselK1e),
    UNARY(BesselY0),
    UNARY(BesselY1),
    UNARY(Dawsn),
    UNARY(Expint),
    UNARY(FresnelCos),
    UNARY(FresnelSin),
    UNARY(Spence),
    {.name = "RandomGammaGrad",
     .inputs = "alpha: T, sample: T",
     .outputs = "output: T",
     .attrs = "T: {float, double}",
     .types = TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE),
     .shape = ops_shape_broadcast,
     .cost = ops_cost_outputs,
     .kernel = kernel_RandomGammaGrad,
     .samples = "float[3,4], float[4]; double[3], double[]"},
    {.name = "Betainc",
     .inputs = "a: T, b: T, x: T",
     .outputs = "z: T",
     .attrs = "T: {float, double}",
     .types = TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE),
     .shape = shape_betainc,
     .cost = ops_cost_outputs,
     .kernel = betainc,
     .gradient = gradient_Betainc,
     .samples = "float[3,4], float[], float[3,4]; double[3], double[3], double[]"},
};
TFC_REGISTER_OPS(math_integral_rows);
