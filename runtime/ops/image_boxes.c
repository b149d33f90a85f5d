// DrawBoundingBoxes: draws frames, one pixel wide, around boxes [y_min, x_min, y_max, x_max], which are given as
// fractions of the image's size.
#include <math.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

static const float default_colours[10][4] = {{1, 1, 0, 1},       {0, 0, 1, 1},       {1, 0, 0, 1},    {0, 1, 0, 1},
                                             {0.5f, 0, 0.5f, 1}, {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1},
                                             {0, 1, 1, 1},       {1, 0, 1, 1}};

struct canvas {
  struct tfc_tensor *image;
  int64_t height, width, channels;
};
static void dot(const struct canvas *c, int64_t b, int64_t row, int64_t column, const float *colour) {
  int64_t at = ((b * c->height + row) * c->width + column) * c->channels;
  for (int64_t d = 0; d < c->channels; d++) {
    if (c->image->dtype == TFC_HALF)
      ((uint16_t *)c->image->data)[at + d] = tfc_float_to_half(colour[d]);
    else
      ((float *)c->image->data)[at + d] = colour[d];
  }
}
static int64_t pixel(float part, int64_t size) { // rounds towards zero; a position far outside stays outside
  float at = part * (float)(size - 1);
  // TensorFlow converts such a float to an integer, which gives this number
  if (!(fabsf(at) < 9.2e18f)) return INT64_MIN;
  return at >= (float)size ? size : at <= -1 ? -1 : (int64_t)at;
}
static void frame(const struct canvas *c, int64_t b, const float *box, const float *colour) {
  int64_t top = pixel(box[0], c->height), left = pixel(box[1], c->width);
  int64_t bottom = pixel(box[2], c->height), right = pixel(box[3], c->width);
  if (top > bottom || left > right || top >= c->height || bottom < 0 || left >= c->width || right < 0) return;
  int64_t from_row = top < 0 ? 0 : top, to_row = bottom < c->height ? bottom : c->height - 1;
  int64_t from_column = left < 0 ? 0 : left, to_column = right < c->width ? right : c->width - 1;
  for (int64_t x = from_column; x <= to_column; x++) {
    if (top >= 0) dot(c, b, top, x, colour);
    if (bottom < c->height) dot(c, b, bottom, x, colour);
  }
  for (int64_t y = from_row; y <= to_row; y++) {
    if (left >= 0) dot(c, b, y, left, colour);
    if (right < c->width) dot(c, b, y, right, colour);
  }
}

// images [batch, height, width, channels], boxes [batch, n, 4], colours [m, channels]
static tfc_status draw(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *boxes = ctx->inputs[1];
  const struct tfc_tensor *colours = ctx->input_count > 2 ? ctx->inputs[2] : NULL;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(x->shape.rank == 4, "The rank of the images should be 4");
  TFC_KERNEL_CHECK(boxes->shape.rank == 3, "The rank of the boxes tensor should be 3");
  TFC_KERNEL_CHECK(boxes->shape.dims[2] == 4, "The third dimension of the boxes tensor should be 4");
  TFC_KERNEL_CHECK(boxes->shape.dims[0] == x->shape.dims[0], "The batch sizes should be the same");
  int64_t channels = x->shape.dims[3];
  TFC_KERNEL_CHECK(channels == 1 || channels == 3 || channels == 4,
                   "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
  int64_t count = 10;
  if (colours && colours->shape.rank == 2 && colours->shape.dims[0] == 0) colours = NULL;
  if (colours) {
    TFC_KERNEL_CHECK(colours->shape.rank == 2, "colors must be a 2-D matrix");
    TFC_KERNEL_CHECK(colours->shape.dims[1] >= channels,
                     "colors must have equal or more channels than the image provided");
    count = colours->shape.dims[0];
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  TFC_RETURN_IF_ERROR(ops_copy_elements(y, 0, x, 0, tfc_tensor_elements(x)));
  struct canvas c = {y, x->shape.dims[1], x->shape.dims[2], channels};
  for (int64_t b = 0; b < x->shape.dims[0]; b++)
    for (int64_t i = 0, n = boxes->shape.dims[1]; i < n; i++) {
      float colour[4];
      for (int64_t d = 0; d < channels; d++)
        colour[d] = colours         ? ((const float *)colours->data)[i % count * colours->shape.dims[1] + d]
                    : channels == 1 ? 1
                                    : default_colours[i % count][d];
      frame(&c, b, (const float *)boxes->data + 4 * (b * n + i), colour);
    }
  return NULL;
}
static tfc_status shape_draw(struct tfc_shape_ctx *ctx) {
  return ops_with_rank(ctx, 0, 4, &ctx->outputs[0]);
}

#define ROW                                                                                                            \
  .types = TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_HALF), .shape = shape_draw, .cost = ops_cost_outputs,            \
  .kernel = draw
static const struct tfc_op_def image_boxes_rows[] = {
    {.name = "DrawBoundingBoxes",
     .inputs = "images: T, boxes: float",
     .outputs = "output: T",
     .attrs = "T: {float, half} = float",
     ROW,
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .samples = "float[2,5,6,3], float[2,1,4]=[0.1,0.2,0.8,0.7,0,0,1,1]"},
    {.name = "DrawBoundingBoxesV2",
     .inputs = "images: T, boxes: float, colors: float",
     .outputs = "output: T",
     .attrs = "T: {float, half} = float",
     ROW,
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .samples = "float[2,5,6,3], float[2,1,4]=[0.1,0.2,0.8,0.7,0,0,1,1], float[2,3]"},
};
TFC_REGISTER_OPS(image_boxes_rows);
