// ScaleAndTranslate and its gradient. Images are sampled with a kernel function, which is widened where they shrink
// (antialias).
//
// An output pixel is a weighted sum over a span of input rows and a span of input columns; the weights of a span sum to
// 1.
#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// --- Kernel functions of a distance x >= 0 ---------------------------------------------------------------------------
static float lanczos(float x, float radius) {
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  const float pi = (float)M_PI;
  return radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}
static float lanczos1(float x) {
  return lanczos(x, 1);
}
static float lanczos3(float x) {
  return lanczos(x, 3);
}
static float lanczos5(float x) {
  return lanczos(x, 5);
}
static float gaussian(float x) { // sigma is a third of the radius
  return x >= 1.5f ? 0 : expf(-x * x / (2 * 0.5f * 0.5f));
}
static float box(float x) {
  return x < 0.5f ? 1 : x > 0.5f ? 0 : 0.5f;
}
static float triangle(float x) {
  return x < 1 ? 1 - x : 0;
}
static float keys_cubic(float x) { // Keys 1981
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : (1.5f * x - 2.5f) * x * x + 1;
}
static float mitchell_cubic(float x) { // Mitchell and Netravali 1988
  if (x >= 2) return 0;
  return x >= 1 ? ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9 : (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
}
struct kernel {
  const char *name;
  float radius;
  float (*at)(float x);
};
static const struct kernel kernels[] = {{"lanczos1", 1, lanczos1},
                                        {"lanczos3", 3, lanczos3},
                                        {"lanczos5", 5, lanczos5},
                                        {"gaussian", 1.5f, gaussian},
                                        {"box", 1, box},
                                        {"triangle", 1, triangle},
                                        {"keyscubic", 2, keys_cubic},
                                        {"mitchellcubic", 2, mitchell_cubic}};

// --- The span of inputs for each output ------------------------------------------------------------------------------
struct spans {
  int64_t width;  // of the longest span
  int64_t *start; // [outputs]: the first input of each span
  float *weights; // [outputs, width]
  struct tfc_buffer *held;
};
static int64_t clamped(float x, int64_t most) {
  return x <= 0 ? 0 : x >= (float)most ? most : (int64_t)x;
}
static tfc_status make_spans(struct tfc_kernel_ctx *ctx, const struct kernel *k, int64_t outputs, int64_t inputs,
                             float scale, float shift, bool antialias, struct spans *out) {
  float inverse = 1.0f / scale, moved = -inverse * shift, wide = antialias && inverse > 1 ? inverse : 1;
  float reach = k->radius * wide;
  int64_t width = reach < (float)inputs ? 2 * (int64_t)ceilf(reach) + 1 : inputs;
  if (width > inputs) width = inputs;
  struct spans s = {.width = width};
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(
      ctx, (size_t)(outputs + 1) * sizeof(int64_t) + (size_t)(outputs * width) * sizeof(float), &s.held));
  s.start = s.held->data;
  s.weights = (float *)(s.start + outputs + 1);
  memset(s.weights, 0, (size_t)(outputs * width) * sizeof(float));
  for (int64_t x = 0; x < outputs; x++) {
    float sample = ((float)x + 0.5f) * inverse + moved, total = 0, *w = s.weights + x * width;
    s.start[x] = 0;
    if (!(sample >= 0 && sample <= (float)inputs)) continue; // the position is outside of the image: the weights stay 0
    int64_t from = clamped(ceilf(sample - reach - 0.5f), inputs - 1);
    int64_t to = clamped(floorf(sample + reach - 0.5f), inputs - 1);
    if (to - from >= width) to = from + width - 1;
    for (int64_t i = from; i <= to; i++)
      total += w[i - from] = k->at(fabsf(((float)i + 0.5f - sample) * (1.0f / wide)));
    float factor = fabsf(total) >= 1000 * FLT_MIN ? 1.0f / total : 0;
    for (int64_t i = from; i <= to; i++) w[i - from] *= factor;
    s.start[x] = from;
  }
  *out = s;
  return NULL;
}

// Inverts the spans: gives each input the span of outputs that it contributes to.
static tfc_status turn_round(struct tfc_kernel_ctx *ctx, const struct spans *of, int64_t outputs, int64_t inputs,
                             struct spans *out) {
  struct spans s = {.width = 0};
  struct tfc_buffer *ends = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(2 * inputs + 1) * sizeof(int64_t), &ends));
  int64_t *first = ends->data, *last = first + inputs;
  for (int64_t i = 0; i < inputs; i++) first[i] = 0, last[i] = -1;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t o = 0; o < outputs; o++)
      for (int64_t k = 0; k < of->width && of->start[o] + k < inputs; k++) {
        int64_t i = of->start[o] + k;
        float w = of->weights[o * of->width + k];
        if (w == 0) continue;
        if (pass) {
          s.weights[i * s.width + o - first[i]] += w;
        } else {
          if (last[i] < 0) first[i] = o;
          last[i] = o;
        }
      }
    for (int64_t i = 0; i < inputs && !pass; i++)
      if (last[i] - first[i] + 1 > s.width) s.width = last[i] - first[i] + 1;
    if (pass) break;
    size_t weights = (size_t)(inputs * s.width) * sizeof(float), starts = (size_t)(inputs + 1) * sizeof(int64_t);
    tfc_status status = tfc_kernel_scratch(ctx, starts + weights, &s.held);
    if (status) {
      tfc_buffer_release(ends);
      return status;
    }
    s.start = s.held->data;
    s.weights = (float *)(s.start + inputs + 1);
    memcpy(s.start, first, (size_t)inputs * sizeof *first);
    memset(s.weights, 0, weights);
  }
  tfc_buffer_release(ends);
  *out = s;
  return NULL;
}

