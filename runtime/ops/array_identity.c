// Operations that bring in values (Const, Placeholder), that pass their input on (Identity and similar ones), and NoOp.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// --- Sources -----------------------------------------------------------------------------------------------------
static tfc_status type_of_const(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_tensor *value) {
  const tfc_dtype type = g->output_dtypes[n->output_begin];
  if (value->dtype == type) return NULL;
  return tfc_status_make(TFC_INVALID_ARGUMENT, "Type mismatch between value (%s) and dtype (%s)",
                         tfc_dtype_name(value->dtype), tfc_dtype_name(type));
}

static tfc_status shape_const(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *value = tfc_node_attr(ctx->graph, ctx->node, "value");
  if (!value || value->kind != TFC_ATTR_TENSOR) return NULL;
  ctx->outputs[0] = value->tensor->shape;
  return type_of_const(ctx->graph, ctx->node, value->tensor);
}

static tfc_status prepare_const(struct tfc_prepare_ctx *ctx) {
  const struct tfc_attr *value = tfc_node_attr(ctx->graph, ctx->node, "value");
  if (!value || value->kind != TFC_ATTR_TENSOR) return tfc_status_make(TFC_INVALID_ARGUMENT, "a Const without a value");
  ctx->state = (void *)(uintptr_t)value->tensor; // the tensor exists as long as the graph
  return type_of_const(ctx->graph, ctx->node, value->tensor);
}

static tfc_status constant(struct tfc_kernel_ctx *ctx) {
  return tfc_kernel_set_output(ctx, 0, ctx->state);
}

static tfc_status shape_placeholder(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *shape = tfc_node_attr(ctx->graph, ctx->node, "shape");
  if (!shape || shape->kind != TFC_ATTR_SHAPE) return NULL;
  // Graphs of producer version 21 or older write a scalar's shape for an unknown one.
  if (shape->shape->rank == 0 && ctx->graph->producer_version > 0 && ctx->graph->producer_version <= 21) return NULL;
  ctx->outputs[0] = *shape->shape;
  for (int d = 0; d < ctx->outputs[0].rank; d++)
    if (ctx->outputs[0].dims[d] < 0) ctx->outputs[0].dims[d] = TFC_DIM_UNKNOWN;
  return NULL;
}

static tfc_status unfed(struct tfc_kernel_ctx *ctx) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "You must feed a value for placeholder '%.*s'",
                         TFC_STR_ARG(ctx->node->name));
}

static tfc_status shape_placeholder_with_default(struct tfc_shape_ctx *ctx) {
  TFC_RETURN_IF_ERROR(shape_placeholder(ctx));
  if (ctx->outputs[0].rank < 0) return NULL; // any shape may be fed
  struct tfc_shape merged;
  return tfc_shape_merge(&ctx->outputs[0], ctx->inputs[0], &merged);
}

static tfc_status nothing(struct tfc_kernel_ctx *ctx) {
  (void)ctx;
  return NULL;
}

// --- Passing inputs on unchanged ---------------------------------------------------------------------------------
static tfc_status hand_on(struct tfc_kernel_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->output_count; i++) TFC_RETURN_IF_ERROR(tfc_kernel_set_output(ctx, i, ctx->inputs[i]));
  return NULL;
}

static tfc_status shape_identity(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count && i < ctx->node->input_count; i++) {
    ctx->outputs[i] = *ctx->inputs[i];
    if (ctx->input_as_shape && ctx->input_as_shape[i]) ops_set_partial(ctx, i, ctx->input_as_shape[i]);
    if (ctx->output_handles && ctx->input_handles && ctx->input_handles[i])
      ctx->output_handles[i] = *ctx->input_handles[i];
  }
  return NULL;
}

