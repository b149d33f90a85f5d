// AdjustContrast, AdjustHue and AdjustSaturation for images [..., height, width, channels] in float32.
#include <math.h>

#include "runtime/ops/row.h"

struct adjust {
  const float *x;
  float *y;
  int64_t pixels, channels; // of one image; used for contrast
  float by;
};

static tfc_status start(struct tfc_kernel_ctx *ctx, const char *what, bool colors, struct adjust *out) {
  const struct tfc_tensor *x = ctx->inputs[0], *by = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  if (x->dtype != TFC_FLOAT)
    return tfc_status_make(TFC_UNIMPLEMENTED, "images of %s are not supported, only float32", tfc_dtype_name(x->dtype));
  TFC_KERNEL_CHECK(x->shape.rank >= 3, "input must be at least 3-D, got shape %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(by->shape.rank == 0, "%s must be scalar: %s", what,
                   tfc_shape_show(&by->shape, (char[TFC_SHAPE_TEXT]){0}));
  int64_t channels = x->shape.dims[x->shape.rank - 1];
  TFC_KERNEL_CHECK(!colors || channels == 3, "input must have 3 channels but instead has %lld channels.",
                   (long long)channels);
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  *out = (struct adjust){x->data, y->data, x->shape.dims[x->shape.rank - 3] * x->shape.dims[x->shape.rank - 2],
                         channels, *(const float *)by->data};
  return NULL;
}

// y = (x - mean) * factor + mean, where mean is each channel's mean over the image's pixels
static void contrast_images(void *arg, int64_t begin, int64_t end) {
  const struct adjust *a = arg;
  for (int64_t i = begin; i < end; i++) {
    const float *x = a->x + i * a->pixels * a->channels;
    float *y = a->y + i * a->pixels * a->channels;
    for (int64_t c = 0; c < a->channels; c++) {
      double sum = 0;
      for (int64_t p = 0; p < a->pixels; p++) sum += (double)x[p * a->channels + c];
      float mean = (float)(sum / (double)a->pixels);
      for (int64_t p = 0; p < a->pixels; p++) y[p * a->channels + c] = (x[p * a->channels + c] - mean) * a->by + mean;
    }
  }
}
static tfc_status adjust_contrast(struct tfc_kernel_ctx *ctx) {
  struct adjust a;
  TFC_RETURN_IF_ERROR(start(ctx, "contrast_factor", false, &a));
  int64_t n = tfc_tensor_elements(ctx->inputs[0]);
  if (n) tfc_kernel_parallel_for(ctx, n / (a.pixels * a.channels), 1, contrast_images, &a);
  return NULL;
}

// Turns hues. A hue is one of six sectors and a position in it. The sector says which channel is the largest and which
// the smallest, the position how far the third one is from the smallest. The largest and the smallest value stay.
static void turn_hues(void *arg, int64_t begin, int64_t end) {
  static const uint8_t most[6] = {0, 1, 1, 2, 2, 0}, middle[6] = {1, 0, 2, 1, 0, 2}, least[6] = {2, 2, 0, 0, 1, 1};
  const struct adjust *a = arg;
  for (int64_t i = begin; i < end; i++) {
    const float *x = a->x + 3 * i;
    float *y = a->y + 3 * i, r = x[0], g = x[1], b = x[2], h = 0;
    int sector = r < g ? (b < r ? 1 : b > g ? 3 : 2) : (b < g ? 0 : b > r ? 4 : 5);
    float high = x[most[sector]], low = x[least[sector]], range = high - low;
    if (high != low) {
      float part = (x[middle[sector]] - low) / range;
      h = (float)sector + (sector % 2 ? 1 - part : part);
    }
    h += a->by * 6;
    if (!isfinite(h)) h = NAN;
    h = fmodf(h, 6);
    if (h < 0) h += 6;
    if (h >= 6) h -= 6;
    sector = h >= 0 && h < 6 ? (int)h : 5;
    float part = h - (float)sector;
    y[most[sector]] = high;
    y[least[sector]] = low;
    y[middle[sector]] = low + (sector % 2 ? 1 - part : part) * range;
  }
}
static tfc_status adjust_hue(struct tfc_kernel_ctx *ctx) {
  struct adjust a;
  TFC_RETURN_IF_ERROR(start(ctx, "delta", true, &a));
  tfc_kernel_parallel_for(ctx, tfc_tensor_elements(ctx->inputs[0]) / 3, 8192, turn_hues, &a);
  return NULL;
}

// Like C++'s std::max and std::min, these give the first operand if one is NaN.
#define GREATER(a, b) ((a) < (b) ? (b) : (a))
#define LESSER(a, b) ((b) < (a) ? (b) : (a))
static void saturate(void *arg, int64_t begin, int64_t end) {
  static const uint8_t chroma[6] = {0, 1, 1, 2, 2, 0}, second[6] = {1, 0, 2, 1, 0, 2};
  const struct adjust *a = arg;
  for (int64_t i = begin; i < end; i++) {
    const float *x = a->x + 3 * i;
    float *y = a->y + 3 * i, r = x[0], g = x[1], b = x[2];
    float most = GREATER(g, b), least = LESSER(g, b), v = GREATER(r, most), range = v - LESSER(r, least);
    float s = v > 0 ? range / v : 0, h = 0;
    float norm = 1.0f / (6.0f * range);
    if (range > 0) {
      h = r == v ? norm * (g - b) : g == v ? norm * (b - r) + 2.0f / 6.0f : norm * (r - g) + 4.0f / 6.0f;
      if (h < 0) h += 1;
    }
    s = fminf(1, fmaxf(0, s * a->by));
    float c = s * v, m = v - c, turn = h * 6, within = fmodf(turn, 2);
    float other = c * (1 - fabsf(within - 1));
    int sector = (int)turn;
    y[0] = y[1] = y[2] = m;
    if (sector < 0 || sector > 5) continue;
    y[chroma[sector]] = c + m;
    y[second[sector]] = other + m;
  }
}
static tfc_status adjust_saturation(struct tfc_kernel_ctx *ctx) {
  struct adjust a;
  TFC_RETURN_IF_ERROR(start(ctx, "scale", true, &a));
  tfc_kernel_parallel_for(ctx, tfc_tensor_elements(ctx->inputs[0]) / 3, 8192, saturate, &a);
  return NULL;
}

static tfc_status shape_images(struct tfc_shape_ctx *ctx) {
  struct tfc_shape scalar;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 0, &scalar));
  return ops_with_rank_at_least(ctx, 0, 3, &ctx->outputs[0]);
}
#define ADJUST(run)                                                                                                    \
  .outputs = "output: T", .attrs = "T: {half, float} = float", .flags = TFC_OP_NOT_DIFFERENTIABLE,                     \
  .types = TFC_TYPE_BIT(TFC_FLOAT), .host_inputs = 2, .shape = shape_images, .cost = ops_cost_outputs, .kernel = run,  \
  .samples = "float[2,3,4,3], float[]=0.5"
static const struct tfc_op_def image_adjust_rows[] = {
    {.name = "AdjustContrastv2", .inputs = "images: T, contrast_factor: float", ADJUST(adjust_contrast)},
    {.name = "AdjustHue", .inputs = "images: T, delta: float", ADJUST(adjust_hue)},
    {.name = "AdjustSaturation", .inputs = "images: T, scale: float", ADJUST(adjust_saturation)},
};
TFC_REGISTER_OPS(image_adjust_rows);
