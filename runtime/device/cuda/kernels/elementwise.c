// The rows of the kernel table for element-wise ops.
#include "runtime/device/cuda/kernels/elementwise.h"

#include "runtime/device/cuda/kernels/common.h"
#include "runtime/ops/select_condition.h"

typedef int unary_fn(int type, const struct tfc_cuda_broadcast *plan, const void *x, void *y, void *stream);
typedef int binary_fn(int type, const struct tfc_cuda_broadcast *plan, const void *a, const void *b, void *y,
                      void *stream);

static tfc_status run_unary(struct tfc_cuda_launch *l, unary_fn *fn, bool to_bool) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, to_bool ? TFC_BOOL : x->dtype, &x->shape, &y));
  int64_t n = tfc_cuda_count(x);
  if (!n) return NULL;
  struct tfc_cuda_broadcast plan =
      tfc_cuda_flat_plan(n, x->data, tfc_dtype_size(x->dtype), y->data, tfc_dtype_size(y->dtype));
  TFC_CUDA_LAUNCHED(l, fn((int)x->dtype, &plan, x->data, y->data, l->stream));
  return NULL;
}

static tfc_status run_binary(struct tfc_cuda_launch *l, binary_fn *fn, bool to_bool) {
  const struct tfc_tensor *a = l->ctx->inputs[0], *b = l->ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  struct tfc_cuda_broadcast plan;
  struct tfc_shape shape;
  const struct tfc_shape *shapes[2] = {&a->shape, &b->shape};
  TFC_RETURN_IF_ERROR(tfc_cuda_broadcast_plan(shapes, 2, &shape, &plan));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, to_bool ? TFC_BOOL : a->dtype, &shape, &y));
  if (!plan.groups) return NULL;
  size_t size = tfc_dtype_size(a->dtype);
  tfc_cuda_broadcast_group(&plan, 2, (int)(16 / size), (const void *const[]){a->data, b->data}, size, y->data,
                           tfc_dtype_size(y->dtype));
  TFC_CUDA_LAUNCHED(l, fn((int)a->dtype, &plan, a->data, b->data, y->data, l->stream));
  return NULL;
}

#define LAUNCH_UNARY(name, LIST)                                                                                       \
  static tfc_status launch_##name(struct tfc_cuda_launch *l) {                                                         \
    return run_unary(l, tfc_cuda_unary_##name, false);                                                                 \
  }
#define LAUNCH_PREDICATE(name, LIST)                                                                                   \
  static tfc_status launch_##name(struct tfc_cuda_launch *l) {                                                         \
    return run_unary(l, tfc_cuda_unary_##name, true);                                                                  \
  }
#define LAUNCH_BINARY(name, LIST)                                                                                      \
  static tfc_status launch_##name(struct tfc_cuda_launch *l) {                                                         \
    return run_binary(l, tfc_cuda_binary_##name, false);                                                               \
  }
#define LAUNCH_COMPARISON(name, LIST)                                                                                  \
  static tfc_status launch_##name(struct tfc_cuda_launch *l) {                                                         \
    return run_binary(l, tfc_cuda_binary_##name, true);                                                                \
  }
TFC_CUDA_UNARY_ARITHMETIC(LAUNCH_UNARY)
TFC_CUDA_UNARY_TRANSCENDENTAL(LAUNCH_UNARY)
TFC_CUDA_PREDICATES(LAUNCH_PREDICATE)
TFC_CUDA_BINARY_ARITHMETIC(LAUNCH_BINARY)
TFC_CUDA_BINARY_QUOTIENT(LAUNCH_BINARY)
TFC_CUDA_BINARY_MASKS(LAUNCH_BINARY)
TFC_CUDA_BINARY_SLOPES(LAUNCH_BINARY)
TFC_CUDA_COMPARISONS(LAUNCH_COMPARISON)

// --- Equal, NotEqual ---------------------------------------------------------------------------------------------
static tfc_status equality_prepare(struct tfc_cuda_prepare *p) {
  if (!tfc_node_attr_bool(p->base->graph, p->base->node, "incompatible_shape_error", true))
    TFC_CUDA_DECLINE("operands that may not broadcast are compared on the host");
  return NULL;
}

