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

static struct tfc_output shape_of(const struct tfc_grad_ctx *ctx, struct tfc_output x, const struct tfc_shape *shape) {
  return tfc_shape_is_static(shape) ? tfc_grad_const_shape(ctx, shape) : tfc_add1(ctx->builder, "Shape", x);
}
struct tfc_output tfc_grad_shape_of_input(const struct tfc_grad_ctx *ctx, uint32_t i) {
  return shape_of(ctx, tfc_grad_input(ctx, i), ctx->input_shapes[i]);
}
struct tfc_output tfc_grad_shape_of_output(const struct tfc_grad_ctx *ctx, uint32_t i) {
  return shape_of(ctx, tfc_grad_output(ctx, i), ctx->output_shapes[i]);
}

// Axes of the broadcast over which x was repeated; false where the shapes do not tell (an unknown dimension may be 1).
static bool repeated_axes(const struct tfc_shape *x, const struct tfc_shape *y, int32_t *axes, uint32_t *out_count) {
  uint32_t n = 0;
  if (x->rank < 0 || y->rank < 0) return false;
  int rank = x->rank > y->rank ? x->rank : y->rank;
  for (int i = 0; i < rank; i++) {
    int ix = i - (rank - x->rank), iy = i - (rank - y->rank);
    int64_t dx = ix < 0 ? 1 : x->dims[ix], dy = iy < 0 ? 1 : y->dims[iy];
    if (dx == 1 && dy != 1)
      axes[n++] = i;
    else if (!(dy == 1 && dx != 1) && (dx < 0 || dy < 0))
      return false;
  }
  *out_count = n;
  return true;
}

struct tfc_output tfc_grad_unbroadcast(const struct tfc_grad_ctx *ctx, struct tfc_output grad, uint32_t input,
                                       uint32_t other) {
  const struct tfc_shape *x = ctx->input_shapes[input], *y = ctx->input_shapes[other];
  struct tfc_builder *b = ctx->builder;
  int32_t axes[TFC_MAX_RANK];
  uint32_t count = 0;
  struct tfc_output reduced;
  if (!tfc_output_valid(grad)) return grad;
  if (repeated_axes(x, y, axes, &count)) {
    if (!count && x->rank >= y->rank) return grad;
    reduced = tfc_add_i32_vector(b, axes, count);
  } else {
    struct tfc_output shapes[] = {tfc_grad_shape_of_input(ctx, input), tfc_grad_shape_of_input(ctx, other)};
    reduced = tfc_add(b, "BroadcastGradientArgs", NULL, shapes, 2, NULL, 0);
  }
  struct tfc_attr keep = tfc_attr_bool("keep_dims", true);
  struct tfc_output sum = tfc_add(b, "Sum", NULL, (struct tfc_output[]){grad, reduced}, 2, &keep, 1);
  return tfc_add2(b, "Reshape", sum, tfc_grad_shape_of_input(ctx, input));
}

struct tfc_output tfc_grad_zeros_like(const struct tfc_grad_ctx *ctx, struct tfc_output x) {
  return tfc_add1(ctx->builder, "ZerosLike", x);
}
struct tfc_output tfc_grad_ones_like(const struct tfc_grad_ctx *ctx, struct tfc_output x) {
  return tfc_add1(ctx->builder, "OnesLike", x);
}
struct tfc_output tfc_grad_scalar_like(const struct tfc_grad_ctx *ctx, struct tfc_output like, double value) {
  return tfc_add_scalar(ctx->builder, tfc_builder_dtype(ctx->builder, like), value);
}
struct tfc_output tfc_grad_conj(const struct tfc_grad_ctx *ctx, struct tfc_output x) {
  return tfc_dtype_is_complex(tfc_builder_dtype(ctx->builder, x)) ? tfc_add1(ctx->builder, "Conj", x) : x;
}

void tfc_grad_set_indexed(struct tfc_grad_ctx *ctx, uint32_t i, struct tfc_output values, struct tfc_output indices,
                          struct tfc_output dense_shape) {
  ctx->grad_inputs[i] = values;
  ctx->grad_indexed[i] = (struct tfc_indexed_slices){values, indices, dense_shape};
}
