// RGBToHSV and HSVToRGB, which convert colours in the last dimension, of size 3.
#include <math.h>
#include <tgmath.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// These give the second operand if one is NaN.
#define GREATER(a, b) ((a) > (b) ? (a) : (b))
#define LESSER(a, b) ((a) < (b) ? (a) : (b))
#define COLORS(t, ...)                                                                                                 \
  static void rgb_to_hsv_##t(const void *xv, void *yv, int64_t n) {                                                    \
    typedef ops_##t##_c C;                                                                                             \
    const ops_##t *x = xv;                                                                                             \
    ops_##t *y = yv;                                                                                                   \
    for (int64_t i = 0; i < n; i++, x += 3, y += 3) {                                                                  \
      const C r = OPS_GET_##t(x[0]), g = OPS_GET_##t(x[1]), b = OPS_GET_##t(x[2]);                                     \
      const C most = GREATER(GREATER(r, g), b), range = most - LESSER(LESSER(r, g), b);                                \
      const C norm = (C)1 / range * (C)(1.0 / 6.0);                                                                    \
      C h = r == most   ? norm * (g - b)                                                                               \
            : g == most ? norm * (b - r) + (C)(2.0 / 6.0)                                                              \
                        : norm * (r - g) + (C)(4.0 / 6.0);                                                             \
      h = range > 0 ? h : 0;                                                                                           \
      h = h < 0 ? h + 1 : h;                                                                                           \
      y[0] = OPS_PUT_##t(h);                                                                                           \
      y[1] = OPS_PUT_##t(most > 0 ? range / most : 0);                                                                 \
      y[2] = OPS_PUT_##t(most);                                                                                        \
    }                                                                                                                  \
  }                                                                                                                    \
  static void hsv_to_rgb_##t(const void *xv, void *yv, int64_t n) {                                                    \
    typedef ops_##t##_c C;                                                                                             \
    const ops_##t *x = xv;                                                                                             \
    ops_##t *y = yv;                                                                                                   \
    for (int64_t i = 0; i < n; i++, x += 3, y += 3) {                                                                  \
      const C h = OPS_GET_##t(x[0]) * 6, s = OPS_GET_##t(x[1]), v = OPS_GET_##t(x[2]), rest = 1 - s;                   \
      const C part[3] = {fabs(h - 3) - 1, 2 - fabs(h - 2), 2 - fabs(h - 4)};                                           \
      for (int k = 0; k < 3; k++) {                                                                                    \
        const C p = part[k] < 0 ? 0 : part[k] > 1 ? 1 : part[k];                                                       \
        y[k] = OPS_PUT_##t((rest + s * p) * v);                                                                        \
      }                                                                                                                \
    }                                                                                                                  \
  }
OPS_FLOATS(COLORS, ~)
#define ENTRY(t, name) [OPS_DT_##t] = name##_##t,
static ops_unary_fn *const to_hsv[TFC_DTYPE_COUNT] = {OPS_FLOATS(ENTRY, rgb_to_hsv)};
static ops_unary_fn *const to_rgb[TFC_DTYPE_COUNT] = {OPS_FLOATS(ENTRY, hsv_to_rgb)};

static tfc_status convert(struct tfc_kernel_ctx *ctx, ops_unary_fn *const *table) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  if (!table[x->dtype]) return ops_unsupported_type(ctx, x->dtype);
  TFC_KERNEL_CHECK(x->shape.rank >= 1 && x->shape.dims[x->shape.rank - 1] == 3, "input must have 3 channels");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  table[x->dtype](x->data, y->data, tfc_tensor_elements(x) / 3);
  return NULL;
}
static tfc_status rgb_to_hsv(struct tfc_kernel_ctx *ctx) {
  return convert(ctx, to_hsv);
}
static tfc_status hsv_to_rgb(struct tfc_kernel_ctx *ctx) {
  return convert(ctx, to_rgb);
}
static tfc_status shape_colors(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 1, &x));
  if (x.rank > 0) {
    int64_t three;
    TFC_RETURN_IF_ERROR(tfc_dim_merge(x.dims[x.rank - 1], 3, &three));
    x.dims[x.rank - 1] = three;
  }
  ctx->outputs[0] = x;
  return NULL;
}

