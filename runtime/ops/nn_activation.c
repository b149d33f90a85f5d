// Activations and their gradients, element by element. As in TensorFlow, a gradient op takes the incoming gradients and
// either the features (inputs) or the activations (outputs), whichever is cheaper.
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_vector.h"
#include "runtime/ops/nn_leaky.h"
#include "runtime/ops/row.h"

enum { GRAIN = 32768 };

struct work {
  const void *x, *g; // g: incoming gradients of a gradient op, otherwise NULL
  void *y;
  tfc_dtype dtype;
  double alpha;
};

static double alpha_of(const struct tfc_kernel_ctx *ctx) {
  return *(const double *)ctx->state;
}
static tfc_status alpha_prepare(struct tfc_prepare_ctx *ctx) {
  double *alpha = TFC_ARENA_NEW(ctx->arena, double);
  if (!alpha) return tfc_status_no_memory(NULL);
  *alpha = tfc_node_attr_float(ctx->graph, ctx->node, "alpha", 0.2);
  ctx->state = alpha;
  return NULL;
}

static tfc_status run(struct tfc_kernel_ctx *ctx, void (*piece)(void *, int64_t, int64_t), double alpha) {
  struct tfc_tensor *y = NULL;
  bool gradient = ctx->input_count == 2;
  const struct tfc_tensor *x = ctx->inputs[gradient ? 1 : 0], *g = gradient ? ctx->inputs[0] : NULL;
  if (g)
    TFC_KERNEL_CHECK(tfc_shape_equal(&g->shape, &x->shape), "inputs must be the same size: gradients %s, features %s",
                     tfc_shape_show(&g->shape, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  struct work w = {x->data, g ? g->data : NULL, y->data, x->dtype, alpha};
  tfc_kernel_parallel_for(ctx, tfc_tensor_elements(x), GRAIN, piece, &w);
  return NULL;
}

// Computes y = value(v), or dx = value(d, v), for each element; `y` may be the memory of an input.
#define UNARY(name, LIST, value)                                                                                       \
  OPS_CLONES static void name##_piece(void *arg, int64_t begin, int64_t end) {                                         \
    const struct work *w = arg;                                                                                        \
    OPS_SWITCH(LIST, w->dtype, {                                                                                       \
      const S *x = w->x;                                                                                               \
      S *y = w->y;                                                                                                     \
      const C alpha = (C)w->alpha, one = 1;                                                                            \
      (void)alpha, (void)one;                                                                                          \
      OPS_INDEPENDENT for (int64_t i = begin; i < end; i++) {                                                          \
        const C v = OPS_GET(x[i]);                                                                                     \
        OPS_PUT(y[i], value);                                                                                          \
      }                                                                                                                \
    })                                                                                                                 \
  }
#define BINARY(name, LIST, value)                                                                                      \
  OPS_CLONES static void name##_piece(void *arg, int64_t begin, int64_t end) {                                         \
    const struct work *w = arg;                                                                                        \
    OPS_SWITCH(LIST, w->dtype, {                                                                                       \
      const S *x = w->x, *g = w->g;                                                                                    \
      S *y = w->y;                                                                                                     \
      const C alpha = (C)w->alpha, one = 1;                                                                            \
      (void)alpha, (void)one;                                                                                          \
      OPS_INDEPENDENT for (int64_t i = begin; i < end; i++) {                                                          \
        const C v = OPS_GET(x[i]), d = OPS_GET(g[i]);                                                                  \
        OPS_PUT(y[i], value);                                                                                          \
      }                                                                                                                \
    })                                                                                                                 \
  }
