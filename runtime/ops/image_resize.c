// Operations that resize images [batch, height, width, channels]: ResizeBilinear, ResizeNearestNeighbor, ResizeArea,
// ResizeBicubic, and the gradients that TensorFlow has for them.
//
// As in TensorFlow, positions and weights are float32 for images of every type. For the same results, every formula
// below keeps TensorFlow's order of arithmetic.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/image_scale.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// --- Positions -------------------------------------------------------------------------------------------------------
static tfc_status prepare_scale(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct ops_scale_state, state);
  state->align_corners = tfc_node_attr_bool(ctx->graph, ctx->node, "align_corners", false);
  state->half_pixel_centers = tfc_node_attr_bool(ctx->graph, ctx->node, "half_pixel_centers", false);
  bool checked = !tfc_str_is(ctx->node->op, "ResizeNearestNeighborGrad"); // TensorFlow does not check this one
  if (checked && state->align_corners && state->half_pixel_centers)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "If half_pixel_centers is True, align_corners must be False.");
  return NULL;
}
float ops_scale_step(int64_t in, int64_t out, bool align_corners) {
  return align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}
float ops_scale_at(const struct ops_scale_state *s, int64_t i, float step, bool nearest) {
  if (!s->half_pixel_centers) return (float)i * step;
  return nearest ? ((float)i + 0.5f) * step : ((float)i + 0.5f) * step - 0.5f;
}

// Sizes of an image resize: images [batch, height, width, channels], size [2].
struct resize {
  int64_t batch, in_height, in_width, out_height, out_width, channels;
  float height_step, width_step;
};
static tfc_status plan_resize(struct tfc_kernel_ctx *ctx, bool align_corners, struct resize *out) {
  const struct tfc_shape *s = &ctx->inputs[0]->shape;
  const struct tfc_tensor *size = ctx->inputs[1];
  TFC_KERNEL_CHECK(s->rank == 4, "input must be 4-dimensional, it has rank %d", s->rank);
  TFC_KERNEL_CHECK(size->shape.rank == 1 && tfc_tensor_elements(size) == 2, "shape_t must have two elements");
  struct resize r = {.batch = s->dims[0],
                     .in_height = s->dims[1],
                     .in_width = s->dims[2],
                     .channels = s->dims[3],
                     .out_height = tfc_tensor_int(size, 0),
                     .out_width = tfc_tensor_int(size, 1)};
  TFC_KERNEL_CHECK(r.out_height > 0 && r.out_width > 0, "output dimensions must be positive");
  if (tfc_str_is(ctx->node->op, "ResizeNearestNeighborGrad")) { // may be empty, too: the gradient is then zeros
    *out = r;
    return NULL;
  }
  TFC_KERNEL_CHECK(r.channels > 0, "image must have at least one channel");
  TFC_KERNEL_CHECK(r.in_height > 0 && r.in_width > 0, "input image must be of non-zero size");
  r.height_step = ops_scale_step(r.in_height, r.out_height, align_corners);
  r.width_step = ops_scale_step(r.in_width, r.out_width, align_corners);
  *out = r;
  return NULL;
}
static tfc_status shape_resize(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x;
  int64_t size[2];
  int n = 0;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &x));
  bool known = ops_known_ints(ctx, 1, size, 2, &n) && n == 2;
  struct tfc_shape p = ops_described_shape(ctx, 1);
  for (int d = 0; d < 2; d++) {
    x.dims[1 + d] = known ? size[d] : p.rank == 2 ? p.dims[d] : TFC_DIM_UNKNOWN;
    if (known && size[d] <= 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "output dimensions must be positive");
  }
  ctx->outputs[0] = x;
  return NULL;
}
static tfc_status shape_resize_grad(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = *ctx->inputs[1];
  return NULL;
}

#define PIXEL(t, ...)                                                                                                  \
  case OPS_DT_##t: return (float)OPS_GET_##t(((const ops_##t *)t_->data)[i]);