// --- Gradient --------------------------------------------------------------------------------------------------------
// The gradient of RGBToHSV is piecewise: the derivative depends on which channel is the largest and which the smallest.
// Of equal channels red counts first, then green. `a`, `b`, `c` below are channels; n(x) is 1/x, and 0 if x is 0.
struct colors {
  struct tfc_grad_ctx *g;
  struct tfc_output channel[3], largest[3], smallest[3], positive[3];
};
static struct tfc_output channel_of(struct tfc_grad_ctx *g, struct tfc_output x, int i) { // x[..., i]
  struct tfc_output at = tfc_add_i32(g->builder, i), last = tfc_add_i32(g->builder, -1);
  return grad_op3(g, "GatherV2", x, at, last);
}
static struct tfc_output n(struct colors *c, struct tfc_output x) {
  return grad_op2(c->g, "DivNoNan", grad_const(c->g, x, 1), x);
}
static struct tfc_output square(struct colors *c, struct tfc_output x) {
  return grad_op1(c->g, "Square", x);
}
static struct tfc_output when(struct colors *c, const char *op1, struct tfc_output a1, struct tfc_output b1,
                              const char *op2, struct tfc_output a2, struct tfc_output b2) {
  struct tfc_output both = grad_op2(c->g, "LogicalAnd", grad_op2(c->g, op1, a1, b1), grad_op2(c->g, op2, a2, b2));
  return grad_cast(c->g, both, grad_type(c->g, c->channel[0]));
}
static struct tfc_output scaled(struct colors *c, struct tfc_output x, double factor) {
  return g_mul(c->g, grad_const(c->g, x, factor), x);
}
// Returns the term 60 positive[k] mask rest, with the sign of `sign`.
static struct tfc_output hue_term(struct colors *c, int k, struct tfc_output mask, struct tfc_output rest,
                                  double sign) {
  struct tfc_output t = g_mul(c->g, c->positive[k], mask);
  if (sign < 0) t = scaled(c, t, -1);
  return scaled(c, g_mul(c->g, t, rest), 60);
}
OPS_GRADIENT(RGBToHSV) {
  struct colors c = {.g = g};
  struct tfc_output saturation = channel_of(g, Y, 1), value = channel_of(g, Y, 2), slope[3][3]; // [output][channel]
  for (int k = 0; k < 3; k++) c.channel[k] = channel_of(g, X, k);
  struct tfc_output r = c.channel[0], gr = c.channel[1], b = c.channel[2];
  c.largest[0] = when(&c, "GreaterEqual", r, b, "GreaterEqual", r, gr);
  c.largest[1] = when(&c, "Greater", gr, r, "GreaterEqual", gr, b);
  c.largest[2] = when(&c, "Greater", b, r, "Greater", b, gr);
  c.smallest[0] = when(&c, "Less", r, b, "Less", r, gr);
  c.smallest[1] = when(&c, "LessEqual", gr, r, "Less", gr, b);
  c.smallest[2] = when(&c, "LessEqual", b, r, "LessEqual", b, gr);
  for (int k = 0; k < 3; k++) {
    c.positive[k] = grad_cast(g, grad_op2(g, "Greater", c.channel[k], grad_const(g, r, 0)), grad_type(g, r));
    slope[2][k] = c.largest[k];
  }
  // The saturation is 1 - least / most. Its slope is least / most² for the largest channel and -1 / most for the
  // smallest.
  for (int k = 0; k < 3; k++) {
    int p = k == 0 ? 1 : 0, q = k == 2 ? 1 : 2;
    struct tfc_output least = g_add(g, g_mul(g, c.smallest[p], c.channel[p]), g_mul(g, c.smallest[q], c.channel[q]));
    struct tfc_output most = g_add(g, g_mul(g, c.largest[p], c.channel[p]), g_mul(g, c.largest[q], c.channel[q]));
    struct tfc_output first = g_mul(g, g_mul(g, c.largest[k], least), n(&c, square(&c, c.channel[k])));
    struct tfc_output second = g_mul(g, scaled(&c, c.smallest[k], -1), n(&c, most));
    slope[1][k] = g_mul(g, c.positive[k], g_add(g, first, second));
  }
  // The slope of the hue depends on which channel is the largest (there the range is squared) and, for the other
  // channels, on whether they are the smallest.
  struct tfc_output range2 = g_mul(g, n(&c, square(&c, saturation)), n(&c, square(&c, value)));
  struct tfc_output d_gb = g_sub(g, gr, b), d_bg = g_sub(g, b, gr), d_br = g_sub(g, b, r), d_rb = g_sub(g, r, b);
  struct tfc_output d_rg = g_sub(g, r, gr), d_gr = g_sub(g, gr, r);
#define BOTH(i, j) g_mul(g, c.largest[i], c.smallest[j])
  struct tfc_output red[5] = {hue_term(&c, 0, c.largest[0], g_mul(g, d_gb, range2), -1),
                              hue_term(&c, 1, BOTH(1, 0), g_mul(g, d_bg, n(&c, square(&c, d_rg))), 1),
                              hue_term(&c, 1, BOTH(1, 2), n(&c, d_gb), -1),
                              hue_term(&c, 2, BOTH(2, 0), g_mul(g, d_bg, n(&c, square(&c, d_br))), 1),
                              hue_term(&c, 2, BOTH(2, 1), n(&c, d_bg), 1)};
  struct tfc_output green[5] = {hue_term(&c, 1, c.largest[1], g_mul(g, d_br, range2), -1),
                                hue_term(&c, 0, BOTH(0, 1), g_mul(g, d_rb, n(&c, square(&c, d_rg))), 1),
                                hue_term(&c, 0, BOTH(0, 2), n(&c, d_rb), 1),
                                hue_term(&c, 2, BOTH(2, 1), g_mul(g, d_rb, n(&c, square(&c, d_bg))), 1),
                                hue_term(&c, 2, BOTH(2, 0), n(&c, d_br), -1)};
  struct tfc_output blue[5] = {hue_term(&c, 2, c.largest[2], g_mul(g, d_rg, range2), -1),
                               hue_term(&c, 0, BOTH(0, 2), g_mul(g, d_gr, n(&c, square(&c, d_rb))), 1),
                               hue_term(&c, 0, BOTH(0, 1), n(&c, d_rg), -1),
                               hue_term(&c, 1, BOTH(1, 2), g_mul(g, d_gr, n(&c, square(&c, d_gb))), 1),
                               hue_term(&c, 1, BOTH(1, 0), n(&c, d_gr), 1)};
  struct tfc_output *hue[3] = {red, green, blue};
  for (int k = 0; k < 3; k++) {
    struct tfc_output sum = hue[k][0];
    for (int i = 1; i < 5; i++) sum = g_add(g, sum, hue[k][i]);
    slope[0][k] = g_div(g, sum, grad_const(g, r, 360));
  }
  struct tfc_output parts[3];
  for (int o = 0; o < 3; o++) {
    struct tfc_output arrived = channel_of(g, G, o), by[3];
    for (int k = 0; k < 3; k++) by[k] = g_mul(g, arrived, slope[o][k]);
    parts[o] = grad_pack(g, by, 3, -1);
  }
  g->grad_inputs[0] = g_add(g, g_add(g, parts[2], parts[1]), parts[0]);
  return NULL;
}

#define ROW(run)                                                                                                       \
  .types = OPS_BITS(OPS_FLOATS), .shape = shape_colors, .cost = ops_cost_outputs, .kernel = run,                       \
  .samples = "float[2,3]; double[4,5,3]"
static const struct tfc_op_def image_color_rows[] = {
    {.name = "RGBToHSV",
     .inputs = "images: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double} = float",
     ROW(rgb_to_hsv),
     .gradient = gradient_RGBToHSV},
    {.name = "HSVToRGB",
     .inputs = "images: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double} = float",
     ROW(hsv_to_rgb)},
};
TFC_REGISTER_OPS(image_color_rows);