struct job {
  int64_t batch, in_height, in_width, out_height, out_width, channels;
  struct spans rows, columns;
};
static tfc_status make_job(struct tfc_kernel_ctx *ctx, const struct tfc_shape *in, int64_t height, int64_t width,
                           struct job *job) {
  const struct tfc_tensor *scale = ctx->inputs[2], *shift = ctx->inputs[3];
  TFC_KERNEL_CHECK(scale->shape.rank == 1 && scale->shape.dims[0] == 2, "scale must have two elements");
  TFC_KERNEL_CHECK(shift->shape.rank == 1 && shift->shape.dims[0] == 2, "translation must have two elements");
  const float *by = scale->data, *to = shift->data;
  TFC_KERNEL_CHECK(by[0] > 0 && by[1] > 0, "scale must be greater than zero.");
  tfc_str name = tfc_node_attr_string(ctx->graph, ctx->node, "kernel_type", "lanczos3");
  bool antialias = tfc_node_attr_bool(ctx->graph, ctx->node, "antialias", true);
  const struct kernel *k = NULL;
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (tfc_str_is(name, kernels[i].name)) k = &kernels[i];
  TFC_KERNEL_CHECK(k, "Unknown kernel type: %.*s", TFC_STR_ARG(name));
  *job = (struct job){in->dims[0], in->dims[1], in->dims[2], height, width, in->dims[3], {0}, {0}};
  TFC_KERNEL_CHECK(job->in_height > 0 && job->in_width > 0, "input image must be of non-zero size");
  TFC_RETURN_IF_ERROR(make_spans(ctx, k, height, job->in_height, by[0], to[0], antialias, &job->rows));
  tfc_status s = make_spans(ctx, k, width, job->in_width, by[1], to[1], antialias, &job->columns);
  if (s) tfc_buffer_release(job->rows.held);
  return s;
}
static void end_job(struct job *job) {
  tfc_buffer_release(job->rows.held);
  tfc_buffer_release(job->columns.held);
}

#define READ(t, ...)                                                                                                   \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) out[i] = (float)OPS_GET_##t(((const ops_##t *)x->data)[at + i]);                   \
    return NULL;
static tfc_status read_floats(const struct tfc_kernel_ctx *ctx, const struct tfc_tensor *x, int64_t at, int64_t n,
                              float *out) {
  switch (x->dtype) {
    OPS_REALS(READ, ~)
  default: return ops_unsupported_type(ctx, x->dtype);
  }
}

// in [h, w, c] -> middle [H, w, c] -> out [H, W, c]. Terms with weight 0 are computed too: 0 times infinity is not 0.
static void gather(const struct spans *rows, const struct spans *columns, const float *in, int64_t h, int64_t w,
                   int64_t channels, int64_t to_h, int64_t to_w, float *middle, float *out) {
  const int64_t line = w * channels;
  memset(middle, 0, (size_t)(to_h * line) * sizeof(float));
  memset(out, 0, (size_t)(to_h * to_w * channels) * sizeof(float));
  for (int64_t r = 0; r < to_h; r++)
    for (int64_t k = 0; k < rows->width && rows->start[r] + k < h; k++) {
      const float weight = rows->weights[r * rows->width + k], *from = in + (rows->start[r] + k) * line;
      for (int64_t i = 0; i < line; i++) middle[r * line + i] += weight * from[i];
    }
  for (int64_t r = 0; r < to_h; r++)
    for (int64_t c = 0; c < to_w; c++, out += channels)
      for (int64_t k = 0; k < columns->width && columns->start[c] + k < w; k++) {
        const float weight = columns->weights[c * columns->width + k];
        const float *from = middle + r * line + (columns->start[c] + k) * channels;
        for (int64_t d = 0; d < channels; d++) out[d] += weight * from[d];
      }
}

