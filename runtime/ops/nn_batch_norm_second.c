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
  struct tfc_builder *b;
  struct tfc_output axes, vector; // axes: what is summed over; vector: the shape in which a statistic broadcasts
};

static struct tfc_output mul(const struct second *w, struct tfc_output x, struct tfc_output y) {
  return tfc_add2(w->b, "Mul", x, y);
}
static struct tfc_output add(const struct second *w, struct tfc_output x, struct tfc_output y) {
  return tfc_add2(w->b, "AddV2", x, y);
}
static struct tfc_output sub(const struct second *w, struct tfc_output x, struct tfc_output y) {
  return tfc_add2(w->b, "Sub", x, y);
}
static struct tfc_output reduce(const struct second *w, const char *op, struct tfc_output x, bool keep) {
  struct tfc_attr attr = tfc_attr_bool("keep_dims", keep);
  return tfc_add(w->b, op, NULL, (struct tfc_output[]){x, w->axes}, 2, &attr, 1);
}
static struct tfc_output mean(const struct second *w, struct tfc_output x) {
  return reduce(w, "Mean", x, true);
}
static struct tfc_output as(const struct second *w, struct tfc_output x, tfc_dtype type) {
  struct tfc_attr to = tfc_attr_type("DstT", type);
  return tfc_builder_dtype(w->b, x) == type ? x : tfc_add(w->b, "Cast", NULL, &x, 1, &to, 1);
}
static struct tfc_output channels(const struct second *w, struct tfc_output x) {
  return tfc_add2(w->b, "Reshape", as(w, x, TFC_FLOAT), w->vector);
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
  struct second w = {b, tfc_add_i32_vector(b, axes, n), tfc_add_i32_vector(b, dims, (uint32_t)rank)};
  tfc_dtype type = grad_in_type(ctx, 1);
  struct tfc_output gy = as(&w, grad_in(ctx, 0), TFC_FLOAT), x = as(&w, grad_in(ctx, 1), TFC_FLOAT);
  struct tfc_output scale = channels(&w, grad_in(ctx, 2)), a = as(&w, ctx->grad_outputs[0], TFC_FLOAT);
  struct tfc_output to_scale = channels(&w, ctx->grad_outputs[1]), to_offset = channels(&w, ctx->grad_outputs[2]);
  struct tfc_output centre = training ? mean(&w, x) : channels(&w, grad_in(ctx, 3));
  struct tfc_output xm = sub(&w, x, centre), u = a, v = gy;
  struct tfc_output variance = training ? mean(&w, tfc_add1(b, "Square", xm)) : channels(&w, grad_in(ctx, 4));
  double epsilon = grad_attr_float(ctx, "epsilon", 0.0001);
  struct tfc_output r = tfc_add1(b, "Rsqrt", add(&w, variance, tfc_add_scalar(b, TFC_FLOAT, epsilon)));
  struct tfc_output gain = mul(&w, scale, r), dscale = mul(&w, r, mul(&w, a, gy));
  struct tfc_output dy = mul(&w, to_scale, mul(&w, r, xm)), dx = mul(&w, mul(&w, to_scale, r), gy);
  if (training) {
    struct tfc_output r2 = tfc_add1(b, "Square", r);
    u = sub(&w, a, mean(&w, a));
    v = sub(&w, gy, mean(&w, gy));
    struct tfc_output along_a = mean(&w, mul(&w, a, xm)), along_gy = mean(&w, mul(&w, gy, xm));
    struct tfc_output both = mul(&w, r2, mul(&w, along_a, along_gy)), common = mean(&w, mul(&w, u, v));
    struct tfc_output three = tfc_add_scalar(b, TFC_FLOAT, 3);
    struct tfc_output of_x = sub(&w, mul(&w, three, both), common); // the factor of x'
    struct tfc_output rest = add(&w, mul(&w, along_gy, u), mul(&w, along_a, v));
    dx = mul(&w, mul(&w, gain, r2), sub(&w, mul(&w, of_x, xm), rest));
    struct tfc_output by_scale = sub(&w, v, mul(&w, mul(&w, r2, along_gy), xm));
    dx = add(&w, dx, mul(&w, mul(&w, to_scale, r), by_scale));
    u = sub(&w, u, mul(&w, mul(&w, r2, along_a), xm));
    dscale = mul(&w, r, mul(&w, u, gy));
  }
  dy = add(&w, add(&w, mul(&w, gain, u), dy), to_offset);
  ctx->grad_inputs[0] = as(&w, dy, type);
  ctx->grad_inputs[1] = as(&w, dx, type);
  ctx->grad_inputs[2] = reduce(&w, "Sum", dscale, false);
  return NULL;
}