// --- Leaky rectifiers --------------------------------------------------------------------------------------------
static tfc_status leaky_prepare(struct tfc_cuda_prepare *p) {
  TFC_CUDA_STATE(p, double, alpha);
  *alpha = tfc_node_attr_float(p->base->graph, p->base->node, "alpha", 0.2);
  return NULL;
}
static tfc_status launch_LeakyRelu(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, x, &y));
  if (!x->size) return NULL;
  size_t size = tfc_dtype_size(x->dtype);
  struct tfc_cuda_broadcast plan = tfc_cuda_flat_plan(tfc_cuda_count(x), x->data, size, y->data, size);
  TFC_CUDA_LAUNCHED(
      l, tfc_cuda_leaky_relu((int)x->dtype, &plan, x->data, y->data, *(const double *)l->ctx->state, l->stream));
  return NULL;
}
static tfc_status launch_LeakyReluGrad(struct tfc_cuda_launch *l) { // inputs: gradients, features
  const struct tfc_tensor *g = l->ctx->inputs[0], *x = l->ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(tfc_shape_equal(&g->shape, &x->shape), "gradients and features must have the same shape");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, x, &y));
  if (!x->size) return NULL;
  struct tfc_cuda_broadcast plan = {.groups = tfc_cuda_count(x),
                                    .rank = 1,
                                    .vector = 1,
                                    .dims = {tfc_cuda_count(x)},
                                    .strides = {{1}, {1}},
                                    .step = {1, 1}};
  TFC_CUDA_LAUNCHED(l, tfc_cuda_leaky_relu_grad((int)x->dtype, &plan, x->data, g->data, y->data,
                                                *(const double *)l->ctx->state, l->stream));
  return NULL;
}

// --- Cast --------------------------------------------------------------------------------------------------------
struct cast {
  tfc_dtype to;
  bool truncate;
};
static tfc_status cast_prepare(struct tfc_cuda_prepare *p) {
  TFC_CUDA_STATE(p, struct cast, state);
  state->to = tfc_node_attr_type(p->base->graph, p->base->node, "DstT", TFC_DTYPE_NONE);
  state->truncate = tfc_node_attr_bool(p->base->graph, p->base->node, "Truncate", false);
  if (!tfc_cuda_type_in(state->to, OPS_BITS(TFC_CUDA_ALL)))
    TFC_CUDA_DECLINE("no conversion to %s", tfc_dtype_name(state->to));
  return NULL;
}
static tfc_status launch_Cast(struct tfc_cuda_launch *l) {
  const struct cast *c = l->ctx->state;
  const struct tfc_tensor *x = l->ctx->inputs[0];
  if (c->to == x->dtype) return tfc_cuda_set_output(l, 0, x);
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, c->to, &x->shape, &y));
  if (!x->size) return NULL;
  bool truncate = c->truncate && !(x->dtype == TFC_DOUBLE && c->to == TFC_BFLOAT16);
  TFC_CUDA_LAUNCHED(l,
                    tfc_cuda_cast((int)x->dtype, (int)c->to, truncate, x->data, y->data, tfc_cuda_count(x), l->stream));
  return NULL;
}

// --- Select ------------------------------------------------------------------------------------------------------
static tfc_status select_prepare(struct tfc_cuda_prepare *p) {
  tfc_dtype t = tfc_cuda_type(p, 1);
  if (!tfc_dtype_is_plain(t) || tfc_dtype_size(t) > 8) TFC_CUDA_DECLINE("no kernel for %s", tfc_dtype_name(t));
  return NULL;
}
static tfc_status run_select(struct tfc_cuda_launch *l, const struct tfc_shape *condition) {
  const struct tfc_tensor *c = l->ctx->inputs[0], *t = l->ctx->inputs[1], *e = l->ctx->inputs[2];
  struct tfc_tensor *y = NULL;
  struct tfc_cuda_broadcast plan;
  struct tfc_shape shape;
  const struct tfc_shape *shapes[3] = {condition, &t->shape, &e->shape};
  TFC_RETURN_IF_ERROR(tfc_cuda_broadcast_plan(shapes, 3, &shape, &plan));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, t->dtype, &shape, &y));
  if (!plan.groups) return NULL;
  TFC_CUDA_LAUNCHED(
      l, tfc_cuda_select((int)tfc_dtype_size(t->dtype), &plan, c->data, t->data, e->data, y->data, l->stream));
  return NULL;
}
static tfc_status launch_SelectV2(struct tfc_cuda_launch *l) {
  return run_select(l, &l->ctx->inputs[0]->shape);
}
static tfc_status launch_Select(struct tfc_cuda_launch *l) {
  struct tfc_shape condition;
  TFC_RETURN_IF_ERROR(tfc_select_condition(l->ctx, &condition));
  return run_select(l, &condition);
}

