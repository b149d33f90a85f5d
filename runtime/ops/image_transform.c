// ImageProjectiveTransform: each output pixel is a copy of the input at a position that a projection of the plane
// gives. The transform of an image is (a0, a1, a2, b0, b1, b2, c0, c1): (x, y) is copied from ((a0 x + a1 y + a2) / k,
// (b0 x + b1 y + b2) / k) with k = c0 x + c1 y + 1.
#include <math.h>
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// What positions outside of the image have: a constant, the image mirrored or repeated, or the nearest border pixel.
enum fill { FILL_CONSTANT, FILL_REFLECT, FILL_WRAP, FILL_NEAREST };
struct transform {
  enum fill fill;
  bool bilinear;
};
static tfc_status prepare_transform(struct tfc_prepare_ctx *ctx) {
  static const char *const fills[] = {"CONSTANT", "REFLECT", "WRAP", "NEAREST"};
  OPS_PREPARE_STATE(ctx, struct transform, state);
  tfc_str how = tfc_node_attr_string(ctx->graph, ctx->node, "interpolation", "");
  tfc_str fill = tfc_node_attr_string(ctx->graph, ctx->node, "fill_mode", "CONSTANT");
  state->bilinear = tfc_str_is(how, "BILINEAR");
  TFC_KERNEL_CHECK(state->bilinear || tfc_str_is(how, "NEAREST"),
                   "Invalid interpolation %.*s. Supported types: NEAREST, BILINEAR", TFC_STR_ARG(how));
  for (int i = 0; i < 4; i++)
    if (tfc_str_is(fill, fills[i])) {
      state->fill = (enum fill)i;
      return NULL;
    }
  return tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid mode %.*s. Supported types: REFLECT, WRAP, CONSTANT, NEAREST",
                         TFC_STR_ARG(fill));
}

static float clamp(float x, int64_t size) {
  return x < 0 ? 0 : x > (float)(size - 1) ? (float)(size - 1) : x;
}
static const float FAR = 4e18f; // greater numbers cannot be computed with as 64-bit integers
// Moves a coordinate into [0, size - 1], unless the fill is constant or the coordinate is NaN.
static float inside(enum fill fill, float x, int64_t size) {
  if (fill == FILL_CONSTANT || isnan(x)) return x;
  if (fill == FILL_NEAREST || size <= 1) return clamp(x, size);
  if (!(fabsf(x) < FAR)) return fill == FILL_REFLECT ? 0 : clamp(x, size);
  if (fill == FILL_REFLECT) { // dcba|abcd|dcba
    int64_t twice = 2 * size;
    if (x < 0) {
      x = (float)(twice * (int64_t)(-x / (float)twice)) + x;
      x = x < (float)-size ? x + (float)twice : -x - 1;
    } else if (x > (float)(size - 1)) {
      x -= (float)(twice * (int64_t)(x / (float)twice));
      if (x >= (float)size) x = (float)twice - x - 1;
    }
  } else if (x < 0) { // abcd|abcd|abcd
    x += (float)(size * ((int64_t)(-x / (float)(size - 1)) + 1));
  } else if (x > (float)(size - 1)) {
    x -= (float)(size * (int64_t)(x / (float)(size - 1)));
  }
  return clamp(x, size);
}
// Returns the coordinate as an integer; if it has no such value, one that is outside of every image.
static int64_t whole(float x) {
  return fabsf(x) < FAR ? (int64_t)x : INT64_MIN / 2;
}

struct job {
  struct transform how;
  const struct tfc_tensor *images, *transforms;
  struct tfc_tensor *out;
  float value; // the constant outside of the image
};
// Channel d of the pixel in row r and column c.
#define PIXEL(r, c)                                                                                                    \
  ((r) >= 0 && (r) < height && (c) >= 0 && (c) < width ? image[((r)*width + (c)) * channels + d] : fill)