float ops_pixel(const struct tfc_tensor *t_, int64_t i) {
  switch (t_->dtype) {
    OPS_REALS(PIXEL, ~)
  default: return 0;
  }
}

#define ADD_TO(t, ...)                                                                                                 \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t *p = (ops_##t *)y->data + at;                                                                              \
    *p = OPS_PUT_##t(OPS_GET_##t(*p) + OPS_GET_##t(OPS_PUT_##t(value)));                                               \
    break;                                                                                                             \
  }
void ops_add_to(struct tfc_tensor *y, int64_t at, float value) {
  switch (y->dtype) {
    OPS_FLOATS(ADD_TO, ~)
  default: break;
  }
}
static bool is_real(tfc_dtype t) {
  return OPS_BITS(OPS_REALS) & TFC_TYPE_BIT(t);
}

// Gets the image as float32: its own data, or a converted copy.
static tfc_status as_floats(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *x, struct tfc_buffer **held,
                            const float **out) {
  if (!is_real(x->dtype)) return ops_unsupported_type(ctx, x->dtype);
  if (x->dtype == TFC_FLOAT) {
    *out = x->data;
    return NULL;
  }
  int64_t n = tfc_tensor_elements(x);
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)n * 4 + 4, held));
  float *y = (*held)->data;
  for (int64_t i = 0; i < n; i++) y[i] = ops_pixel(x, i);
  *out = y;
  return NULL;
}

// --- Bilinear --------------------------------------------------------------------------------------------------------
struct lerp {
  int64_t low, high;
  float by;
};
static struct lerp lerp_at(const struct ops_scale_state *s, int64_t i, float step, int64_t size) {
  float at = ops_scale_at(s, i, step, false), floor_at = floorf(at);
  int64_t low = (int64_t)floor_at, high = (int64_t)ceilf(at);
  return (struct lerp){low > 0 ? low : 0, high < size - 1 ? high : size - 1, at - floor_at};
}

struct bilinear_job {
  const struct ops_scale_state *state;
  struct resize r;
  const float *x;
  float *y;
};
static void bilinear_piece(void *arg, int64_t begin, int64_t end) { // rows of the result, numbered over all images
  const struct bilinear_job *j = arg;
  const struct resize *r = &j->r;
  int64_t c = r->channels, row = r->in_width * c;
  for (int64_t k = begin; k < end; k++) {
    struct lerp v = lerp_at(j->state, k % r->out_height, r->height_step, r->in_height);
    const float *image = j->x + k / r->out_height * r->in_height * row;
    const float *top = image + v.low * row, *bottom = image + v.high * row;
    float *out = j->y + k * r->out_width * c;
    for (int64_t x = 0; x < r->out_width; x++) {
      struct lerp h = lerp_at(j->state, x, r->width_step, r->in_width);
      for (int64_t i = 0; i < c; i++) {
        float tl = top[h.low * c + i], tr = top[h.high * c + i], bl = bottom[h.low * c + i],
              br = bottom[h.high * c + i];
        float upper = tl + (tr - tl) * h.by, lower = bl + (br - bl) * h.by;
        *out++ = upper + (lower - upper) * v.by;
      }
    }
  }
}
static tfc_status resize_bilinear(struct tfc_kernel_ctx *ctx) {
  struct bilinear_job job = {.state = ctx->state};
  struct tfc_buffer *held = NULL;
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(plan_resize(ctx, job.state->align_corners, &job.r));
  TFC_TRY(s, as_floats(ctx, ctx->inputs[0], &held, &job.x));
  TFC_TRY(s, tfc_kernel_output(ctx, 0, TFC_FLOAT,
                               &TFC_SHAPE(job.r.batch, job.r.out_height, job.r.out_width, job.r.channels), &y));
  job.y = y->data;
  if (job.r.in_height == job.r.out_height && job.r.in_width == job.r.out_width)
    memcpy(y->data, job.x, y->size);
  else
    tfc_kernel_parallel_for(ctx, job.r.batch * job.r.out_height,
                            OPS_GRAIN_COSTLY / (job.r.out_width * job.r.channels + 1) + 1, bilinear_piece, &job);
out:
  tfc_buffer_release(held);
  return s;
}