#define KERNEL(name)                                                                                                   \
  static tfc_status name(struct tfc_kernel_ctx *ctx) {                                                                 \
    return run(ctx, name##_piece, 0);                                                                                  \
  }
#define KERNEL_ALPHA(name)                                                                                             \
  static tfc_status name(struct tfc_kernel_ctx *ctx) {                                                                 \
    return run(ctx, name##_piece, alpha_of(ctx));                                                                      \
  }

// The constants of Klambauer et al. 2017.
#define SELU_SCALE ((C)1.0507009873554804934193349852946)
#define SELU_SCALE_ALPHA ((C)1.7580993408473768599402175208123)
// Beyond it, log(1 + exp(x)) equals x or exp(x) to the last bit of the type that stores it.
#define SOFTPLUS_EPSILON _Generic((S *)0, float * : 0x1p-23, double * : 0x1p-52, ops_f16 * : 0x1p-13, default : 0x1p-7)

// Rounds a value to the type that stores it.
static inline float round_float(float v) {
  return v;
}
static inline double round_double(double v) {
  return v;
}
static inline float round_half(float v) {
  return ops_widen_half(ops_narrow_half(v));
}
static inline float round_bf16(float v) {
  return ops_widen_bfloat16(ops_narrow_bfloat16(v));
}
#define ROUND(value)                                                                                                   \
  _Generic((S *)0, float * : round_float, double * : round_double, ops_f16 * : round_half, default : round_bf16)(value)

// NaN goes through.
#define RELU (!(v <= (C)0) ? v : (C)0)
#define RELU_GRAD ((C)(d * (C)(v > (C)0)))
#define RELU6 (v > (C)6 ? (C)6 : RELU)
#define RELU6_GRAD ((C)(d * (C)(v > (C)0 && v < (C)6)))
UNARY(relu, OPS_REALS, RELU)
BINARY(relu_grad, OPS_REALS, RELU_GRAD)
UNARY(relu6, OPS_REALS, RELU6)
BINARY(relu6_grad, OPS_REALS, RELU6_GRAD)
UNARY(leaky_relu, OPS_FLOATS, v > (C)0 ? v : v * alpha)
BINARY(leaky_relu_grad, OPS_FLOATS, v > (C)0 ? d : d * alpha)
// Both cases are computed and one is chosen, so that compilers vectorise the loop.
static inline __attribute__((always_inline)) float choose_float(bool first, float a, float b) {
  return first ? a : b;
}
static inline __attribute__((always_inline)) double choose_double(bool first, double a, double b) {
  return first ? a : b;
}
#define CHOOSE(first, a, b) _Generic((C)0, float : choose_float, default : choose_double)(first, a, b)
#undef exp // <tgmath.h>'s macro would expand once more inside _Generic
#define EXP(x) _Generic((x), float : tfc_expf, default : exp)(x)
// This is exp(v) - 1, as in TensorFlow, although expm1(v) would be more accurate near 0. The 16-bit floats round after
// every operation.
#define EXP_LESS_ONE ROUND(ROUND(EXP(v)) - one)
UNARY(elu, OPS_FLOATS, CHOOSE(v < (C)0, EXP_LESS_ONE, v))
BINARY(elu_grad, OPS_FLOATS, CHOOSE(v < (C)0, ROUND(v + one) * d, d))
UNARY(selu, OPS_FLOATS, CHOOSE(v < (C)0, ROUND(SELU_SCALE_ALPHA) * EXP_LESS_ONE, ROUND(SELU_SCALE) * v))
BINARY(selu_grad, OPS_FLOATS, CHOOSE(v < (C)0, d *ROUND(v + ROUND(SELU_SCALE_ALPHA)), d *ROUND(SELU_SCALE)))
UNARY(softplus, OPS_FLOATS,
      v > -((C)log(SOFTPLUS_EPSILON) + (C)2) ? v
      : v < (C)log(SOFTPLUS_EPSILON) + (C)2  ? EXP(v)
                                             : log1p(ROUND(EXP(v))))
BINARY(softplus_grad, OPS_FLOATS, d / ROUND(ROUND(EXP(-v)) + one))
UNARY(softsign, OPS_FLOATS, v / ROUND(ROUND(fabs(v)) + one))
BINARY(softsign_grad, OPS_FLOATS, d / ROUND(ROUND(fabs(v) + one) * ROUND(fabs(v) + one)))

KERNEL(relu)
KERNEL(relu_grad)
KERNEL(relu6)
KERNEL(relu6_grad)
KERNEL_ALPHA(leaky_relu)
KERNEL_ALPHA(leaky_relu_grad)
KERNEL(elu)
KERNEL(elu_grad)
KERNEL(selu)
KERNEL(selu_grad)
KERNEL(softplus)
KERNEL(softplus_grad)
KERNEL(softsign)
KERNEL(softsign_grad)

// --- Loops for fusion --------------------------------------------------------------------------------------------
#define LOOP_UNARY(name, value)                                                                                        \
  OPS_CLONES static void loop_##name(const void *xv, void *yv, int64_t n) {                                            \
    typedef float C;                                                                                                   \
    const float *x = xv;                                                                                               \
    float *y = yv;                                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      const C v = x[i];                                                                                                \
      y[i] = value;                                                                                                    \
    }                                                                                                                  \
  }                                                                                                                    \
  static tfc_unary_loop *const unary_##name[TFC_DTYPE_COUNT] = {[TFC_FLOAT] = loop_##name};                            \
  static const struct tfc_elementwise loops_##name = {.unary = unary_##name};