// Rows [begin, end) of all output images.
static void rows(void *arg, int64_t begin, int64_t end) {
  const struct job *j = arg;
  const int64_t *in = j->images->shape.dims, *out = j->out->shape.dims, height = in[1], width = in[2], channels = in[3];
  OPS_SWITCH(OPS_REALS, j->out->dtype, {
    S fill;
    OPS_PUT(fill, j->value);
    for (int64_t row = begin; row < end; row++) {
      int64_t b = row / out[1];
      float y = (float)(row % out[1]);
      const float *t = (const float *)j->transforms->data + (j->transforms->shape.dims[0] == 1 ? 0 : 8 * b);
      const S *image = (const S *)j->images->data + b * height * width * channels;
      S *to = (S *)j->out->data + row * out[2] * channels;
      for (int64_t column = 0; column < out[2]; column++, to += channels) {
        float x = (float)column, k = t[6] * x + t[7] * y + 1.0f;
        float from_x = inside(j->how.fill, (t[0] * x + t[1] * y + t[2]) / k, width);
        float from_y = inside(j->how.fill, (t[3] * x + t[4] * y + t[5]) / k, height);
        if (k == 0) {
          for (int64_t d = 0; d < channels; d++) to[d] = fill;
        } else if (!j->how.bilinear) {
          int64_t r = whole(roundf(from_y)), c = whole(roundf(from_x));
          for (int64_t d = 0; d < channels; d++) to[d] = PIXEL(r, c);
        } else {
          float top = floorf(from_y), left = floorf(from_x), down = top + 1 - from_y, across = left + 1 - from_x;
          int64_t r = whole(top), c = whole(left);
          for (int64_t d = 0; d < channels; d++) {
            float above = across * (float)OPS_GET(PIXEL(r, c)) + (from_x - left) * (float)OPS_GET(PIXEL(r, c + 1));
            float below =
                across * (float)OPS_GET(PIXEL(r + 1, c)) + (from_x - left) * (float)OPS_GET(PIXEL(r + 1, c + 1));
            OPS_PUT(to[d], down * above + (from_y - top) * below);
          }
        }
      }
    }
  })
}

// Inputs: images [batch, height, width, channels], transforms [batch or 1, 8], size [2], and optionally a scalar, the
// value of pixels outside of the image (default 0).
static tfc_status transform(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *images = ctx->inputs[0], *transforms = ctx->inputs[1], *size = ctx->inputs[2];
  struct job j = {.how = *(const struct transform *)ctx->state, .images = images, .transforms = transforms};
  TFC_KERNEL_CHECK(images->shape.rank == 4, "Input images must have rank 4");
  TFC_KERNEL_CHECK(transforms->shape.rank == 2 && transforms->shape.dims[1] == 8 &&
                       (transforms->shape.dims[0] == images->shape.dims[0] || transforms->shape.dims[0] == 1),
                   "Input transform should be num_images x 8 or 1 x 8, not %s",
                   tfc_shape_show(&transforms->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(size->shape.rank == 1 && size->shape.dims[0] == 2, "output shape must be a vector of two, not %s",
                   tfc_shape_show(&size->shape, (char[TFC_SHAPE_TEXT]){0}));
  if (ctx->input_count > 3) {
    TFC_KERNEL_CHECK(ctx->inputs[3]->shape.rank == 0, "fill_value must be a scalar");
    j.value = *(const float *)ctx->inputs[3]->data;
  }
  int64_t height = tfc_tensor_int(size, 0), width = tfc_tensor_int(size, 1);
  TFC_KERNEL_CHECK(height > 0 && width > 0, "output dimensions must be positive");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(
      ctx, 0, images->dtype, &TFC_SHAPE(images->shape.dims[0], height, width, images->shape.dims[3]), &j.out));
  tfc_kernel_parallel_for(ctx, images->shape.dims[0] * height, 4096 / (width * images->shape.dims[3] + 1) + 1, rows,
                          &j);
  return NULL;
}
static tfc_status shape_transform(struct tfc_shape_ctx *ctx) {
  struct tfc_shape images, size;
  int64_t asked[2];
  int count = 0;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &images));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 1, &size));
  bool known = ops_known_ints(ctx, 2, asked, 2, &count) && count == 2;
  ctx->outputs[0] =
      TFC_SHAPE(images.dims[0], known ? asked[0] : TFC_DIM_UNKNOWN, known ? asked[1] : TFC_DIM_UNKNOWN, images.dims[3]);
  return NULL;
}