// Plans the gradient, which has the shape of the images in input 1. Input 0 [batch, h, w, channels] is the gradient of
// the resized images.
static tfc_status plan_grad(struct tfc_kernel_ctx *ctx, bool align_corners, struct resize *out) {
  const struct tfc_shape *g = &ctx->inputs[0]->shape, *x = &ctx->inputs[1]->shape;
  TFC_KERNEL_CHECK(g->rank == 4 && x->rank == 4, "input and original image must be 4-dimensional");
  TFC_KERNEL_CHECK(g->dims[0] == x->dims[0] && g->dims[3] == x->dims[3],
                   "input and original image must have the same batch size and channels");
  TFC_KERNEL_CHECK(x->dims[1] > 0 && x->dims[2] > 0, "original dimensions must be positive");
  TFC_KERNEL_CHECK(g->dims[1] > 0 && g->dims[2] > 0, "resized dimensions must be positive");
  struct resize r = {g->dims[0], x->dims[1], x->dims[2], g->dims[1], g->dims[2], g->dims[3], 0, 0};
  r.height_step = ops_scale_step(r.in_height, r.out_height, align_corners);
  r.width_step = ops_scale_step(r.in_width, r.out_width, align_corners);
  *out = r;
  return NULL;
}
static tfc_status resize_bilinear_grad(struct tfc_kernel_ctx *ctx) {
  const struct ops_scale_state *state = ctx->state;
  const struct tfc_tensor *g = ctx->inputs[0];
  struct resize r;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(plan_grad(ctx, state->align_corners, &r));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, ctx->inputs[1], &y));
  memset(y->data, 0, y->size);
  if (tfc_tensor_elements(y) == 0) return NULL;
  const float *grad = g->data;
  for (int64_t b = 0; b < r.batch; b++)
    for (int64_t yy = 0; yy < r.out_height; yy++) {
      struct lerp v = lerp_at(state, yy, r.height_step, r.in_height);
      float inverse_v = 1.0f - v.by;
      int64_t top = (b * r.in_height + v.low) * r.in_width, bottom = (b * r.in_height + v.high) * r.in_width;
      for (int64_t x = 0; x < r.out_width; x++) {
        struct lerp h = lerp_at(state, x, r.width_step, r.in_width);
        float inverse_h = 1.0f - h.by;
        for (int64_t c = 0; c < r.channels; c++, grad++) {
          ops_add_to(y, (top + h.low) * r.channels + c, *grad * inverse_v * inverse_h);
          ops_add_to(y, (top + h.high) * r.channels + c, *grad * inverse_v * h.by);
          ops_add_to(y, (bottom + h.low) * r.channels + c, *grad * v.by * inverse_h);
          ops_add_to(y, (bottom + h.high) * r.channels + c, *grad * v.by * h.by);
        }
      }
    }
  return NULL;
}

