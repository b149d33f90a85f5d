// What the gradient functions of the op families share. Nodes are added to ctx->builder, which also keeps the first
// failure; so a gradient function need not check each call and may return NULL (the caller asks tfc_builder_status).
//
// As in TensorFlow, trainable outputs (floating, complex, resource, variant) without a gradient get zeros before the
// gradient function is called, as soon as one output has a gradient: grad_outputs[i] is TFC_NO_OUTPUT for integer
// outputs and the like only.
//
// For a node inside a while loop the function is called in the gradient's loop. It uses forward tensors as if they were
// available there; the caller replaces them by stacks.
//
//   static tfc_status mul_no_nan_grad(struct tfc_grad_ctx *ctx) { // z = x * y, of one shape
//     struct tfc_output g = ctx->grad_outputs[0], x = tfc_grad_input(ctx, 0), y = tfc_grad_input(ctx, 1);
//     ctx->grad_inputs[0] = tfc_add2(ctx->builder, "MulNoNan", g, y);
//     ctx->grad_inputs[1] = tfc_add2(ctx->builder, "MulNoNan", x, g);
//     return NULL;
//   }
//
// Short forms for formulas, broadcasting among them, are in math_row.h.
#ifndef TFC_RUNTIME_OPS_GRADIENT_H
#define TFC_RUNTIME_OPS_GRADIENT_H

#include "runtime/graph/op_def.h"

static inline struct tfc_output tfc_grad_input(const struct tfc_grad_ctx *ctx, uint32_t i) { // forward input i
  return tfc_builder_input(ctx->builder, ctx->node, i);
}
static inline struct tfc_output tfc_grad_output(const struct tfc_grad_ctx *ctx, uint32_t i) { // forward output i
  return (struct tfc_output){ctx->node, (int32_t)i};
}
static inline uint32_t tfc_grad_input_count(const struct tfc_grad_ctx *ctx) {
  return tfc_builder_node(ctx->builder, ctx->node)->input_count;
}
static inline tfc_dtype tfc_grad_input_dtype(const struct tfc_grad_ctx *ctx, uint32_t i) { // base type
  return tfc_dtype_base(tfc_builder_dtype(ctx->builder, tfc_grad_input(ctx, i)));
}
// Attributes of the forward node; the finders give `otherwise` where it has none and its definition no default.
const struct tfc_attr *tfc_grad_attr(const struct tfc_grad_ctx *ctx, const char *name);
int64_t tfc_grad_attr_int(const struct tfc_grad_ctx *ctx, const char *name, int64_t otherwise);
bool tfc_grad_attr_bool(const struct tfc_grad_ctx *ctx, const char *name, bool otherwise);
double tfc_grad_attr_float(const struct tfc_grad_ctx *ctx, const char *name, double otherwise);

// Shape of forward input i as an int32 vector: a constant where it is static, else a Shape node.
struct tfc_output tfc_grad_shape_of_input(const struct tfc_grad_ctx *ctx, uint32_t i);
struct tfc_output tfc_grad_const_shape(const struct tfc_grad_ctx *ctx, const struct tfc_shape *shape); // static

struct tfc_output tfc_grad_zeros_like(const struct tfc_grad_ctx *ctx, struct tfc_output x);
struct tfc_output tfc_grad_ones_like(const struct tfc_grad_ctx *ctx, struct tfc_output x);
// The gradient of input i consists of rows: values [n, ...], indices [n], dense_shape [rank] (int32 or int64).
void tfc_grad_set_indexed(struct tfc_grad_ctx *ctx, uint32_t i, struct tfc_output values, struct tfc_output indices,
                          struct tfc_output dense_shape);

// Whether TensorFlow propagates gradients through this type (floating, complex, resource, variant).
static inline bool tfc_dtype_is_trainable(tfc_dtype t) {
  t = tfc_dtype_base(t);
  return tfc_dtype_is_floating(t) || tfc_dtype_is_complex(t) || t == TFC_RESOURCE || t == TFC_VARIANT;
}

#endif
