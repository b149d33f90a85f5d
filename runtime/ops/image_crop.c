// Operations that take parts of images: CropAndResize with its gradients, ExtractImagePatches.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/image_scale.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// --- CropAndResize ---------------------------------------------------------------------------------------------------
// boxes [n, 4] are (y1, x1, y2, x2), as fractions of the image's height - 1 and width - 1.
struct crop_state {
  bool nearest;
  float extrapolation;
};
static tfc_status prepare_crop(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct crop_state, state);
  tfc_str method = tfc_node_attr_string(ctx->graph, ctx->node, "method", "bilinear");
  state->nearest = tfc_str_is(method, "nearest");
  state->extrapolation = (float)tfc_node_attr_float(ctx->graph, ctx->node, "extrapolation_value", 0);
  if (!state->nearest && !tfc_str_is(method, "bilinear"))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "method must be 'bilinear' or 'nearest', not '%.*s'",
                           TFC_STR_ARG(method));
  return NULL;
}
struct crop {
  int64_t boxes, batch, height, width, depth, crop_height, crop_width;
};
static tfc_status check_boxes(const struct crop *c, const struct tfc_tensor *boxes, const struct tfc_tensor *which) {
  TFC_KERNEL_CHECK(boxes->shape.rank == 2 && boxes->shape.dims[1] == 4, "boxes must have shape [n, 4]");
  TFC_KERNEL_CHECK(which->shape.rank == 1 && tfc_tensor_elements(which) == boxes->shape.dims[0],
                   "box_index has incompatible shape");
  for (int64_t i = 0; i < c->boxes; i++)
    if (tfc_tensor_int(which, i) < 0 || tfc_tensor_int(which, i) >= c->batch)
      return tfc_status_make(TFC_OUT_OF_RANGE, "box_index has values outside [0, batch_size): %lld at %lld",
                             (long long)tfc_tensor_int(which, i), (long long)i);
  return NULL;
}
// Computes the position of crop pixel i between `from` and `to` in a dimension of `size` pixels. Returns false if it is
// outside of the image.
static bool crop_at(float from, float to, int64_t size, int64_t pixels, int64_t i, float *at) {
  float last = (float)(size - 1);
  float step = pixels > 1 ? (to - from) * last / (float)(pixels - 1) : 0;
  *at = pixels > 1 ? from * last + (float)i * step : (float)(0.5 * (double)(from + to) * (double)(size - 1));
  return *at >= 0 && *at <= last;
}

// The four pixels around a position, and where between them it lies.
enum { TL, TR, BL, BR }; // top left, ...
struct corners {
  int64_t at[4];      // index of each one's first channel
  float down, across; // from the upper to the lower ones and from left to right, both in [0, 1)
};
static struct corners corners_of(const struct crop *c, int64_t rows, float v, float h) { // rows: before the image
  const int64_t top = (rows + (int64_t)floorf(v)) * c->width, bottom = (rows + (int64_t)ceilf(v)) * c->width;
  const int64_t left = (int64_t)floorf(h), right = (int64_t)ceilf(h);
  return (struct corners){.at = {[TL] = (top + left) * c->depth,
                                 [TR] = (top + right) * c->depth,
                                 [BL] = (bottom + left) * c->depth,
                                 [BR] = (bottom + right) * c->depth},
                          .down = v - floorf(v),
                          .across = h - floorf(h)};
}
static void read_corners(const struct tfc_tensor *image, const struct corners *c, int64_t channel, float value[4]) {
  for (int k = 0; k < 4; k++) value[k] = ops_pixel(image, c->at[k] + channel);
}