// --- Nearest neighbour -----------------------------------------------------------------------------------------------
static int64_t nearest_at(const struct ops_scale_state *s, int64_t i, float step, int64_t size) {
  float at = ops_scale_at(s, i, step, true);
  int64_t k = (int64_t)(s->align_corners ? roundf(at) : floorf(at));
  if (k > size - 1) k = size - 1;
  return k < 0 ? 0 : k;
}
static tfc_status resize_nearest(struct tfc_kernel_ctx *ctx) {
  const struct ops_scale_state *state = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct resize r;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(plan_resize(ctx, state->align_corners, &r));
  TFC_RETURN_IF_ERROR(
      tfc_kernel_output(ctx, 0, x->dtype, &TFC_SHAPE(r.batch, r.out_height, r.out_width, r.channels), &y));
  size_t bytes = (size_t)r.channels * tfc_dtype_size(x->dtype);
  char *out = y->data;
  for (int64_t b = 0; b < r.batch; b++)
    for (int64_t i = 0; i < r.out_height; i++) {
      int64_t row = b * r.in_height + nearest_at(state, i, r.height_step, r.in_height);
      for (int64_t k = 0; k < r.out_width; k++, out += bytes)
        memcpy(out,
               (const char *)x->data +
                   (size_t)(row * r.in_width + nearest_at(state, k, r.width_step, r.in_width)) * bytes,
               bytes);
    }
  return NULL;
}
#define ADD_PIXELS(t, ...)                                                                                             \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t c = 0; c < r.channels; c++) {                                                                         \
      ops_##t *p = (ops_##t *)y->data + to + c;                                                                        \
      *p = OPS_PUT_##t((ops_##t##_u)OPS_GET_##t(*p) + (ops_##t##_u)OPS_GET_##t(((const ops_##t *)g->data)[from + c])); \
    }                                                                                                                  \
    break;
static tfc_status resize_nearest_grad(struct tfc_kernel_ctx *ctx) { // inputs: grads, size of the original
  const struct ops_scale_state *state = ctx->state;
  const struct tfc_tensor *g = ctx->inputs[0];
  struct resize r; // "in" is the gradient's size here, "out" the original's
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(plan_resize(ctx, state->align_corners, &r));
  TFC_RETURN_IF_ERROR(
      tfc_kernel_output(ctx, 0, g->dtype, &TFC_SHAPE(r.batch, r.out_height, r.out_width, r.channels), &y));
  if (y->size) memset(y->data, 0, y->size);
  float vertical = ops_scale_step(r.out_height, r.in_height, state->align_corners);
  float horizontal = ops_scale_step(r.out_width, r.in_width, state->align_corners);
  int64_t from = 0;
  for (int64_t b = 0; b < r.batch; b++)
    for (int64_t i = 0; i < r.in_height; i++) {
      int64_t row = b * r.out_height + nearest_at(state, i, vertical, r.out_height);
      for (int64_t k = 0; k < r.in_width; k++, from += r.channels) {
        int64_t to = (row * r.out_width + nearest_at(state, k, horizontal, r.out_width)) * r.channels;
        switch (g->dtype) {
          OPS_REALS(ADD_PIXELS, ~)
        default: return ops_unsupported_type(ctx, g->dtype);
        }
      }
    }
  return NULL;
}

// --- Area ------------------------------------------------------------------------------------------------------------
static int64_t bound(int64_t i, int64_t size) {
  return i < 0 ? 0 : i > size - 1 ? size - 1 : i;
}
// Returns how much of pixel i lies between `from` and `to`, which are `step` apart.
static float covered(int64_t i, float from, float to, float step) {
  if ((float)i < from) return (float)(i + 1) > to ? step : (float)(i + 1) - from;
  return (float)(i + 1) > to ? to - (float)i : 1.0f;
}
static tfc_status resize_area(struct tfc_kernel_ctx *ctx) {
  const struct ops_scale_state *state = ctx->state;
  struct resize r;
  struct tfc_buffer *held = NULL;
  struct tfc_tensor *y = NULL;
  const float *x = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(plan_resize(ctx, state->align_corners, &r));
  // If the result has one row or column, there are no corners to align.
  if (r.height_step == 0) r.height_step = ops_scale_step(r.in_height, r.out_height, false);
  if (r.width_step == 0) r.width_step = ops_scale_step(r.in_width, r.out_width, false);
  TFC_TRY(s, as_floats(ctx, ctx->inputs[0], &held, &x));
  TFC_TRY(s, tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(r.batch, r.out_height, r.out_width, r.channels), &y));
  float *out = y->data, scale = (float)(1.0 / (double)(r.height_step * r.width_step));
  int64_t row = r.in_width * r.channels;
  for (int64_t b = 0; b < r.batch; b++)
    for (int64_t i = 0; i < r.out_height; i++) {
      float top = (float)i * r.height_step, bottom = (float)(i + 1) * r.height_step;
      for (int64_t k = 0; k < r.out_width; k++) {
        float left = (float)k * r.width_step, right = (float)(k + 1) * r.width_step;
        for (int64_t c = 0; c < r.channels; c++) {
          float sum = 0;
          for (int64_t v = (int64_t)floorf(top); v < (int64_t)ceilf(bottom); v++) {
            const float *from = x + (b * r.in_height + bound(v, r.in_height)) * row;
            float line = 0;
            for (int64_t h = (int64_t)floorf(left); h < (int64_t)ceilf(right); h++)
              line += from[bound(h, r.in_width) * r.channels + c] * covered(h, left, right, r.width_step);
            sum += line * covered(v, top, bottom, r.height_step);
          }
          *out++ = sum * scale;
        }
      }
    }
