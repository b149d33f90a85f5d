// The gradient of batch normalisation's gradient, built from elementary operations as in TensorFlow.
//
// Let x' = x - mean, r = (variance + epsilon)^-1/2, and let means be over all dimensions but the channels. In training,
//   dx = scale r (dy - mean(dy) - x' r^2 mean(dy x')), dscale = N r mean(dy x'), doffset = N mean(dy);
// a, b and c are the gradients of these three. Outside of training, mean and variance are given, and dx = scale r dy.
#include "runtime/ops/nn_batch_norm_second.h"

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

struct second {
  const struct tfc_grad_ctx *ctx;
  struct tfc_output axes, vector; // axes: what is summed over; vector: the shape in which a statistic broadcasts
};

static struct tfc_output mean(const struct second *w, struct tfc_output x) {
  const struct tfc_attr keep = tfc_attr_bool("keep_dims", true);
  return tfc_add(w->ctx->builder, "Mean", NULL, (struct tfc_output[]){x, w->axes}, 2, &keep, 1);
}
static struct tfc_output channels(const struct second *w, struct tfc_output x) {
  return g_reshape(w->ctx, grad_cast(w->ctx, x, TFC_FLOAT), w->vector);
}

tfc_status ops_grad_batch_norm_grad(struct tfc_grad_ctx *ctx) {
  const struct tfc_attr *layout = grad_attr(ctx, "data_format");
  tfc_str format = layout && layout->kind == TFC_ATTR_STRING ? layout->s : TFC_STR("NHWC");
  bool first = tfc_str_starts(format, "NC"), training = grad_attr_bool(ctx, "is_training", true);
  int32_t rank = (int32_t)format.size, axes[5], dims[5];
  uint32_t n = 0;
  if (rank != 4 && rank != 5) return tfc_status_make(TFC_UNIMPLEMENTED, "data format '%.*s'", TFC_STR_ARG(format));
  for (int32_t i = 0; i < rank; i++) {
    bool channel = i == (first ? 1 : rank - 1);
    dims[i] = channel ? -1 : 1;
    if (!channel) axes[n++] = i;
  }
  struct tfc_builder *b = ctx->builder;
  const struct second w = {ctx, tfc_add_i32_vector(b, axes, n), tfc_add_i32_vector(b, dims, (uint32_t)rank)};
  tfc_dtype type = grad_in_type(ctx, 1);
  struct tfc_output gy = grad_cast(ctx, grad_in(ctx, 0), TFC_FLOAT), x = grad_cast(ctx, grad_in(ctx, 1), TFC_FLOAT);
  struct tfc_output scale = channels(&w, grad_in(ctx, 2)), a = grad_cast(ctx, ctx->grad_outputs[0], TFC_FLOAT);
  struct tfc_output to_scale = channels(&w, ctx->grad_outputs[1]), to_offset = channels(&w, ctx->grad_outputs[2]);
  struct tfc_output centre = training ? mean(&w, x) : channels(&w, grad_in(ctx, 3));
  struct tfc_output xm = g_sub(ctx, x, centre), u = a, v = gy;
  struct tfc_output variance = training ? mean(&w, tfc_add1(b, "Square", xm)) : channels(&w, grad_in(ctx, 4));
  double epsilon = grad_attr_float(ctx, "epsilon", 0.0001);
  struct tfc_output r = tfc_add1(b, "Rsqrt", g_add(ctx, variance, tfc_add_scalar(b, TFC_FLOAT, epsilon)));
  struct tfc_output gain = g_mul(ctx, scale, r), dscale = g_mul(ctx, r, g_mul(ctx, a, gy));
  struct tfc_output dy = g_mul(ctx, to_scale, g_mul(ctx, r, xm)), dx = g_mul(ctx, g_mul(ctx, to_scale, r), gy);
  if (training) {
    struct tfc_output r2 = tfc_add1(b, "Square", r);
    u = g_sub(ctx, a, mean(&w, a));
    v = g_sub(ctx, gy, mean(&w, gy));
    struct tfc_output along_a = mean(&w, g_mul(ctx, a, xm)), along_gy = mean(&w, g_mul(ctx, gy, xm));
    struct tfc_output both = g_mul(ctx, r2, g_mul(ctx, along_a, along_gy)), common = mean(&w, g_mul(ctx, u, v));
    struct tfc_output three = tfc_add_scalar(b, TFC_FLOAT, 3);
    struct tfc_output of_x = g_sub(ctx, g_mul(ctx, three, both), common); // the factor of x'
    struct tfc_output rest = g_add(ctx, g_mul(ctx, along_gy, u), g_mul(ctx, along_a, v));
    dx = g_mul(ctx, g_mul(ctx, gain, r2), g_sub(ctx, g_mul(ctx, of_x, xm), rest));
    struct tfc_output by_scale = g_sub(ctx, v, g_mul(ctx, g_mul(ctx, r2, along_gy), xm));
    dx = g_add(ctx, dx, g_mul(ctx, g_mul(ctx, to_scale, r), by_scale));
    u = g_sub(ctx, u, g_mul(ctx, g_mul(ctx, r2, along_a), xm));
    dscale = g_mul(ctx, r, g_mul(ctx, u, gy));
  }
  dy = g_add(ctx, g_add(ctx, g_mul(ctx, gain, u), dy), to_offset);
  ctx->grad_inputs[0] = grad_cast(ctx, dy, type);
  ctx->grad_inputs[1] = grad_cast(ctx, dx, type);
  ctx->grad_inputs[2] = grad_sum(ctx, dscale, w.axes, false);
  return NULL;
}