// images [b, h, w, c] -> [b, H, W, c]
static tfc_status sample(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *size = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  struct job job = {0};
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(x->shape.rank == 4, "input must be 4-dimensional");
  TFC_KERNEL_CHECK(size->shape.rank == 1 && size->shape.dims[0] == 2, "size must have two elements");
  int64_t height = ((const int32_t *)size->data)[0], width = ((const int32_t *)size->data)[1];
  TFC_KERNEL_CHECK(height > 0 && width > 0, "output dimensions must be positive");
  TFC_KERNEL_CHECK(x->shape.dims[3] > 0, "image must have at least one channel");
  struct tfc_shape shape = TFC_SHAPE(x->shape.dims[0], height, width, x->shape.dims[3]);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &shape, &y));
  if (tfc_tensor_elements(y) == 0) return NULL;
  TFC_RETURN_IF_ERROR(make_job(ctx, &x->shape, height, width, &job));
  int64_t line = job.in_width * job.channels, image = job.in_height * line;
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(image + height * line) * sizeof(float), &held));
  float *in = held->data, *middle = in + image, *out = y->data;
  for (int64_t b = 0; b < job.batch; b++, out += height * width * job.channels) {
    TFC_TRY(s, read_floats(ctx, x, b * image, image, in));
    gather(&job.rows, &job.columns, in, job.in_height, job.in_width, job.channels, height, width, middle, out);
  }
out:
  tfc_buffer_release(held);
  end_job(&job);
  return s;
}
// grads [b, H, W, c], images [b, h, w, c] -> [b, h, w, c]: the same weights, from outputs to inputs
static tfc_status sample_gradient(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *g = ctx->inputs[0], *x = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  struct job job = {0};
  struct spans rows = {0}, columns = {0};
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(g->shape.rank == 4 && x->shape.rank == 4, "input_grad and original_image must be 4-dimensional");
  TFC_KERNEL_CHECK(g->shape.dims[0] == x->shape.dims[0] && g->shape.dims[3] == x->shape.dims[3],
                   "input_grad and original_image must have the same batch and channels");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &x->shape, &y));
  if (tfc_tensor_elements(y) == 0) return NULL;
  TFC_RETURN_IF_ERROR(make_job(ctx, &x->shape, g->shape.dims[1], g->shape.dims[2], &job));
  int64_t line = job.out_width * job.channels, image = job.in_height * job.in_width * job.channels;
  TFC_TRY(s, turn_round(ctx, &job.rows, job.out_height, job.in_height, &rows));
  TFC_TRY(s, turn_round(ctx, &job.columns, job.out_width, job.in_width, &columns));
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(job.in_height * line + 1) * sizeof(float), &held));
  for (int64_t b = 0; b < job.batch; b++)
    gather(&rows, &columns, (const float *)g->data + b * job.out_height * line, job.out_height, job.out_width,
           job.channels, job.in_height, job.in_width, held->data, (float *)y->data + b * image);
out:
  tfc_buffer_release(held);
  tfc_buffer_release(rows.held);
  tfc_buffer_release(columns.held);
  end_job(&job);
  return s;
}

static tfc_status shape_sample(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x;
  int64_t size[2];
  int count = 0;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &x));
  bool known = ops_known_ints(ctx, 1, size, 2, &count) && count == 2;
  x.dims[1] = known ? size[0] : TFC_DIM_UNKNOWN;
  x.dims[2] = known ? size[1] : TFC_DIM_UNKNOWN;
  ctx->outputs[0] = x;
  return NULL;
}
static tfc_status shape_gradient(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = *ctx->inputs[1];
  return NULL;
}
OPS_GRADIENT(ScaleAndTranslate) {
  struct tfc_attr attrs[2] = {grad_copied_attr(g, "kernel_type"), grad_copied_attr(g, "antialias")};
  struct tfc_output x = grad_type(g, X) == TFC_FLOAT ? X : grad_cast(g, X, TFC_FLOAT);
  struct tfc_output in[4] = {G, x, grad_in(g, 2), grad_in(g, 3)};
  g->grad_inputs[0] = grad_cast(g, tfc_add(g->builder, "ScaleAndTranslateGrad", "", in, 4, attrs, 2), grad_type(g, X));
  return NULL;
}

#define ATTRS "kernel_type: string = \"lanczos3\", antialias: bool = true"
static const struct tfc_op_def image_sample_rows[] = {
    {.name = "ScaleAndTranslate",
     .inputs = "images: T, size: int32, scale: float, translation: float",
     .outputs = "resized_images: float",
     .attrs = "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}, " ATTRS,
     .host_inputs = 7 << 1,
     .shape = shape_sample,
     .cost = ops_cost_outputs,
     .kernel = sample,
     .gradient = gradient_ScaleAndTranslate,
     .samples = "float[2,4,5,2], int32[2]=[6,3], float[2]=[1.5,0.6], float[2]=[0,0.5]"},
    {.name = "ScaleAndTranslateGrad",
     .inputs = "grads: T, original_image: T, scale: float, translation: float",
     .outputs = "output: T",
     .attrs = "T: {float}, " ATTRS,
     .host_inputs = 3 << 2,
     .shape = shape_gradient,
     .cost = ops_cost_inputs,
     .kernel = sample_gradient,
     .samples = "float[2,6,3,2], float[2,4,5,2], float[2]=[1.5,0.6], float[2]=[0,0.5]"},
};
TFC_REGISTER_OPS(image_sample_rows);