out:
  tfc_buffer_release(held);
  return s;
}

// --- Bicubic ---------------------------------------------------------------------------------------------------------
// Weights come from a table with 1024 steps between two pixels. With half-pixel centres the kernel is Keys' (a = -0.5);
// samples outside of the image then have weight zero, and the other weights are scaled up.
enum { STEPS = 1024 };
struct cubic {
  int64_t index[4];
  float weight[4];
};
static void cubic_table(double a, float *table) {
  for (int i = 0; i <= STEPS; i++) {
    double x = (double)i / STEPS, z = x + 1;
    table[2 * i] = (float)(((a + 2) * x - (a + 3)) * x * x + 1);
    table[2 * i + 1] = (float)(((a * z - 5 * a) * z + 8 * a) * z - 4 * a);
  }
}
static struct cubic cubic_at(const struct ops_scale_state *s, const float *table, int64_t i, float step, int64_t size) {
  struct cubic w;
  float at = ops_scale_at(s, i, step, false);
  int64_t in = (int64_t)floorf(at);
  float delta = at - (float)in;
  int offset = (int)lrintf(delta * STEPS);
  float weights[4] = {table[offset * 2 + 1], table[offset * 2], table[(STEPS - offset) * 2],
                      table[(STEPS - offset) * 2 + 1]};
  for (int k = 0; k < 4; k++) {
    w.index[k] = bound(in - 1 + k, size);
    w.weight[k] = s->half_pixel_centers && w.index[k] != in - 1 + k ? 0.0f : weights[k];
  }
  if (s->half_pixel_centers) {
    float sum = w.weight[0] + w.weight[1] + w.weight[2] + w.weight[3];
    if (fabsf(sum) >= 1000.0f * 1.17549435e-38f) {
      float inverse = 1.0f / sum;
      for (int k = 0; k < 4; k++) w.weight[k] *= inverse;
    }
  }
  return w;
}
static tfc_status cubic_lines(struct tfc_kernel_ctx *ctx, const struct resize *r, struct tfc_buffer **held,
                              struct cubic **vertical, struct cubic **horizontal) {
  const struct ops_scale_state *state = ctx->state;
  float table[2 * (STEPS + 1)];
  cubic_table(state->half_pixel_centers ? -0.5 : -0.75, table);
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(r->out_height + r->out_width) * sizeof(struct cubic), held));
  *vertical = (*held)->data;
  *horizontal = *vertical + r->out_height;
  for (int64_t i = 0; i < r->out_height; i++) (*vertical)[i] = cubic_at(state, table, i, r->height_step, r->in_height);
  for (int64_t i = 0; i < r->out_width; i++) (*horizontal)[i] = cubic_at(state, table, i, r->width_step, r->in_width);
  return NULL;
}
static float cubic_sum(const float *w, float a, float b, float c, float d) {
  return a * w[0] + b * w[1] + c * w[2] + d * w[3];
}
static tfc_status resize_bicubic(struct tfc_kernel_ctx *ctx) {
  const struct ops_scale_state *state = ctx->state;
  struct resize r;
  struct tfc_buffer *held = NULL, *lines = NULL;
  struct tfc_tensor *y = NULL;
  const float *x = NULL;
  struct cubic *vertical, *horizontal;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(plan_resize(ctx, state->align_corners, &r));
  TFC_TRY(s, as_floats(ctx, ctx->inputs[0], &held, &x));
  TFC_TRY(s, cubic_lines(ctx, &r, &lines, &vertical, &horizontal));
  TFC_TRY(s, tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(r.batch, r.out_height, r.out_width, r.channels), &y));
  float *out = y->data;
  int64_t row = r.in_width * r.channels;
  for (int64_t b = 0; b < r.batch; b++)
    for (int64_t i = 0; i < r.out_height; i++) {
      const struct cubic *v = &vertical[i];
      const float *from[4];
      for (int k = 0; k < 4; k++) from[k] = x + (b * r.in_height + v->index[k]) * row;
      for (int64_t j = 0; j < r.out_width; j++) {
        const struct cubic *h = &horizontal[j];
        for (int64_t c = 0; c < r.channels; c++) {
          float column[4];
          for (int k = 0; k < 4; k++) {
            int64_t at = h->index[k] * r.channels + c;
            column[k] = cubic_sum(v->weight, from[0][at], from[1][at], from[2][at], from[3][at]);
          }
          *out++ = cubic_sum(h->weight, column[0], column[1], column[2], column[3]);
        }
      }
    }