// The inputs are gradients and features. A step of 0 uses one element for all.
#define LOOP_BINARY(name, value)                                                                                       \
  OPS_CLONES static void loop_##name(const void *dv, int64_t d_step, const void *xv, int64_t x_step, void *yv,         \
                                     int64_t n) {                                                                      \
    typedef float C;                                                                                                   \
    const float *x = xv, *g = dv;                                                                                      \
    float *y = yv;                                                                                                     \
    if (d_step && x_step) {                                                                                            \
      for (int64_t i = 0; i < n; i++) {                                                                                \
        const C v = x[i], d = g[i];                                                                                    \
        y[i] = value;                                                                                                  \
      }                                                                                                                \
      return;                                                                                                          \
    }                                                                                                                  \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      const C v = x[i * x_step], d = g[i * d_step];                                                                    \
      y[i] = value;                                                                                                    \
    }                                                                                                                  \
  }                                                                                                                    \
  static tfc_binary_loop *const binary_##name[TFC_DTYPE_COUNT] = {[TFC_FLOAT] = loop_##name};                          \
  static const struct tfc_elementwise loops_##name = {.binary = binary_##name};
LOOP_UNARY(relu, RELU)
LOOP_BINARY(relu_grad, RELU_GRAD)
LOOP_UNARY(relu6, RELU6)
LOOP_BINARY(relu6_grad, RELU6_GRAD)

OPS_CLONES static void loop_leaky_relu(const void *xv, int64_t x_step, const void *alphas, int64_t alpha_step, void *yv,
                                       int64_t n) {
  const float *x = xv, *a = alphas;
  float *y = yv;
  if (x_step && !alpha_step) {
    const float alpha = *a;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : x[i] * alpha;
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    const float v = x[i * x_step];
    y[i] = v > 0 ? v : v * a[i * alpha_step];
  }
}
static tfc_binary_loop *const binary_leaky_relu[TFC_DTYPE_COUNT] = {[TFC_FLOAT] = loop_leaky_relu};
const struct tfc_elementwise tfc_leaky_relu_loops = {.binary = binary_leaky_relu};

// --- Gradients ---------------------------------------------------------------------------------------------------
// dx = <Op>Grad(dy, y) or <Op>Grad(dy, x). A gradient op is linear in its first input, whose gradient is therefore the
// same op again; the second input's gradient is 0 if the activation is piecewise linear.
#define OF_OUTPUT(name, op, attrs)                                                                                     \
  static tfc_status name(struct tfc_grad_ctx *c) {                                                                     \
    c->grad_inputs[0] = grad_node(c, op, TFC_OUTPUTS(c->grad_outputs[0], grad_out(c, 0)), attrs);                      \
    return grad_status(c);                                                                                             \
  }
#define OF_INPUT(name, op, attrs)                                                                                      \
  static tfc_status name(struct tfc_grad_ctx *c) {                                                                     \
    c->grad_inputs[0] = grad_node(c, op, TFC_OUTPUTS(c->grad_outputs[0], grad_in(c, 0)), attrs);                       \
    return grad_status(c);                                                                                             \
  }
#define PIECEWISE_LINEAR(name, op, attrs)                                                                              \
  static tfc_status name(struct tfc_grad_ctx *c) {                                                                     \
    c->grad_inputs[0] = grad_node(c, op, TFC_OUTPUTS(c->grad_outputs[0], grad_in(c, 1)), attrs);                       \
    c->grad_inputs[1] = tfc_add1(c->builder, "ZerosLike", grad_in(c, 1));                                              \
    return grad_status(c);                                                                                             \
  }
