// ExtractGlimpse: cuts a window out of each image, at an offset for each image; the parts of a window that are outside
// of the image become noise or zero.
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/random_stream.h"
#include "runtime/ops/row.h"

enum noise { ZERO, UNIFORM, GAUSSIAN };
struct glimpse {
  bool second, centered, normalized; // second: offsets mean what they mean in version 2 of the operation
};

static tfc_status noise_of(const struct tfc_graph *g, const struct tfc_node *n, enum noise *out) {
  tfc_str name = tfc_node_attr_string(g, n, "noise", "uniform");
  const bool uniform = tfc_node_attr_bool(g, n, "uniform_noise", true);
  *out = tfc_str_is(name, "zero") ? ZERO : tfc_str_is(name, "uniform") || (!name.size && uniform) ? UNIFORM : GAUSSIAN;
  TFC_KERNEL_CHECK(*out != GAUSSIAN || !name.size || tfc_str_is(name, "gaussian"), "Unknown noise mode '%.*s'",
                   TFC_STR_ARG(name));
  TFC_KERNEL_CHECK(!uniform || *out == UNIFORM, "The uniform_noise and noise should not be specified at the same time");
  return NULL;
}

// Returns the first row or column of the window, rounded towards zero.
static int64_t start(const struct glimpse *g, float offset, int64_t size, int64_t window) {
  if (g->normalized) offset *= (float)size;
  if (g->centered && (g->normalized || !g->second)) offset /= 2.0f;
  if (g->centered) offset += (float)size / 2.0f;
  if (!g->second || (g->centered && g->normalized)) offset -= (float)window / 2.0f;
  return offset != offset ? 0 : (int64_t)fmaxf(fminf(offset, 1e9f), -1e9f);
}

static void fill_noise(enum noise noise, struct tfc_philox *p, const float *x, int64_t pixels, float *y, int64_t n) {
  struct tfc_philox_words words = tfc_philox_words(p);
  if (noise == ZERO || pixels == 0) {
    memset(y, 0, (size_t)n * sizeof *y);
    return;
  }
  float least = x[0], most = x[0];
  double mean = 0, square = 0;
  for (int64_t i = 0; i < pixels; i++) {
    least = fminf(least, x[i]), most = fmaxf(most, x[i]);
    mean += (double)x[i] / (double)pixels;
  }
  for (int64_t i = 0; i < pixels; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)pixels;
  for (int64_t i = 0; i < n; i++) {
    float pair[2];
    uint32_t first = tfc_philox_word(&words);
    if (noise == UNIFORM) {
      y[i] = least + tfc_bits_to_float(first) * (most - least);
    } else {
      tfc_box_muller_float(first, tfc_philox_word(&words), pair);
      y[i] = (float)mean + pair[0] * (float)sqrt(square);
    }
  }
}

static tfc_status extract_glimpse(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *size = ctx->inputs[1], *offsets = ctx->inputs[2];
  const struct tfc_shape *s = &x->shape;
  const struct glimpse g = {tfc_str_ends(ctx->node->op, "V2"),
                            tfc_node_attr_bool(ctx->graph, ctx->node, "centered", true),
                            tfc_node_attr_bool(ctx->graph, ctx->node, "normalized", true)};
  struct tfc_tensor *y = NULL;
  enum noise noise;
  TFC_RETURN_IF_ERROR(noise_of(ctx->graph, ctx->node, &noise));
  TFC_KERNEL_CHECK(s->rank == 4, "input must be 4-dimensional (batch_size, height, width, depth)");
  TFC_KERNEL_CHECK(size->shape.rank == 1 && size->shape.dims[0] == 2,
                   "input must be a vector of size 2 (height, width)");
  TFC_KERNEL_CHECK(offsets->shape.rank == 2 && offsets->shape.dims[0] == s->dims[0] && offsets->shape.dims[1] == 2,
                   "input must be a tensor of shape [batch_size, 2]");
  const int64_t high = s->dims[1], wide = s->dims[2], depth = s->dims[3];
  const int64_t rows = tfc_tensor_int(size, 0), columns = tfc_tensor_int(size, 1);
  TFC_KERNEL_CHECK(rows >= 0 && columns >= 0, "output height and width must not be negative: %lld, %lld",
                   (long long)rows, (long long)columns);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(s->dims[0], rows, columns, depth), &y));
  struct tfc_philox p = {0};
  if (noise != ZERO) p = tfc_random_reserve(ctx, (uint64_t)tfc_tensor_elements(y));
  for (int64_t b = 0; b < s->dims[0]; b++) {
    const float *image = (const float *)x->data + b * high * wide * depth, *at = (const float *)offsets->data + 2 * b;
    float *out = (float *)y->data + b * rows * columns * depth;
    const int64_t top = start(&g, at[0], high, rows), left = start(&g, at[1], wide, columns);
    if (top < 0 || left < 0 || top + rows > high || left + columns > wide)
      fill_noise(noise, &p, image, high * wide * depth, out, rows * columns * depth);
    const int64_t from = left < 0 ? -left : 0, to = wide - left < columns ? wide - left : columns;
    for (int64_t i = 0; i < rows && from < to; i++)
      if (top + i >= 0 && top + i < high)
        memcpy(out + (i * columns + from) * depth, image + ((top + i) * wide + left + from) * depth,
               (size_t)((to - from) * depth) * sizeof *out);
  }
  return NULL;
}

static tfc_status shape_glimpse(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, offsets, size;
  enum noise noise;
  TFC_RETURN_IF_ERROR(noise_of(ctx->graph, ctx->node, &noise));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 2, &offsets));
  TFC_RETURN_IF_ERROR(tfc_dim_merge(x.dims[0], offsets.dims[0], &x.dims[0]));
  TFC_RETURN_IF_ERROR(tfc_dim_merge(offsets.dims[1], 2, &offsets.dims[1]));
  size = ops_described_shape(ctx, 1);
  for (int d = 0; d < 2; d++) x.dims[1 + d] = size.rank == 2 ? size.dims[d] : TFC_DIM_UNKNOWN;
  ctx->outputs[0] = x;
  return NULL;
}

#define ROW                                                                                                            \
  .inputs = "input: float, size: int32, offsets: float", .outputs = "glimpse: float",                                  \
  .attrs = "centered: bool = true, normalized: bool = true, uniform_noise: bool = true, noise: string = 'uniform'",    \
  .host_inputs = 6, .node_state = TFC_RANDOM_NODE_STATE, .shape = shape_glimpse, .prepare = tfc_random_prepare,        \
  .kernel = extract_glimpse,                                                                                           \
  .samples = "float[2,5,6,3], int32[2]=[2,3], float[2,2]=[0,0.2,-0.4,0.9] {noise='zero', uniform_noise=false}"
static const struct tfc_op_def image_glimpse_rows[] = {
    {.name = "ExtractGlimpse", ROW, .flags = TFC_OP_NOT_DIFFERENTIABLE},
    {.name = "ExtractGlimpseV2", ROW},
};
TFC_REGISTER_OPS(image_glimpse_rows);