static tfc_status copy(struct tfc_kernel_ctx *ctx) { // gives the output memory of its own
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  if (!tfc_dtype_is_plain(x->dtype)) {
    struct tfc_tensor made = {0};
    TFC_RETURN_IF_ERROR(tfc_tensor_clone(x, &made));
    tfc_status s = tfc_kernel_set_output(ctx, 0, &made);
    tfc_tensor_release(&made);
    return s;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  if (x->size && y->data != x->data) memcpy(y->data, x->data, x->size);
  return NULL;
}

// PreventGradient: building its gradient fails with the node's own message.
OPS_GRADIENT(PreventGradient) {
  const struct tfc_attr *message = grad_attr(g, "message");
  tfc_str text = message && message->kind == TFC_ATTR_STRING ? message->s : (tfc_str){0};
  return tfc_status_make(TFC_INVALID_ARGUMENT, "Gradient explicitly disabled. Reason: %.*s", TFC_STR_ARG(text));
}

// --- EnsureShape, CheckNumerics ------------------------------------------------------------------------------------
static tfc_status shape_ensure(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *shape = tfc_node_attr(ctx->graph, ctx->node, "shape");
  if (!shape || shape->kind != TFC_ATTR_SHAPE) return ops_shape_same(ctx);
  struct tfc_shape merged;
  TFC_RETURN_IF_ERROR(tfc_shape_merge(ctx->inputs[0], shape->shape, &merged));
  ctx->outputs[0] = merged;
  return NULL;
}

static tfc_status prepare_ensure(struct tfc_prepare_ctx *ctx) {
  const struct tfc_attr *shape = tfc_node_attr(ctx->graph, ctx->node, "shape");
  ctx->state = shape && shape->kind == TFC_ATTR_SHAPE ? (void *)(uintptr_t)shape->shape : NULL;
  return NULL;
}

static tfc_status ensure(struct tfc_kernel_ctx *ctx) {
  const struct tfc_shape *wanted = ctx->state;
  if (wanted && !tfc_shape_compatible(wanted, &ctx->inputs[0]->shape)) {
    char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Shape of tensor %s is not compatible with expected shape %s.",
                           tfc_shape_show(&ctx->inputs[0]->shape, a), tfc_shape_show(wanted, b));
  }
  return tfc_kernel_set_output(ctx, 0, ctx->inputs[0]);
}

#define FIND_UNUSUAL(t, ...)                                                                                           \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      ops_##t##_c v = OPS_GET_##t(((const ops_##t *)x->data)[i]);                                                      \
      nan |= v != v;                                                                                                   \
      negative |= v < -max_##t;                                                                                        \
      positive |= v > max_##t;                                                                                         \
    }                                                                                                                  \
    break;
static tfc_status check_numerics(struct tfc_kernel_ctx *ctx) {
  static const float max_f32 = 3.402823466e+38f, max_f16 = 3.402823466e+38f, max_b16 = 3.402823466e+38f;
  static const double max_f64 = 1.7976931348623157e+308;
  const struct tfc_tensor *x = ctx->inputs[0];
  bool nan = false, negative = false, positive = false;
  int64_t n = tfc_tensor_elements(x);
  switch (x->dtype) {
    OPS_FLOATS(FIND_UNUSUAL, ~)
  default: return ops_unsupported_type(ctx, x->dtype);
  }
  if (nan || negative || positive) {
    const tfc_str *message = ctx->state;
    bool inf = negative || positive;
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%.*s : Tensor had %s values", message ? (int)message->size : 0,
                           message && message->data ? message->data : "",
                           nan && inf ? "Inf and NaN"
                           : nan      ? "NaN"
                                      : "Inf");
  }
  return tfc_kernel_set_output(ctx, 0, x);
}

static tfc_status prepare_message(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, tfc_str, message);
  *message = tfc_node_attr_string(ctx->graph, ctx->node, "message", "");
  return NULL;
}

OPS_GRADIENT(CheckNumerics) {
  const struct tfc_attr *message = grad_attr(g, "message");
  tfc_str own = message && message->kind == TFC_ATTR_STRING ? message->s : (tfc_str){0};
  char text[512];
  int n = snprintf(text, sizeof text, "Not a number (NaN) or infinity (Inf) values detected in gradient. %.*s",
                   TFC_STR_ARG(own));
  struct tfc_attr attr = tfc_attr_string("message", (tfc_str){text, (size_t)n < sizeof text ? (size_t)n : 511});
  g->grad_inputs[0] = tfc_add(g->builder, "CheckNumerics", "", &G, 1, &attr, 1);
  return NULL;
}

// Makes an output of the shape in the attribute. In a branch of an If, it replaces a tensor that only the other branch
// makes. Nothing reads it, so unknown dimensions become 0.
static tfc_status fake_param(struct tfc_kernel_ctx *ctx) {
  const struct tfc_attr *given = tfc_node_attr(ctx->graph, ctx->node, "shape");
  struct tfc_shape shape = given && given->kind == TFC_ATTR_SHAPE ? *given->shape : TFC_SHAPE_UNKNOWN;
  struct tfc_tensor *y = NULL;
  if (shape.rank < 0) shape = TFC_SHAPE_SCALAR;
  for (int d = 0; d < shape.rank; d++)
    if (!tfc_dim_known(shape.dims[d])) shape.dims[d] = 0;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ctx->graph->output_dtypes[ctx->node->output_begin], &shape, &y));
  if (tfc_dtype_is_plain(y->dtype)) ops_fill_zero(y);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define HAND_ON .shape = shape_identity, .cost = ops_cost_nothing, .kernel = hand_on
#define ANY_SAMPLES "float[3,4]; int32[2]; bool[]"