OF_OUTPUT(grad_of_relu, "ReluGrad", NULL)
OF_OUTPUT(grad_of_relu6, "Relu6Grad", NULL)
OF_OUTPUT(grad_of_elu, "EluGrad", NULL)
OF_OUTPUT(grad_of_selu, "SeluGrad", NULL)
OF_INPUT(grad_of_leaky_relu, "LeakyReluGrad", "alpha")
OF_INPUT(grad_of_softsign, "SoftsignGrad", NULL)
PIECEWISE_LINEAR(grad_of_relu_grad, "ReluGrad", NULL)
PIECEWISE_LINEAR(grad_of_relu6_grad, "Relu6Grad", NULL)
PIECEWISE_LINEAR(grad_of_leaky_relu_grad, "LeakyReluGrad", "alpha")

static tfc_status exponential_grad(struct tfc_grad_ctx *c, const char *op) {
  struct tfc_builder *b = c->builder;
  struct tfc_output dy = c->grad_outputs[0], g = grad_in(c, 0), y = grad_in(c, 1);
  struct tfc_output zero = tfc_add_scalar(b, tfc_builder_dtype(b, y), 0);
  c->grad_inputs[0] = tfc_add2(b, op, dy, y);
  c->grad_inputs[1] =
      tfc_add3(b, "SelectV2", tfc_add2(b, "Less", y, zero), tfc_add2(b, "Mul", dy, g), tfc_add1(b, "ZerosLike", y));
  return grad_status(c);
}
static tfc_status grad_of_elu_grad(struct tfc_grad_ctx *c) {
  return exponential_grad(c, "EluGrad");
}
static tfc_status grad_of_selu_grad(struct tfc_grad_ctx *c) {
  return exponential_grad(c, "SeluGrad");
}

static tfc_status grad_of_softplus(struct tfc_grad_ctx *c) {
  c->grad_inputs[0] = tfc_add2(c->builder, "Mul", c->grad_outputs[0], tfc_add1(c->builder, "Sigmoid", grad_in(c, 0)));
  return grad_status(c);
}
static tfc_status grad_of_softplus_grad(struct tfc_grad_ctx *c) { // d2x = grad * dy / (exp(-x) + 2 + exp(x))
  struct tfc_builder *b = c->builder;
  struct tfc_output dd = c->grad_outputs[0], dy = grad_in(c, 0), x = grad_in(c, 1);
  struct tfc_output two = tfc_add_scalar(b, tfc_builder_dtype(b, x), 2);
  c->grad_inputs[0] = tfc_add2(b, "SoftplusGrad", dd, x);
  struct tfc_output below = tfc_add2(b, "AddV2", tfc_add1(b, "Exp", tfc_add1(b, "Neg", x)), two);
  c->grad_inputs[1] =
      tfc_add2(b, "RealDiv", tfc_add2(b, "Mul", dd, dy), tfc_add2(b, "AddV2", below, tfc_add1(b, "Exp", x)));
  return grad_status(c);
}

OPS_COST_PER_ELEMENT(cost_one, 1)
OPS_COST_PER_ELEMENT(cost_few, 4)
#define SAMPLES "float[3,4]; float[0]; float[2,3,5]; double[7]; half[9]; bfloat16[4]"
#define SAMPLES_GRAD "float[3,4], float[3,4]; float[0], float[0]; double[7], double[7]; half[9], half[9]"
#define ROW(cost_, types_, kernel_, grad_, samples_)                                                                   \
  .types = types_, .shape = ops_shape_merged, .gradient = grad_, .cost = cost_, .kernel = kernel_, .samples = samples_

