// SampleDistortedBoundingBox: chooses a part of an image, of random shape and size, that covers enough of one of its
// objects. Random numbers are drawn in TensorFlow's order: the same seeds give the same parts.
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/random_stateless.h"
#include "runtime/ops/random_stream.h"
#include "runtime/ops/row.h"

struct rectangle { // of an object; as in TensorFlow, its maximum may be less than its minimum
  int64_t x0, y0, x1, y1;
};
static float area_of(struct rectangle r) {
  return (float)((r.x1 - r.x0) * (r.y1 - r.y0));
}
static struct rectangle common_part(struct rectangle a, struct rectangle b) {
  struct rectangle r = {a.x0 > b.x0 ? a.x0 : b.x0, a.y0 > b.y0 ? a.y0 : b.y0, a.x1 < b.x1 ? a.x1 : b.x1,
                        a.y1 < b.y1 ? a.y1 : b.y1};
  return r.x0 > r.x1 || r.y0 > r.y1 ? (struct rectangle){0} : r;
}

// Whether the part covers at least the fraction `least` of one of the objects. Objects smaller than one pixel do not
// count.
static bool covers(struct rectangle part, float least, const struct rectangle *objects, int64_t count) {
  if (area_of(part) < 1) return false;
  for (int64_t i = 0; i < count; i++)
    if (area_of(objects[i]) >= 1 && area_of(common_part(part, objects[i])) / area_of(objects[i]) >= least) return true;
  return false;
}

struct wish { // the wanted ranges of the aspect ratio and of the area, relative to the image
  float aspect[2], area[2];
};
static int64_t wide(int64_t height, float aspect) {
  return lrintf((float)height * aspect);
}
static bool draw_part(int64_t width, int64_t height, const struct wish *wish, float aspect,
                      struct tfc_philox_words *words, struct rectangle *out) {
  if (wish->area[1] <= 0 || aspect <= 0 || width <= 0 || height <= 0 || wish->area[0] > wish->area[1]) return false;
  float least = wish->area[0] * (float)width * (float)height, most = wish->area[1] * (float)width * (float)height;
  int64_t h = lrintf(sqrtf(least / aspect)), highest = lrintf(sqrtf(most / aspect));
  if (wide(highest, aspect) > width) { // take the greatest height whose width fits
    highest = (int64_t)(((double)width + 0.5 - (double)0.0000001f) / (double)aspect);
    if (wide(highest, aspect) > width) highest--;
  }
  if (highest > height) highest = height;
  if (h >= highest) h = highest;
  if (h < highest) h += tfc_philox_below(words, (uint32_t)(highest - h + 1));
  int64_t w = wide(h, aspect);
  float area = (float)(w * h);
  // Rounding may have left the limits: try one pixel more, then one pixel less.
  if (area < least) {
    h++;
    w = wide(h, aspect);
    area = (float)(w * h);
  }
  if (area > most) {
    h--;
    w = wide(h, aspect);
    area = (float)(w * h);
  }
  if (area < least || area > most || w > width || h > height || w <= 0 || h <= 0) return false;
  int64_t y = h < height ? (int64_t)tfc_philox_below(words, (uint32_t)(height - h)) : 0;
  int64_t x = w < width ? (int64_t)tfc_philox_below(words, (uint32_t)(width - w)) : 0;
  *out = (struct rectangle){x, y, x + w, y + h};
  return true;
}

static tfc_status two_floats(struct tfc_kernel_ctx *ctx, const char *name, float low, float high, float *out) {
  const struct tfc_attr *given = tfc_node_attr(ctx->graph, ctx->node, name);
  out[0] = low, out[1] = high;
  if (!given || given->kind != TFC_ATTR_LIST_FLOAT) return NULL;
  TFC_KERNEL_CHECK(given->count == 2, "%s field must specify 2 dimensions", name);
  out[0] = (float)given->floats[0], out[1] = (float)given->floats[1];
  return NULL;
}