static const struct tfc_op_def array_identity_rows[] = {
    {.name = "Const",
     .role = TFC_ROLE_CONST,
     .inputs = "",
     .outputs = "output: dtype",
     .attrs = "value: tensor, dtype: type",
     .flags = TFC_OP_NOP | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_const,
     .cost = ops_cost_nothing,
     .prepare = prepare_const,
     .kernel = constant},
    {.name = "Placeholder",
     .inputs = "",
     .outputs = "output: dtype",
     .attrs = "dtype: type, shape: shape = { unknown_rank: true }",
     .flags = TFC_OP_READS_OUTSIDE | TFC_OP_PLACEHOLDER | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_placeholder,
     .cost = ops_cost_nothing,
     .kernel = unfed},
    {.name = "PlaceholderWithDefault",
     .role = TFC_ROLE_DEFAULT,
     .inputs = "input: dtype",
     .outputs = "output: dtype",
     .attrs = "dtype: type, shape: shape",
     .flags = TFC_OP_READS_OUTSIDE | TFC_OP_VIEW,
     .host = {"dtype", TFC_INT32_BIT},
     .shape = shape_placeholder_with_default,
     .cost = ops_cost_nothing,
     .kernel = hand_on,
     .gradient = ops_grad_identity},
    {.name = "FakeParam",
     .inputs = "",
     .outputs = "output: dtype",
     .attrs = "dtype: type, shape: shape",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_placeholder,
     .cost = ops_cost_nothing,
     .kernel = fake_param},
    {.name = "NoOp",
     .role = TFC_ROLE_NOTHING,
     .inputs = "",
     .outputs = "",
     .attrs = "",
     .flags = TFC_OP_NO_ELEMENTS | TFC_OP_NOP | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = ops_shape_nothing,
     .cost = ops_cost_nothing,
     .kernel = nothing},
    {.name = "Identity",
     .role = TFC_ROLE_IDENTITY,
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .flags = TFC_OP_VIEW,
     HAND_ON,
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .gradient = ops_grad_identity,
     .samples = ANY_SAMPLES},
    {.name = "IdentityN",
     .role = TFC_ROLE_SPREAD,
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: list(type) >= 1",
     HAND_ON,
     .index_use = TFC_INDEX_MOVED,
     .gradient = ops_grad_identity,
     .samples = "float[3,4], int32[2]; bool[]"},
    {.name = "StopGradient",
     .role = TFC_ROLE_PASSES,
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .flags = TFC_OP_VIEW | TFC_OP_NOT_DIFFERENTIABLE,
     HAND_ON,
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .samples = ANY_SAMPLES},
    {.name = "PreventGradient",
     .role = TFC_ROLE_PASSES,
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type, message: string = ''",
     .flags = TFC_OP_VIEW,
     HAND_ON,
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .gradient = gradient_PreventGradient,
     .samples = ANY_SAMPLES},
    {.name = "Snapshot",
     .role = TFC_ROLE_PASSES,
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .flags = TFC_OP_INPLACE,
     .index_use = TFC_INDEX_MOVED,
     .shape = ops_shape_same,
     .kernel = copy,
     .gradient = ops_grad_identity,
     .samples = ANY_SAMPLES},
    {.name = "DeepCopy",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: type",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"T", TFC_INT32_BIT},
     .shape = ops_shape_same,
     .kernel = copy,
     .samples = ANY_SAMPLES},
    {.name = "EnsureShape",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "shape: shape, T: type",
     .flags = TFC_OP_VIEW | TFC_OP_CHECKS,
     .host = {"T", TFC_INT32_BIT | TFC_TYPE_BIT(TFC_BOOL)},
     .shape = shape_ensure,
     .cost = ops_cost_nothing,
     .prepare = prepare_ensure,
     .kernel = ensure,
     .gradient = ops_grad_identity,
     .samples = "float[3,4] {shape=[?,4]}"},
    {.name = "CheckNumerics",
     .inputs = "tensor: T",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_FLOAT ", message: string",
     .flags = TFC_OP_VIEW | TFC_OP_CHECKS,
     .types = OPS_BITS(OPS_FLOATS),
     .shape = ops_shape_same,
     .cost = ops_cost_outputs,
     .prepare = prepare_message,
     .kernel = check_numerics,
     .gradient = gradient_CheckNumerics,
     .samples = "float[3,4] {message='x'}"},
    {.name = "CheckNumericsV2",
     .inputs = "tensor: T",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_FLOAT ", message: string",
     .flags = TFC_OP_STATEFUL | TFC_OP_VIEW | TFC_OP_CHECKS,
     .types = OPS_BITS(OPS_FLOATS),
     .shape = ops_shape_same,
     .cost = ops_cost_outputs,
     .prepare = prepare_message,
     .kernel = check_numerics,
     .gradient = gradient_CheckNumerics},
    {.name = "GuaranteeConst",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .flags = TFC_OP_STATEFUL | TFC_OP_VIEW | TFC_OP_NOT_DIFFERENTIABLE,
     HAND_ON},
};
TFC_REGISTER_OPS(array_identity_rows);