static tfc_status crop_and_resize(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *image = ctx->inputs[0], *boxes = ctx->inputs[1], *which = ctx->inputs[2];
  const struct crop_state *state = ctx->state;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(image->shape.rank == 4, "input image must be 4-D");
  TFC_KERNEL_CHECK(ctx->inputs[3]->shape.rank == 1 && tfc_tensor_elements(ctx->inputs[3]) == 2,
                   "crop_size must have two elements");
  struct crop c = {boxes->shape.rank ? boxes->shape.dims[0] : 0,
                   image->shape.dims[0],
                   image->shape.dims[1],
                   image->shape.dims[2],
                   image->shape.dims[3],
                   tfc_tensor_int(ctx->inputs[3], 0),
                   tfc_tensor_int(ctx->inputs[3], 1)};
  TFC_KERNEL_CHECK(c.height > 0 && c.width > 0, "image dimensions must be positive");
  TFC_KERNEL_CHECK(c.crop_height > 0 && c.crop_width > 0, "crop dimensions must be positive");
  TFC_RETURN_IF_ERROR(check_boxes(&c, boxes, which));
  if (!(OPS_BITS(OPS_REALS) & TFC_TYPE_BIT(image->dtype))) return ops_unsupported_type(ctx, image->dtype);
  TFC_RETURN_IF_ERROR(
      tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(c.boxes, c.crop_height, c.crop_width, c.depth), &y));
  float *out = y->data;
  for (int64_t i = 0; i < 4 * c.boxes; i++)
    TFC_KERNEL_CHECK(isfinite(((const float *)boxes->data)[i]),
                     "Boxes contains at least one element that is not finite");
  for (int64_t b = 0; b < c.boxes; b++) {
    const float *box = (const float *)boxes->data + 4 * b;
    int64_t rows = tfc_tensor_int(which, b) * c.height;
    for (int64_t i = 0; i < c.crop_height; i++)
      for (int64_t j = 0; j < c.crop_width; j++) {
        float v, h;
        bool inside = crop_at(box[0], box[2], c.height, c.crop_height, i, &v);
        inside = crop_at(box[1], box[3], c.width, c.crop_width, j, &h) && inside;
        if (!inside) {
          for (int64_t d = 0; d < c.depth; d++) *out++ = state->extrapolation;
          continue;
        }
        if (state->nearest) {
          int64_t at = ((rows + (int64_t)roundf(v)) * c.width + (int64_t)roundf(h)) * c.depth;
          for (int64_t d = 0; d < c.depth; d++) *out++ = ops_pixel(image, at + d);
          continue;
        }
        const struct corners at = corners_of(&c, rows, v, h);
        for (int64_t d = 0; d < c.depth; d++) {
          float value[4];
          read_corners(image, &at, d, value);
          float upper = value[TL] + (value[TR] - value[TL]) * at.across;
          float lower = value[BL] + (value[BR] - value[BL]) * at.across;
          *out++ = upper + (lower - upper) * at.down;
        }
      }
  }
  return NULL;
}
static tfc_status shape_crop(struct tfc_shape_ctx *ctx) {
  struct tfc_shape image, boxes;
  int64_t size[2];
  int n = 0;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &image));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 2, &boxes));
  if (ctx->inputs[2]->rank == 1)
    TFC_RETURN_IF_ERROR(tfc_dim_merge(boxes.dims[0], ctx->inputs[2]->dims[0], &boxes.dims[0]));
  bool known = ops_known_ints(ctx, 3, size, 2, &n) && n == 2;
  ctx->outputs[0] =
      TFC_SHAPE(boxes.dims[0], known ? size[0] : TFC_DIM_UNKNOWN, known ? size[1] : TFC_DIM_UNKNOWN, image.dims[3]);
  return NULL;
}