out:
  tfc_buffer_release(held);
  tfc_buffer_release(lines);
  return s;
}
static tfc_status resize_bicubic_grad(struct tfc_kernel_ctx *ctx) {
  const struct ops_scale_state *state = ctx->state;
  struct resize r;
  struct tfc_buffer *lines = NULL;
  struct tfc_tensor *y = NULL;
  struct cubic *vertical, *horizontal;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(plan_grad(ctx, state->align_corners, &r));
  TFC_TRY(s, cubic_lines(ctx, &r, &lines, &vertical, &horizontal));
  TFC_TRY(s, tfc_kernel_output_like(ctx, 0, ctx->inputs[1], &y));
  memset(y->data, 0, y->size);
  const float *grad = ctx->inputs[0]->data;
  for (int64_t b = 0; b < r.batch; b++)
    for (int64_t i = 0; i < r.out_height; i++)
      for (int64_t j = 0; j < r.out_width; j++)
        for (int64_t c = 0; c < r.channels; c++, grad++)
          for (int p = 0; p < 4; p++)
            for (int q = 0; q < 4; q++)
              ops_add_to(
                  y, ((b * r.in_height + vertical[i].index[p]) * r.in_width + horizontal[j].index[q]) * r.channels + c,
                  *grad * vertical[i].weight[p] * horizontal[j].weight[q]);
out:
  tfc_buffer_release(lines);
  return s;
}