static const struct tfc_op_def nn_activation_rows[] = {
    {.name = "Relu",
     .plan_trait = TFC_PLAN_RECTIFY,
     .inputs = "features: T",
     .outputs = "activations: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8}",
     .flags = TFC_OP_INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .elementwise = &loops_relu,
     ROW(cost_one, OPS_BITS(OPS_REALS), relu, grad_of_relu, SAMPLES)},
    {.name = "ReluGrad",
     .inputs = "gradients: T, features: T",
     .outputs = "backprops: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
     .flags = TFC_OP_INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .elementwise = &loops_relu_grad,
     ROW(cost_one, OPS_BITS(OPS_REALS), relu_grad, grad_of_relu_grad, SAMPLES_GRAD)},
    {.name = "Relu6",
     .inputs = "features: T",
     .outputs = "activations: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
     .flags = TFC_OP_INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .elementwise = &loops_relu6,
     ROW(cost_one, OPS_BITS(OPS_REALS), relu6, grad_of_relu6, SAMPLES)},
    {.name = "Relu6Grad",
     .inputs = "gradients: T, features: T",
     .outputs = "backprops: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
     .flags = TFC_OP_INPLACE,
     .host = {"T", TFC_INT32_BIT},
     .elementwise = &loops_relu6_grad,
     ROW(cost_one, OPS_BITS(OPS_REALS), relu6_grad, grad_of_relu6_grad, SAMPLES_GRAD)},
    {.name = "LeakyRelu",
     .plan_trait = TFC_PLAN_RECTIFY_LEAKY,
     .inputs = "features: T",
     .outputs = "activations: T",
     .attrs = "alpha: float = 0.20000000298023224, T: {half, bfloat16, float, double} = float",
     .flags = TFC_OP_INPLACE,
     ROW(cost_one, OPS_BITS(OPS_FLOATS), leaky_relu, grad_of_leaky_relu, SAMPLES),
     .prepare = alpha_prepare},
    {.name = "LeakyReluGrad",
     .inputs = "gradients: T, features: T",
     .outputs = "backprops: T",
     .attrs = "alpha: float = 0.20000000298023224, T: {half, bfloat16, float, double} = float",
     .flags = TFC_OP_INPLACE,
     ROW(cost_one, OPS_BITS(OPS_FLOATS), leaky_relu_grad, grad_of_leaky_relu_grad, SAMPLES_GRAD),
     .prepare = alpha_prepare},
    {.name = "Elu",
     .inputs = "features: T",
     .outputs = "activations: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .flags = TFC_OP_INPLACE,
     ROW(cost_few, OPS_BITS(OPS_FLOATS), elu, grad_of_elu, SAMPLES)},
    {.name = "EluGrad",
     .inputs = "gradients: T, outputs: T",
     .outputs = "backprops: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .flags = TFC_OP_INPLACE,
     ROW(cost_few, OPS_BITS(OPS_FLOATS), elu_grad, grad_of_elu_grad, SAMPLES_GRAD)},
    {.name = "Selu",
     .inputs = "features: T",
     .outputs = "activations: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .flags = TFC_OP_INPLACE,
     ROW(cost_few, OPS_BITS(OPS_FLOATS), selu, grad_of_selu, SAMPLES)},
    {.name = "SeluGrad",
     .inputs = "gradients: T, outputs: T",
     .outputs = "backprops: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .flags = TFC_OP_INPLACE,
     ROW(cost_few, OPS_BITS(OPS_FLOATS), selu_grad, grad_of_selu_grad, SAMPLES_GRAD)},
    {.name = "Softplus",
     .inputs = "features: T",
     .outputs = "activations: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .flags = TFC_OP_INPLACE,
     ROW(cost_few, OPS_BITS(OPS_FLOATS), softplus, grad_of_softplus, SAMPLES)},
    {.name = "SoftplusGrad",
     .inputs = "gradients: T, features: T",
     .outputs = "backprops: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .flags = TFC_OP_INPLACE,
     ROW(cost_few, OPS_BITS(OPS_FLOATS), softplus_grad, grad_of_softplus_grad, SAMPLES_GRAD)},
    {.name = "Softsign",
     .inputs = "features: T",
     .outputs = "activations: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .flags = TFC_OP_INPLACE,
     ROW(cost_few, OPS_BITS(OPS_FLOATS), softsign, grad_of_softsign, SAMPLES)},
    {.name = "SoftsignGrad",
     .inputs = "gradients: T, features: T",
     .outputs = "backprops: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .flags = TFC_OP_INPLACE,
     ROW(cost_few, OPS_BITS(OPS_FLOATS), softsign_grad, NULL, SAMPLES_GRAD)},
};
TFC_REGISTER_OPS(nn_activation_rows);