// Gradient: transforms the incoming gradient by the inverse projections.
static tfc_status gradient(struct tfc_grad_ctx *g) {
  struct tfc_builder *b = g->builder;
  struct tfc_output t = grad_in(g, 1), minus = tfc_add_i32(b, -1);
  struct tfc_output count = grad_item(g, tfc_add1(b, "Shape", t), 0);
  struct tfc_output column[] = {count, tfc_add_i32(b, 1)}, square[] = {minus, tfc_add_i32(b, 3), tfc_add_i32(b, 3)};
  struct tfc_output ones = tfc_add2(b, "Fill", grad_pack(g, column, 2, 0), tfc_add_scalar(b, TFC_FLOAT, 1));
  struct tfc_output nine[] = {t, ones};
  struct tfc_output matrices =
      tfc_add2(b, "Reshape", grad_concat(g, nine, 2, tfc_add_i32(b, 1)), grad_pack(g, square, 3, 0));
  struct tfc_output flat =
      tfc_add2(b, "Reshape", tfc_add1(b, "MatrixInverse", matrices), tfc_add_i32_vector(b, (int32_t[]){-1, 9}, 2));
  struct tfc_output last = tfc_add3(b, "Slice", flat, tfc_add_i32_vector(b, (int32_t[]){0, 8}, 2),
                                    tfc_add_i32_vector(b, (int32_t[]){-1, 1}, 2));
  struct tfc_output eight = tfc_add3(b, "Slice", g_div(g, flat, last), tfc_add_i32_vector(b, (int32_t[]){0, 0}, 2),
                                     tfc_add_i32_vector(b, (int32_t[]){-1, 8}, 2));
  struct tfc_output in[] = {g->grad_outputs[0], eight, grad_range(g, tfc_add1(b, "Shape", grad_in(g, 0)), 1, 3),
                            tfc_add_scalar(b, TFC_FLOAT, 0)};
  struct tfc_attr attrs[2] = {grad_copied_attr(g, "interpolation"), grad_copied_attr(g, "fill_mode")};
  bool third = grad_in_count(g) > 3;
  g->grad_inputs[0] = tfc_add(b, third ? "ImageProjectiveTransformV3" : "ImageProjectiveTransformV2", NULL, in,
                              third ? 4 : 3, attrs, attrs[1].kind == TFC_ATTR_NONE ? 1 : 2);
  return NULL;
}

#define ROW                                                                                                            \
  .shape = shape_transform, .cost = ops_cost_outputs, .prepare = prepare_transform, .kernel = transform,               \
  .gradient = gradient
#define TYPES (TFC_TYPE_BIT(TFC_UINT8) | TFC_TYPE_BIT(TFC_INT32) | TFC_TYPE_BIT(TFC_INT64) | OPS_BITS(OPS_FLOATS))
#define ATTRS                                                                                                          \
  "dtype: {uint8, int32, int64, half, bfloat16, float, double}, interpolation: string, fill_mode: string = 'CONSTANT'"
static const struct tfc_op_def image_transform_rows[] = {
    {.name = "ImageProjectiveTransformV2",
     .inputs = "images: dtype, transforms: float, output_shape: int32",
     .outputs = "transformed_images: dtype",
     .attrs = ATTRS,
     .types = TYPES,
     .host_inputs = 4,
     ROW,
     .samples = "float[2,5,5,2], float[1,8]=[0.9,0.1,0.3,-0.2,1.1,0.4,0,0], int32[2]=[5,5] {interpolation='BILINEAR'}"},
    {.name = "ImageProjectiveTransformV3",
     .inputs = "images: dtype, transforms: float, output_shape: int32, fill_value: float",
     .outputs = "transformed_images: dtype",
     .attrs = ATTRS,
     .types = TYPES,
     .host_inputs = 12,
     ROW,
     .samples = "float[1,4,6,1], float[1,8]=[0.9,0.1,0.3,-0.2,1.1,0.4,0.01,0], int32[2]=[5,5], float[]=0.5 "
                "{interpolation='NEAREST', fill_mode='REFLECT'}"},
};
TFC_REGISTER_OPS(image_transform_rows);