// Boxes [y_min, x_min, y_max, x_max], relative to the image.
static tfc_status read_objects(const struct tfc_tensor *boxes, int64_t width, int64_t height, struct rectangle *out,
                               int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const float *b = (const float *)boxes->data + 4 * i;
    for (int k = 0; k < 4; k++) TFC_KERNEL_CHECK(isfinite(b[k]), "All bounding box coordinates must be finite");
    TFC_KERNEL_CHECK(b[0] >= 0 && b[1] >= 0 && b[2] <= 1 && b[3] <= 1 && b[0] <= 1 && b[1] <= 1 && b[2] >= 0 &&
                         b[3] >= 0,
                     "All bounding box coordinates must be in [0.0, 1.0]: box %lld is %g %g %g %g", (long long)i,
                     (double)b[0], (double)b[1], (double)b[2], (double)b[3]);
    out[i] = (struct rectangle){(int32_t)(b[1] * (float)width), (int32_t)(b[0] * (float)height),
                                (int32_t)(b[3] * (float)width), (int32_t)(b[2] * (float)height)};
  }
  return NULL;
}

// Outputs: begin [3] and size [3] for Slice, and the part as a box [1, 1, 4].
static tfc_status give(struct tfc_kernel_ctx *ctx, struct rectangle part, int64_t width, int64_t height) {
  tfc_dtype type = ctx->inputs[0]->dtype;
  int64_t values[2][3] = {{part.y0, part.x0, 0}, {part.y1 - part.y0, part.x1 - part.x0, -1}};
  for (uint32_t i = 0; i < 2; i++) {
    struct tfc_tensor *y = NULL;
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, type, &TFC_SHAPE(3), &y));
    for (int k = 0; k < 3; k++) {
      int64_t v = values[i][k];
      switch (type) {
      case TFC_UINT8: ((uint8_t *)y->data)[k] = (uint8_t)v; break;
      case TFC_INT8: ((int8_t *)y->data)[k] = (int8_t)v; break;
      case TFC_INT16: ((int16_t *)y->data)[k] = (int16_t)v; break;
      case TFC_INT32: ((int32_t *)y->data)[k] = (int32_t)v; break;
      default: ((int64_t *)y->data)[k] = v;
      }
    }
  }
  struct tfc_tensor *box = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2, TFC_FLOAT, &TFC_SHAPE(1, 1, 4), &box));
  float *to = box->data;
  to[0] = (float)part.y0 / (float)height, to[1] = (float)part.x0 / (float)width;
  to[2] = (float)part.y1 / (float)height, to[3] = (float)part.x1 / (float)width;
  return NULL;
}

