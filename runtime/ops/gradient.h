// Functions that the gradient functions of the op families use. A gradient function adds nodes to ctx->builder, which
// also keeps the first failure; so it need not check each call and may return NULL (its caller checks
// tfc_builder_status).
//
// As in TensorFlow, trainable outputs (floating, complex, resource, variant) without a gradient get zeros before the
// gradient function is called, as soon as one output has a gradient: grad_outputs[i] is TFC_NO_OUTPUT for integer
// outputs and similar ones only.
//
// For a node inside a while loop the function is called in the gradient's loop. It uses forward tensors as if they were
// available there; the caller replaces them by stacks.
//
//   static tfc_status mul_no_nan_grad(struct tfc_grad_ctx *ctx) { // z = x * y, of one shape
//     struct tfc_output g = ctx->grad_outputs[0], x = grad_in(ctx, 0), y = grad_in(ctx, 1);
//     ctx->grad_inputs[0] = tfc_add2(ctx->builder, "MulNoNan", g, y);
//     ctx->grad_inputs[1] = tfc_add2(ctx->builder, "MulNoNan", x, g);
//     return NULL;
//   }
#ifndef TFC_RUNTIME_OPS_GRADIENT_H
#define TFC_RUNTIME_OPS_GRADIENT_H

#include "runtime/graph/op_def.h"

static inline struct tfc_output grad_in(const struct tfc_grad_ctx *ctx, uint32_t i) { // forward input i
  return tfc_builder_input(ctx->builder, ctx->node, i);
}
static inline struct tfc_output grad_out(const struct tfc_grad_ctx *ctx, uint32_t i) { // forward output i
  return (struct tfc_output){ctx->node, (int32_t)i};
}
static inline uint32_t grad_in_count(const struct tfc_grad_ctx *ctx) {
  return tfc_builder_node(ctx->builder, ctx->node)->input_count;
}
static inline tfc_dtype grad_in_type(const struct tfc_grad_ctx *ctx, uint32_t i) { // base type
  return tfc_dtype_base(tfc_builder_dtype(ctx->builder, grad_in(ctx, i)));
}
// Read attributes of the forward node; they return `otherwise` if neither the node nor its definition gives a value.
const struct tfc_attr *grad_attr(const struct tfc_grad_ctx *ctx, const char *name);
int64_t grad_attr_int(const struct tfc_grad_ctx *ctx, const char *name, int64_t otherwise);
bool grad_attr_bool(const struct tfc_grad_ctx *ctx, const char *name, bool otherwise);
double grad_attr_float(const struct tfc_grad_ctx *ctx, const char *name, double otherwise);

// --- Nodes of the gradient ---------------------------------------------------------------------------------------
// Makes a static shape a constant int32 vector.
struct tfc_output grad_const_shape(const struct tfc_grad_ctx *ctx, const struct tfc_shape *shape);
// Makes the shape of forward input i an int32 vector: a constant if the shape is static, otherwise a Shape node.
struct tfc_output grad_shape_of_input(const struct tfc_grad_ctx *ctx, uint32_t i);

struct tfc_output grad_zeros_like(const struct tfc_grad_ctx *ctx, struct tfc_output x);
struct tfc_output grad_ones_like(const struct tfc_grad_ctx *ctx, struct tfc_output x);
// Sets the gradient of input i to rows: values [n, ...], indices [n], dense_shape [rank] (int32 or int64).
void grad_set_indexed(struct tfc_grad_ctx *ctx, uint32_t i, struct tfc_output values, struct tfc_output indices,
                      struct tfc_output dense_shape);

// Whether TensorFlow propagates gradients through this type (floating, complex, resource, variant).
static inline bool tfc_dtype_is_trainable(tfc_dtype t) {
  t = tfc_dtype_base(t);
  return tfc_dtype_is_floating(t) || tfc_dtype_is_complex(t) || t == TFC_RESOURCE || t == TFC_VARIANT;
}

// Adds a node with attributes copied from the forward node; `copied` names them: "strides padding data_format".
struct tfc_output grad_node(const struct tfc_grad_ctx *c, const char *op, const struct tfc_output *inputs,
                            uint32_t count, const char *copied);
#define TFC_OUTPUTS(...)                                                                                               \
  ((struct tfc_output[]){__VA_ARGS__}),                                                                                \
      (uint32_t)(sizeof((struct tfc_output[]){__VA_ARGS__}) / sizeof(struct tfc_output))
tfc_status grad_status(const struct tfc_grad_ctx *c); // NULL, or a copy of the builder's failure
// Whether no gradient arrives: there is no edge, or only zeros that the gradient builder put in.
bool grad_is_zero(const struct tfc_grad_ctx *c, struct tfc_output g);