static tfc_status crop_grad_image(struct tfc_kernel_ctx *ctx) { // inputs: grads, boxes, box_ind, image_size
  const struct tfc_tensor *grads = ctx->inputs[0], *boxes = ctx->inputs[1], *which = ctx->inputs[2];
  const struct crop_state *state = ctx->state;
  tfc_dtype type = tfc_dtype_base(ctx->graph->output_dtypes[ctx->node->output_begin]);
  struct tfc_shape size;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[3], &size));
  TFC_KERNEL_CHECK(grads->shape.rank == 4 && size.rank == 4, "grads must be 4-D, image_size must have four elements");
  struct crop c = {grads->shape.dims[0], size.dims[0],         size.dims[1],        size.dims[2],
                   size.dims[3],         grads->shape.dims[1], grads->shape.dims[2]};
  TFC_KERNEL_CHECK(c.height > 0 && c.width > 0, "image dimensions must be positive");
  TFC_KERNEL_CHECK(c.crop_height > 0 && c.crop_width > 0, "grads dimensions must be positive");
  TFC_KERNEL_CHECK(grads->shape.dims[3] == c.depth, "image_size and grads are incompatible");
  TFC_KERNEL_CHECK(boxes->shape.rank == 2 && boxes->shape.dims[0] == c.boxes, "boxes and grads are incompatible");
  TFC_RETURN_IF_ERROR(check_boxes(&c, boxes, which));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, &size, &y));
  memset(y->data, 0, y->size);
  const float *grad = grads->data;
  for (int64_t b = 0; b < c.boxes; b++) {
    const float *box = (const float *)boxes->data + 4 * b;
    int64_t rows = tfc_tensor_int(which, b) * c.height;
    for (int64_t i = 0; i < c.crop_height; i++)
      for (int64_t j = 0; j < c.crop_width; j++, grad += c.depth) {
        float v, h;
        bool inside = crop_at(box[0], box[2], c.height, c.crop_height, i, &v);
        inside = crop_at(box[1], box[3], c.width, c.crop_width, j, &h) && inside;
        if (!inside) continue;
        if (state->nearest) {
          int64_t at = ((rows + (int64_t)roundf(v)) * c.width + (int64_t)roundf(h)) * c.depth;
          for (int64_t d = 0; d < c.depth; d++) ops_add_to(y, at + d, grad[d]);
          continue;
        }
        int64_t top = (rows + (int64_t)floorf(v)) * c.width, bottom = (rows + (int64_t)ceilf(v)) * c.width;
        int64_t left = (int64_t)floorf(h), right = (int64_t)ceilf(h);
        float lv = v - floorf(v), lh = h - floorf(h);
        for (int64_t d = 0; d < c.depth; d++) {
          float upper = (1 - lv) * grad[d], lower = lv * grad[d];
          ops_add_to(y, (top + left) * c.depth + d, (1 - lh) * upper);
          ops_add_to(y, (top + right) * c.depth + d, lh * upper);
          ops_add_to(y, (bottom + left) * c.depth + d, (1 - lh) * lower);
          ops_add_to(y, (bottom + right) * c.depth + d, lh * lower);
        }
      }
  }
  return NULL;
}
static tfc_status shape_crop_grad_image(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ops_described_shape(ctx, 3);
  if (ctx->outputs[0].rank < 0) ctx->outputs[0] = tfc_shape_unknown_of_rank(4);
  return NULL;
}

static tfc_status crop_grad_boxes(struct tfc_kernel_ctx *ctx) { // inputs: grads, image, boxes, box_ind
  const struct tfc_tensor *grads = ctx->inputs[0], *image = ctx->inputs[1], *boxes = ctx->inputs[2],
                          *which = ctx->inputs[3];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(grads->shape.rank == 4 && image->shape.rank == 4, "grads and image must be 4-D");
  struct crop c = {grads->shape.dims[0], image->shape.dims[0], image->shape.dims[1], image->shape.dims[2],
                   image->shape.dims[3], grads->shape.dims[1], grads->shape.dims[2]};
  TFC_KERNEL_CHECK(c.crop_height > 0 && c.crop_width > 0, "grads dimensions must be positive");
  TFC_KERNEL_CHECK(c.height > 0 && c.width > 0, "image dimensions must be positive");
  TFC_KERNEL_CHECK(grads->shape.dims[3] == c.depth, "image and grads are incompatible");
  TFC_KERNEL_CHECK(boxes->shape.rank == 2 && boxes->shape.dims[0] == c.boxes, "boxes and grads are incompatible");
  TFC_RETURN_IF_ERROR(check_boxes(&c, boxes, which));
  if (!(OPS_BITS(OPS_REALS) & TFC_TYPE_BIT(image->dtype))) return ops_unsupported_type(ctx, image->dtype);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &boxes->shape, &y));
  memset(y->data, 0, y->size);
  float height = (float)(c.height - 1), width = (float)(c.width - 1);
  float height_ratio = c.crop_height > 1 ? height / (float)(c.crop_height - 1) : 0;
  float width_ratio = c.crop_width > 1 ? width / (float)(c.crop_width - 1) : 0;
  const float *grad = grads->data;
  for (int64_t b = 0; b < c.boxes; b++) {
    const float *box = (const float *)boxes->data + 4 * b;
    float *out = (float *)y->data + 4 * b;
    int64_t rows = tfc_tensor_int(which, b) * c.height;
    for (int64_t i = 0; i < c.crop_height; i++)
      for (int64_t j = 0; j < c.crop_width; j++, grad += c.depth) {
        float v, h;
        bool inside = crop_at(box[0], box[2], c.height, c.crop_height, i, &v);
        inside = crop_at(box[1], box[3], c.width, c.crop_width, j, &h) && inside;
        if (!inside) continue;
        const struct corners at = corners_of(&c, rows, v, h);
        for (int64_t d = 0; d < c.depth; d++) {
          float value[4];
          read_corners(image, &at, d, value);
          // the slopes along the height and along the width
          float down = ((1 - at.across) * (value[BL] - value[TL]) + at.across * (value[BR] - value[TR])) * grad[d];
          float across = ((1 - at.down) * (value[TR] - value[TL]) + at.down * (value[BR] - value[BL])) * grad[d];
          if (c.crop_height > 1) {
            out[0] += down * (height - (float)i * height_ratio);
            out[2] += down * ((float)i * height_ratio);
          } else {
            out[0] += down * 0.5f * height;
            out[2] += down * 0.5f * height;
          }
          if (c.crop_width > 1) {
            out[1] += across * (width - (float)j * width_ratio);
            out[3] += across * ((float)j * width_ratio);
          } else {
            out[1] += across * 0.5f * width;
            out[3] += across * 0.5f * width;
          }
        }
      }
  }
  return NULL;
}
static tfc_status shape_crop_grad_boxes(struct tfc_shape_ctx *ctx) {
  return ops_with_rank(ctx, 2, 2, &ctx->outputs[0]);
}