static tfc_status sample(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *image = ctx->inputs[0], *boxes = ctx->inputs[1];
  bool stateless = ctx->input_count == 4;
  struct wish wish;
  TFC_KERNEL_CHECK(image->shape.rank == 1, "image_size must be 1-dimensional: %s",
                   tfc_shape_show(&image->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(image->shape.dims[0] == 3, "image_size must contain 3 elements");
  int64_t height = tfc_tensor_int(image, 0), width = tfc_tensor_int(image, 1);
  TFC_KERNEL_CHECK(height >= 0 && height <= INT32_MAX && width >= 0 && width <= INT32_MAX,
                   "image sizes %lld x %lld: must be of 31 bits", (long long)height, (long long)width);
  TFC_KERNEL_CHECK(boxes->shape.rank == 3, "input_boxes must be 3-dimensional [batch, num_boxes, coords]: %s",
                   tfc_shape_show(&boxes->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(boxes->shape.dims[2] == 4, "bounding boxes must have shape [4] or [*, 4], got %s",
                   tfc_shape_show(&boxes->shape, (char[TFC_SHAPE_TEXT]){0}));
  float least = (float)tfc_node_attr_float(ctx->graph, ctx->node, "min_object_covered", 0.1);
  if (ctx->input_count > 2) {
    TFC_KERNEL_CHECK(ctx->inputs[2]->shape.rank == 0, "min_object_covered must be 0-D");
    least = *(const float *)ctx->inputs[2]->data;
  }
  TFC_KERNEL_CHECK(least >= 0, "min_object_covered must be non-negative, it is %g", (double)least);
  int64_t attempts = tfc_node_attr_int(ctx->graph, ctx->node, "max_attempts", 100);
  TFC_KERNEL_CHECK(attempts > 0 && attempts <= INT32_MAX, "max_attempts must be positive: %lld", (long long)attempts);
  TFC_RETURN_IF_ERROR(two_floats(ctx, "aspect_ratio_range", 0.75f, 1.33f, wish.aspect));
  TFC_RETURN_IF_ERROR(two_floats(ctx, "area_range", 0.05f, 1, wish.area));
  TFC_KERNEL_CHECK(wish.aspect[0] > 0 && wish.aspect[1] > 0 && wish.area[0] > 0 && wish.area[1] > 0 &&
                       wish.area[0] <= 1 && wish.area[1] <= 1,
                   "aspect_ratio_range must be above 0, area_range in (0, 1]");
  struct rectangle whole = {0, 0, width, height}, part = whole;
  int64_t count = boxes->shape.dims[0] * boxes->shape.dims[1];
  TFC_KERNEL_CHECK(count > 0 || tfc_node_attr_bool(ctx->graph, ctx->node, "use_image_if_no_bounding_boxes", false),
                   "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to "
                   "not provide any bounding boxes.");
  struct tfc_buffer *scratch = NULL;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(count + 1) * sizeof(struct rectangle), &scratch));
  struct rectangle *objects = scratch->data;
  TFC_TRY(s, read_objects(boxes, width, height, objects, count));
  if (count == 0) objects[count++] = whole;
  struct tfc_philox p;
  if (stateless)
    TFC_TRY(s, tfc_random_of_seed(ctx->inputs[3], &p));
  else
    p = tfc_random_reserve(ctx, (uint64_t)attempts); // four words for each attempt
  struct tfc_philox_words words = tfc_philox_words(&p);
  for (int64_t i = 0; i < attempts; i++) {
    float aspect = tfc_bits_to_float(tfc_philox_word(&words)) * (wish.aspect[1] - wish.aspect[0]) + wish.aspect[0];
    struct rectangle tried;
    if (draw_part(width, height, &wish, aspect, &words, &tried) && covers(tried, least, objects, count)) {
      part = tried;
      break;
    }
  }
  TFC_TRY(s, give(ctx, part, width, height));
out:
  tfc_buffer_release(scratch);
  return s;
}

static tfc_status shape_sample(struct tfc_shape_ctx *ctx) {
  struct tfc_shape s;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 1, &s));
  if (tfc_dim_known(s.dims[0]) && s.dims[0] != 3)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "image_size must contain 3 elements");
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 3, &s));
  if (ctx->node->input_count > 2) TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 0, &s));
  ctx->outputs[0] = ctx->outputs[1] = TFC_SHAPE(3);
  ctx->outputs[2] = TFC_SHAPE(1, 1, 4);
  return NULL;
}

#define INTEGERS "T: {uint8, int8, int16, int32, int64}, "
#define RANGES                                                                                                         \
  "aspect_ratio_range: list(float) = [0.75, 1.33], area_range: list(float) = [0.05, 1.0], max_attempts: int = 100, "   \
  "use_image_if_no_bounding_boxes: bool = false"
#define SEEDS "seed: int = 0, seed2: int = 0, "
#define OUTPUTS .outputs = "begin: T, size: T, bboxes: float", .shape = shape_sample, .kernel = sample
#define STATEFUL                                                                                                       \
  .flags = TFC_OP_HOST | TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE, .node_state = TFC_RANDOM_NODE_STATE,             \
  .prepare = tfc_random_prepare
static const struct tfc_op_def image_distort_rows[] = {
    {.name = "SampleDistortedBoundingBox",
     .inputs = "image_size: T, bounding_boxes: float",
     OUTPUTS,
     .attrs = INTEGERS SEEDS "min_object_covered: float = 0.1, " RANGES,
     STATEFUL},
    {.name = "SampleDistortedBoundingBoxV2",
     .inputs = "image_size: T, bounding_boxes: float, min_object_covered: float",
     OUTPUTS,
     .attrs = INTEGERS SEEDS RANGES,
     STATEFUL},
    {.name = "StatelessSampleDistortedBoundingBox",
     .inputs = "image_size: T, bounding_boxes: float, min_object_covered: float, seed: Tseed",
     OUTPUTS,
     .attrs = INTEGERS "Tseed: {int32, int64}, " RANGES,
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE},
};
TFC_REGISTER_OPS(image_distort_rows);