static inline struct tfc_output grad_op1(const struct tfc_grad_ctx *g, const char *op, struct tfc_output x) {
  return tfc_add1(g->builder, op, x);
}
static inline struct tfc_output grad_op2(const struct tfc_grad_ctx *g, const char *op, struct tfc_output x,
                                         struct tfc_output y) {
  return tfc_add2(g->builder, op, x, y);
}
static inline struct tfc_output grad_op3(const struct tfc_grad_ctx *g, const char *op, struct tfc_output x,
                                         struct tfc_output y, struct tfc_output z) {
  return tfc_add3(g->builder, op, x, y, z);
}
static inline tfc_dtype grad_type(const struct tfc_grad_ctx *g, struct tfc_output x) {
  return tfc_dtype_base(tfc_builder_dtype(g->builder, x));
}
// Makes a scalar constant of x's type.
static inline struct tfc_output grad_const(const struct tfc_grad_ctx *g, struct tfc_output x, double value) {
  return tfc_add_scalar(g->builder, grad_type(g, x), value);
}
struct tfc_output grad_conj(const struct tfc_grad_ctx *g, struct tfc_output x); // x itself for real types
// Makes the shape of x: a constant if `shape` (optional) is static, else a Shape node.
struct tfc_output grad_shape(const struct tfc_grad_ctx *g, struct tfc_output x, const struct tfc_shape *shape,
                             tfc_dtype type);
struct tfc_output grad_sum(const struct tfc_grad_ctx *g, struct tfc_output x, struct tfc_output axes, bool keep_dims);
struct tfc_output grad_ints(const struct tfc_grad_ctx *g, tfc_dtype type, const int64_t *values, uint32_t count);
static inline struct tfc_output grad_int(const struct tfc_grad_ctx *g, tfc_dtype type, int64_t value) {
  return tfc_add_scalar(g->builder, type, (double)value);
}
struct tfc_output grad_concat(const struct tfc_grad_ctx *g, const struct tfc_output *parts, uint32_t count,
                              struct tfc_output axis);
struct tfc_output grad_pack(const struct tfc_grad_ctx *g, const struct tfc_output *parts, uint32_t count, int axis);
struct tfc_output grad_cast(const struct tfc_grad_ctx *g, struct tfc_output x, tfc_dtype type);
// grad_item is x[index] of a vector, as a scalar; grad_range is x[from:to], where `to` INT64_MAX means the end.
struct tfc_output grad_item(const struct tfc_grad_ctx *g, struct tfc_output x, int64_t index);
struct tfc_output grad_range(const struct tfc_grad_ctx *g, struct tfc_output x, int64_t from, int64_t to);
// Computes the gradients of two broadcast operands from those of the result, by summing over what was repeated. Either
// may be TFC_NO_OUTPUT. x_shape and y_shape are the inferred shapes.
void grad_unbroadcast(const struct tfc_grad_ctx *g, struct tfc_output x, const struct tfc_shape *x_shape,
                      struct tfc_output y, const struct tfc_shape *y_shape, struct tfc_output *gx,
                      struct tfc_output *gy);
// Returns the attribute of the forward node under the same name, for a node of the gradient; absent: kind NONE.
struct tfc_attr grad_copied_attr(const struct tfc_grad_ctx *g, const char *name);
tfc_status ops_grad_identity(struct tfc_grad_ctx *g); // passes gradient i to input i unchanged
tfc_status ops_grad_none(struct tfc_grad_ctx *g);     // no input has a gradient

// Names that make formulas shorter: G is the incoming gradient, X the first input and Y the first output.
#define OPS_GRADIENT(name) static tfc_status gradient_##name(struct tfc_grad_ctx *g)
#define G (g->grad_outputs[0])
#define X (grad_in(g, 0))
#define Y (grad_out(g, 0))
static inline struct tfc_output g_mul(const struct tfc_grad_ctx *g, struct tfc_output a, struct tfc_output b) {
  return grad_op2(g, "Mul", a, b);
}
static inline struct tfc_output g_add(const struct tfc_grad_ctx *g, struct tfc_output a, struct tfc_output b) {
  return grad_op2(g, "AddV2", a, b);
}
static inline struct tfc_output g_sub(const struct tfc_grad_ctx *g, struct tfc_output a, struct tfc_output b) {
  return grad_op2(g, "Sub", a, b);
}
static inline struct tfc_output g_div(const struct tfc_grad_ctx *g, struct tfc_output a, struct tfc_output b) {
  return grad_op2(g, "RealDiv", a, b);
}
static inline struct tfc_output g_neg(const struct tfc_grad_ctx *g, struct tfc_output a) {
  return grad_op1(g, "Neg", a);
}
static inline struct tfc_output g_reshape(const struct tfc_grad_ctx *g, struct tfc_output a, struct tfc_output shape) {
  return grad_op2(g, "Reshape", a, shape);
}

#endif