OPS_GRADIENT(CropAndResize) {
  struct tfc_output boxes = grad_in(g, 1), which = grad_in(g, 2);
  tfc_dtype type = grad_type(g, X);
  if (type == TFC_FLOAT || type == TFC_DOUBLE || type == TFC_HALF) {
    const struct tfc_attr *method = grad_attr(g, "method");
    struct tfc_attr attrs[2] = {tfc_attr_type("T", type),
                                tfc_attr_string("method", method ? method->s : TFC_STR("bilinear"))};
    struct tfc_output in[4] = {G, boxes, which, grad_shape(g, X, g->input_shapes[0], TFC_INT32)};
    g->grad_inputs[0] = tfc_add(g->builder, "CropAndResizeGradImage", "", in, 4, attrs, 2);
  }
  struct tfc_output in[4] = {G, X, boxes, which};
  g->grad_inputs[1] = tfc_add(g->builder, "CropAndResizeGradBoxes", "", in, 4, NULL, 0);
  return NULL;
}

// --- ExtractImagePatches ---------------------------------------------------------------------------------------------
struct patch_state {
  int64_t size[2], stride[2], rate[2];
  bool same;
};
static tfc_status read_patches(const struct tfc_graph *g, const struct tfc_node *n, struct patch_state *out) {
  static const char *const names[3] = {"ksizes", "strides", "rates"};
  int64_t *to[3] = {out->size, out->stride, out->rate};
  for (int i = 0; i < 3; i++) {
    const struct tfc_attr *a = tfc_node_attr(g, n, names[i]);
    if (!a || a->count != 4 || a->ints[0] != 1 || a->ints[3] != 1)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "%s must be [1, rows, columns, 1]", names[i]);
    for (int d = 0; d < 2; d++) {
      to[i][d] = a->ints[1 + d];
      if (to[i][d] < 1) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s must be positive", names[i]);
    }
  }
  out->same = tfc_str_is(tfc_node_attr_string(g, n, "padding", "VALID"), "SAME");
  return NULL;
}
static tfc_status prepare_patches(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct patch_state, state);
  return read_patches(ctx->graph, ctx->node, state);
}
// Computes how many positions the window has along a dimension and how far the first one begins before the image.
static tfc_status patch_positions(const struct patch_state *p, int d, int64_t size, int64_t *count, int64_t *before) {
  int64_t reach = (p->size[d] - 1) * p->rate[d] + 1;
  if (p->same) {
    *count = (size + p->stride[d] - 1) / p->stride[d];
    int64_t padding = (*count - 1) * p->stride[d] + reach - size;
    *before = padding > 0 ? padding / 2 : 0;
  } else {
    TFC_KERNEL_CHECK(size - reach + p->stride[d] >= 0,
                     "Computed output size would be negative: a window over %lld in an image of %lld", (long long)reach,
                     (long long)size);
    *count = (size - reach + p->stride[d]) / p->stride[d];
    *before = 0;
  }
  return NULL;
}
static tfc_status extract_patches(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const struct patch_state *p = ctx->state;
  struct tfc_tensor *y = NULL;
  int64_t count[2], before[2];
  TFC_KERNEL_CHECK(x->shape.rank == 4, "input must be 4-dimensional");
  for (int d = 0; d < 2; d++) TFC_RETURN_IF_ERROR(patch_positions(p, d, x->shape.dims[1 + d], &count[d], &before[d]));
  int64_t batch = x->shape.dims[0], height = x->shape.dims[1], width = x->shape.dims[2], depth = x->shape.dims[3];
  TFC_RETURN_IF_ERROR(
      tfc_kernel_output(ctx, 0, x->dtype, &TFC_SHAPE(batch, count[0], count[1], p->size[0] * p->size[1] * depth), &y));
  ops_fill_zero(y);
  int64_t to = 0;
  for (int64_t b = 0; b < batch; b++)
    for (int64_t i = 0; i < count[0]; i++)
      for (int64_t j = 0; j < count[1]; j++)
        for (int64_t r = 0; r < p->size[0]; r++)
          for (int64_t c = 0; c < p->size[1]; c++, to += depth) {
            int64_t v = i * p->stride[0] + r * p->rate[0] - before[0];
            int64_t h = j * p->stride[1] + c * p->rate[1] - before[1];
            if (v < 0 || v >= height || h < 0 || h >= width) continue;
            TFC_RETURN_IF_ERROR(ops_copy_elements(y, to, x, ((b * height + v) * width + h) * depth, depth));
          }
  return NULL;
}
static tfc_status shape_patches(struct tfc_shape_ctx *ctx) {
  struct patch_state p;
  struct tfc_shape x;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &x));
  TFC_RETURN_IF_ERROR(read_patches(ctx->graph, ctx->node, &p));
  for (int d = 0; d < 2; d++) {
    int64_t count = TFC_DIM_UNKNOWN, before;
    if (tfc_dim_known(x.dims[1 + d])) TFC_RETURN_IF_ERROR(patch_positions(&p, d, x.dims[1 + d], &count, &before));
    x.dims[1 + d] = count;
  }
  x.dims[3] = tfc_dim_known(x.dims[3]) ? x.dims[3] * p.size[0] * p.size[1] : TFC_DIM_UNKNOWN;
  ctx->outputs[0] = x;
  return NULL;
}
// Pixels are numbered from 1. The patches of these numbers show where each value came from, and gradients are summed by
// number. Number 0 stands for all positions outside of the image.
OPS_GRADIENT(ExtractImagePatches) {
  struct tfc_builder *b = g->builder;
  struct tfc_attr attrs[4] = {grad_copied_attr(g, "ksizes"), grad_copied_attr(g, "strides"),
                              grad_copied_attr(g, "rates"), grad_copied_attr(g, "padding")};
  struct tfc_output shape = grad_shape(g, X, g->input_shapes[0], TFC_INT32);
  struct tfc_output out_shape = grad_shape(g, Y, g->output_shapes[0], TFC_INT32);
  struct tfc_output batch = grad_item(g, shape, 0), rows = grad_item(g, shape, 1), columns = grad_item(g, shape, 2);
  struct tfc_output channels = grad_item(g, shape, 3), one = tfc_add_i32(b, 1), all = tfc_add_i32(b, -1);
  struct tfc_output pixels = g_mul(g, rows, columns);
  struct tfc_output numbers = grad_op3(g, "Range", one, g_add(g, pixels, one), one);
  struct tfc_output plane[4] = {one, rows, columns, one};
  struct tfc_output numbered = g_reshape(g, grad_cast(g, numbers, TFC_FLOAT), grad_pack(g, plane, 4, 0));
  struct tfc_output patches = tfc_add(b, "ExtractImagePatches", "", &numbered, 1, attrs, 4);
  struct tfc_output ids = g_reshape(g, grad_cast(g, patches, TFC_INT64), tfc_add_i32_vector(b, (int32_t[]){-1}, 1));
  ids = g_sub(g, ids, grad_int(g, TFC_INT64, 1));
  int64_t k[2] = {attrs[0].ints[1], attrs[0].ints[2]};
  struct tfc_output parts[6] = {batch,
                                grad_item(g, out_shape, 1),
                                grad_item(g, out_shape, 2),
                                tfc_add_i32(b, (int32_t)k[0]),
                                tfc_add_i32(b, (int32_t)k[1]),
                                channels};
  struct tfc_output expanded = g_reshape(g, G, grad_pack(g, parts, 6, 0));
  expanded = grad_op2(g, "Transpose", expanded, tfc_add_i32_vector(b, (int32_t[]){1, 2, 3, 4, 0, 5}, 6));
  struct tfc_output flat[2] = {all, g_mul(g, batch, channels)};
  struct tfc_output sums =
      grad_op3(g, "UnsortedSegmentSum", g_reshape(g, expanded, grad_pack(g, flat, 2, 0)), ids, pixels);
  struct tfc_output back[4] = {rows, columns, batch, channels};
  sums = g_reshape(g, sums, grad_pack(g, back, 4, 0));
  g->grad_inputs[0] = grad_op2(g, "Transpose", sums, tfc_add_i32_vector(b, (int32_t[]){2, 0, 1, 3}, 4));
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
static const struct tfc_op_def image_crop_rows[] = {
    {.name = "CropAndResize",
     .inputs = "image: T, boxes: float, box_ind: int32, crop_size: int32",
     .outputs = "crops: float",
     .attrs = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}, method: {'bilinear', 'nearest'} = "
              "'bilinear', extrapolation_value: float = 0",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 8,
     .shape = shape_crop,
     .cost = ops_cost_outputs,
     .prepare = prepare_crop,
     .kernel = crop_and_resize,
     .gradient = gradient_CropAndResize,
     .samples = "float[2,5,5,2], float[2,4]=[0,0,1,1,0.2,0.1,0.7,0.9], int32[2]=[0,1], int32[2]=[3,3]"},
    {.name = "CropAndResizeGradImage",
     .inputs = "grads: float, boxes: float, box_ind: int32, image_size: int32",
     .outputs = "output: T",
     .attrs = "T: {float, half, double}, method: {'bilinear', 'nearest'} = 'bilinear'",
     .host_inputs = 8,
     .shape = shape_crop_grad_image,
     .cost = ops_cost_inputs,
     .prepare = prepare_crop,
     .kernel = crop_grad_image,
     .samples = "float[1,3,3,2], float[1,4]=[0.2,0.1,0.7,0.9], int32[1]=[0], int32[4]=[1,5,5,2] {T=float}"},
    {.name = "CropAndResizeGradBoxes",
     .inputs = "grads: float, image: T, boxes: float, box_ind: int32",
     .outputs = "output: float",
     .attrs = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}, method: {'bilinear'} = 'bilinear'",
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_crop_grad_boxes,
     .cost = ops_cost_inputs,
     .prepare = prepare_crop,
     .kernel = crop_grad_boxes,
     .samples = "float[1,3,3,2], float[1,5,5,2], float[1,4]=[0.2,0.1,0.7,0.9], int32[1]=[0]"},
    {.name = "ExtractImagePatches",
     .inputs = "images: T",
     .outputs = "patches: T",
     .attrs = "ksizes: list(int) >= 4, strides: list(int) >= 4, rates: list(int) >= 4, T: {bfloat16, half, float, "
              "double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128, bool}, "
              "padding: {'SAME', 'VALID'}",
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_patches,
     .cost = ops_cost_moved,
     .prepare = prepare_patches,
     .kernel = extract_patches,
     .gradient = gradient_ExtractImagePatches,
     .samples = "float[1,5,5,2] {ksizes=[1, 3, 3, 1], strides=[1, 2, 2, 1], rates=[1, 1, 1, 1], padding='SAME'}"},
};
TFC_REGISTER_OPS(image_crop_rows);