// --- Gradients -----------------------------------------------------------------------------------------------------
static void scale_attrs(struct tfc_grad_ctx *g, struct tfc_attr attrs[2]) {
  attrs[0] = tfc_attr_bool("align_corners", grad_attr_bool(g, "align_corners", false));
  attrs[1] = tfc_attr_bool("half_pixel_centers", grad_attr_bool(g, "half_pixel_centers", false));
}
static tfc_status resize_gradient(struct tfc_grad_ctx *g, const char *op) {
  struct tfc_attr attrs[2];
  scale_attrs(g, attrs);
  g->grad_inputs[0] = tfc_add(g->builder, op, "", (struct tfc_output[]){G, X}, 2, attrs, 2);
  return NULL;
}
OPS_GRADIENT(ResizeBilinear) {
  return tfc_dtype_is_floating(grad_type(g, X)) ? resize_gradient(g, "ResizeBilinearGrad") : NULL;
}
OPS_GRADIENT(ResizeBicubic) {
  tfc_dtype t = grad_type(g, X);
  return t == TFC_FLOAT || t == TFC_DOUBLE ? resize_gradient(g, "ResizeBicubicGrad") : NULL;
}
OPS_GRADIENT(ResizeNearestNeighbor) {
  struct tfc_attr attrs[2];
  scale_attrs(g, attrs);
  struct tfc_output shape = grad_shape(g, X, g->input_shapes[0], TFC_INT32);
  struct tfc_output in[2] = {G, grad_range(g, shape, 1, 3)};
  g->grad_inputs[0] = tfc_add(g->builder, "ResizeNearestNeighborGrad", "", in, 2, attrs, 2);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define RESIZE(run)                                                                                                    \
  .types = OPS_BITS(OPS_REALS), .host_inputs = 2, .shape = shape_resize, .cost = ops_cost_outputs,                     \
  .prepare = prepare_scale, .kernel = run
#define GRAD(run) .shape = shape_resize_grad, .cost = ops_cost_inputs, .prepare = prepare_scale, .kernel = run
#define SAMPLES                                                                                                        \
  "float[1,4,5,2], int32[2]=[6,3]; float[2,3,3,1], int32[2]=[5,5] {align_corners=true}; float[1,4,4,1], "              \
  "int32[2]=[7,2] "                                                                                                    \
  "{half_pixel_centers=true}"
static const struct tfc_op_def image_resize_rows[] = {
    {.name = "ResizeBilinear",
     .inputs = "images: T, size: int32",
     .outputs = "resized_images: float",
     .attrs = "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}, align_corners: "
              "bool = false, half_pixel_centers: bool = false",
     RESIZE(resize_bilinear),
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_ResizeBilinear,
     .samples = SAMPLES},
    {.name = "ResizeNearestNeighbor",
     .inputs = "images: T, size: int32",
     .outputs = "resized_images: T",
     .attrs = "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}, align_corners: bool = "
              "false, half_pixel_centers: bool = false",
     RESIZE(resize_nearest),
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_ResizeNearestNeighbor,
     .samples = SAMPLES},
    {.name = "ResizeBicubic",
     .inputs = "images: T, size: int32",
     .outputs = "resized_images: float",
     .attrs = "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}, align_corners: bool = "
              "false, half_pixel_centers: bool = false",
     RESIZE(resize_bicubic),
     .gradient = gradient_ResizeBicubic,
     .samples = SAMPLES},
    {.name = "ResizeArea",
     .inputs = "images: T, size: int32",
     .outputs = "resized_images: float",
     .attrs =
         "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}, align_corners: bool = false",
     RESIZE(resize_area),
     .samples = "float[1,4,5,2], int32[2]=[6,3]"},
    {.name = "ResizeBilinearGrad",
     .inputs = "grads: float, original_image: T",
     .outputs = "output: T",
     .attrs = "T: {float, bfloat16, half, double}, align_corners: bool = false, half_pixel_centers: bool = false",
     GRAD(resize_bilinear_grad),
     .samples = "float[1,6,3,2], float[1,4,5,2]"},
    {.name = "ResizeBicubicGrad",
     .inputs = "grads: float, original_image: T",
     .outputs = "output: T",
     .attrs = "T: {float, double}, align_corners: bool = false, half_pixel_centers: bool = false",
     GRAD(resize_bicubic_grad),
     .samples = "float[1,6,3,2], float[1,4,5,2]"},
    {.name = "ResizeNearestNeighborGrad",
     .inputs = "grads: T, size: int32",
     .outputs = "output: T",
     .attrs = "T: {uint8, int8, int32, half, float, double, bfloat16}, align_corners: bool = false, "
              "half_pixel_centers: bool = false",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 2,
     .shape = shape_resize,
     .cost = ops_cost_inputs,
     .prepare = prepare_scale,
     .kernel = resize_nearest_grad,
     .samples = "float[1,6,3,2], int32[2]=[4,5]"},
};
TFC_REGISTER_OPS(image_resize_rows);
