#include "runtime/ops/gradient.h"

const struct tfc_attr *tfc_grad_attr(const struct tfc_grad_ctx *ctx, const char *name) {
  return tfc_builder_attr(ctx->builder, ctx->node, name);
}
int64_t tfc_grad_attr_int(const struct tfc_grad_ctx *ctx, const char *name, int64_t otherwise) {
  const struct tfc_attr *a = tfc_grad_attr(ctx, name);
  return a && a->kind == TFC_ATTR_INT ? a->i : otherwise;
}
bool tfc_grad_attr_bool(const struct tfc_grad_ctx *ctx, const char *name, bool otherwise) {
  const struct tfc_attr *a = tfc_grad_attr(ctx, name);
  return a && a->kind == TFC_ATTR_BOOL ? a->b : otherwise;
}
double tfc_grad_attr_float(const struct tfc_grad_ctx *ctx, const char *name, double otherwise) {
  const struct tfc_attr *a = tfc_grad_attr(ctx, name);
  return a && a->kind == TFC_ATTR_FLOAT ? a->f : otherwise;
}

struct tfc_output tfc_grad_const_shape(const struct tfc_grad_ctx *ctx, const struct tfc_shape *shape) {
  int32_t dims[TFC_MAX_RANK];
  for (int i = 0; i < shape->rank; i++) dims[i] = (int32_t)shape->dims[i];
  return tfc_add_i32_vector(ctx->builder, dims, (uint32_t)shape->rank);
}

struct tfc_output tfc_grad_shape_of_input(const struct tfc_grad_ctx *ctx, uint32_t i) {
  const struct tfc_shape *shape = ctx->input_shapes[i];
  if (tfc_shape_is_static(shape)) return tfc_grad_const_shape(ctx, shape);
  return tfc_add1(ctx->builder, "Shape", tfc_grad_input(ctx, i));
}

struct tfc_output tfc_grad_zeros_like(const struct tfc_grad_ctx *ctx, struct tfc_output x) {
  return tfc_add1(ctx->builder, "ZerosLike", x);
}
struct tfc_output tfc_grad_ones_like(const struct tfc_grad_ctx *ctx, struct tfc_output x) {
  return tfc_add1(ctx->builder, "OnesLike", x);
}
void tfc_grad_set_indexed(struct tfc_grad_ctx *ctx, uint32_t i, struct tfc_output values, struct tfc_output indices,
                          struct tfc_output dense_shape) {
  ctx->grad_inputs[i] = values;
  ctx->grad_indexed[i] = (struct tfc_indexed_slices){values, indices, dense_shape};
}