// --- AddN --------------------------------------------------------------------------------------------------------
static tfc_status launch_AddN(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  const void *addends[TFC_CUDA_ADDENDS];
  struct tfc_tensor *y = NULL;
  uint32_t count = l->ctx->input_count;
  for (uint32_t k = 1; k < count; k++)
    TFC_KERNEL_CHECK(tfc_shape_equal(&x->shape, &l->ctx->inputs[k]->shape),
                     "Inputs to operation must have the same size and shape: input 0 and input %u differ", k);
  if (count == 1) return tfc_cuda_set_output(l, 0, x);
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, x, &y));
  if (!x->size) return NULL;
  // An input that shares the output's memory must be read by the first launch, which overwrites it. If it is not among
  // the first TFC_CUDA_ADDENDS, the sum is computed in other memory.
  struct tfc_buffer *apart = NULL;
  for (uint32_t k = TFC_CUDA_ADDENDS; k < count && !apart; k++)
    if (l->ctx->inputs[k]->data == y->data) TFC_RETURN_IF_ERROR(tfc_kernel_scratch(l->ctx, y->size, &apart));
  void *sum = apart ? apart->data : y->data;
  int failed = 0;
  for (uint32_t at = 0; at < count && !failed;) {
    int n = 0;
    bool more = at > 0;
    while (n < TFC_CUDA_ADDENDS && at < count) addends[n++] = l->ctx->inputs[at++]->data;
    failed = tfc_cuda_add_n((int)x->dtype, addends, n, sum, tfc_cuda_count(x), more, l->stream);
  }
  if (apart && !failed) failed = tfc_cuda_copy_bytes(y->data, sum, y->size, l->stream);
  tfc_buffer_release(apart);
  return failed ? tfc_cuda_status(l, failed) : NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define ROW(name, LIST) {#name, OPS_BITS(LIST), NULL, launch_##name, 0},
#define EQUALITY(name, LIST)                                                                                           \
  { #name, OPS_BITS(LIST), equality_prepare, launch_##name, 0 }
#define ALIAS(op, name, LIST)                                                                                          \
  { op, OPS_BITS(LIST), NULL, launch_##name, 0 }
static const struct tfc_cuda_kernel elementwise_rows[] = {
    TFC_CUDA_UNARY_ARITHMETIC(ROW) TFC_CUDA_UNARY_TRANSCENDENTAL(ROW) TFC_CUDA_PREDICATES(ROW)
        TFC_CUDA_BINARY_ARITHMETIC(ROW) TFC_CUDA_BINARY_QUOTIENT(ROW) TFC_CUDA_BINARY_SLOPES(ROW)
            EQUALITY(Equal, TFC_CUDA_COMPARABLE),
    EQUALITY(NotEqual, TFC_CUDA_COMPARABLE),
    ALIAS("Less", Less, TFC_CUDA_ORDERED),
    ALIAS("LessEqual", LessEqual, TFC_CUDA_ORDERED),
    ALIAS("Greater", Greater, TFC_CUDA_ORDERED),
    ALIAS("GreaterEqual", GreaterEqual, TFC_CUDA_ORDERED),
    ALIAS("AddV2", Add, TFC_CUDA_REALS),
    ALIAS("_AtLeast", AtLeast, TFC_CUDA_SINGLE),
    // in the graph it is a choice, whose first input is boolean
    {"_Keep", TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_BOOL), NULL, launch_Keep, 0},
    ALIAS("RealDiv", Div, OPS_FLOATS),
    ALIAS("TruncateMod", Mod, TFC_CUDA_REALS),
    ALIAS("Inv", Reciprocal, OPS_FLOATS),
    ALIAS("InvGrad", ReciprocalGrad, OPS_FLOATS),
    {"LeakyRelu", OPS_BITS(OPS_FLOATS), leaky_prepare, launch_LeakyRelu, 0},
    {"LeakyReluGrad", OPS_BITS(OPS_FLOATS), leaky_prepare, launch_LeakyReluGrad, 0},
    {"Cast", OPS_BITS(TFC_CUDA_ALL), cast_prepare, launch_Cast, 0},
    {"Select", TFC_TYPE_BIT(TFC_BOOL), select_prepare, launch_Select, TFC_CUDA_ON_SMALL},
    {"SelectV2", TFC_TYPE_BIT(TFC_BOOL), select_prepare, launch_SelectV2, TFC_CUDA_ON_SMALL},
    {"AddN", OPS_BITS(TFC_CUDA_REALS), NULL, launch_AddN, 0},
};
TFC_CUDA_KERNELS(elementwise_rows);
