// FusedPadConv2D and FusedResizeAndPadConv2D: an image is resized bilinearly, gets a mirrored border, and is convolved.
// Each row and column of the bordered image is interpolated between two of the original.
//
//   input [batch, height, width, channels]   size [2]   paddings [4, 2]   filter [.., .., channels, filters]
#include "runtime/ops/image_scale.h"
#include "runtime/ops/nn_conv.h"
#include "runtime/ops/state_common.h"

struct fused {
  struct tfc_window window;
  bool resizes;
  int64_t offset; // 0: the border's own values are repeated (SYMMETRIC), 1: they are not (REFLECT)
  struct ops_scale_state scale;
};
static tfc_status prepare(struct tfc_prepare_ctx *ctx) {
  struct fused *f = TFC_ARENA_NEW(ctx->arena, struct fused);
  if (!f) return tfc_status_no_memory(NULL);
  f->resizes = ctx->node->input_count == 4;
  f->offset = tfc_str_is(tfc_node_attr_string(ctx->graph, ctx->node, "mode", ""), "REFLECT");
  f->scale.align_corners = tfc_node_attr_bool(ctx->graph, ctx->node, "resize_align_corners", false);
  ctx->state = f;
  return tfc_window_read(ctx->graph, ctx->node, 4, &f->window);
}

struct tap { // a row or column is: low + (high - low) * by
  int64_t low, high;
  float by;
};
struct axis {
  int64_t in, size, before, after; // sizes of the original, of the resized image, and of the border on both sides
  struct tap *taps;                // [before + size + after]
};
static void fill_taps(const struct fused *f, struct axis *a) {
  const float step = ops_scale_step(a->in, a->size, f->scale.align_corners);
  for (int64_t i = 0; i < a->before + a->size + a->after; i++) {
    int64_t at = i - a->before;
    if (at < 0) at = -at - 1 + f->offset;
    if (at >= a->size) at = 2 * a->size - 1 - at - f->offset;
    const float x = f->resizes ? ops_scale_at(&f->scale, at, step, false) : (float)at;
    const int64_t low = f->resizes ? (int64_t)floorf(x) : at, high = low + 1 < a->in ? low + 1 : a->in - 1;
    a->taps[i] = f->resizes ? (struct tap){low, high, x - (float)low} : (struct tap){at, at, 0};
  }
}
static tfc_status read_axis(const struct fused *f, const struct tfc_tensor *x, const struct tfc_tensor *size,
                            const struct tfc_tensor *paddings, int d, struct axis *a) {
  a->in = x->shape.dims[d];
  a->size = f->resizes ? tfc_tensor_int(size, d - 1) : a->in;
  a->before = tfc_tensor_int(paddings, 2 * d), a->after = tfc_tensor_int(paddings, 2 * d + 1);
  TFC_KERNEL_CHECK(a->in > 0 && a->size > 0, "the image and its new size must not be empty");
  TFC_KERNEL_CHECK(a->before >= 0 && a->after >= 0, "Paddings must be non-negative: %lld %lld", (long long)a->before,
                   (long long)a->after);
  TFC_KERNEL_CHECK(a->before <= a->size - f->offset && a->after <= a->size - f->offset,
                   "paddings must be no greater than the dimension size: %lld, %lld greater than %lld",
                   (long long)a->before, (long long)a->after, (long long)(a->size - f->offset));
  TFC_KERNEL_CHECK(a->before + a->size + a->after <= INT32_MAX, "the image is too large");
  return NULL;
}

// padded [batch, rows, columns, channels]
static void pad(const struct tfc_tensor *x, const struct axis *h, const struct axis *w, struct tfc_tensor *padded) {
  const int64_t rows = padded->shape.dims[1], columns = padded->shape.dims[2], channels = padded->shape.dims[3];
  OPS_SWITCH(OPS_FLOATS, x->dtype, {
    S *y = padded->data;
    for (int64_t b = 0; b < padded->shape.dims[0]; b++)
      for (int64_t i = 0; i < rows; i++) {
        const struct tap v = h->taps[i];
        const S *image = (const S *)x->data + b * h->in * w->in * channels;
        const S *top = image + v.low * w->in * channels, *bottom = image + v.high * w->in * channels;
        for (int64_t j = 0; j < columns; j++) {
          const int64_t left = w->taps[j].low * channels, right = w->taps[j].high * channels;
          const C by = (C)w->taps[j].by;
          for (int64_t c = 0; c < channels; c++) {
            C upper = OPS_GET(top[left + c]), lower = OPS_GET(bottom[left + c]);
            if (by != 0) { // unless by is 0: 0 times infinity would give NaN
              upper += (OPS_GET(top[right + c]) - upper) * by;
              lower += (OPS_GET(bottom[right + c]) - lower) * by;
            }
            OPS_PUT(*y++, v.by != 0 ? upper + (lower - upper) * (C)v.by : upper);
          }
        }
      }
  })
}

static tfc_status fused_conv(struct tfc_kernel_ctx *ctx) {
  const struct fused *f = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0], *size = ctx->inputs[1], *paddings = ctx->inputs[ctx->input_count - 2];
  struct axis h, w;
  struct tfc_buffer *taps = NULL;
  struct tfc_tensor padded = {0};
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(x->shape.rank == 4, "input must be 4-dimensional%s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(!f->resizes || (size->shape.rank == 1 && size->shape.dims[0] == 2), "size must have two elements");
  TFC_KERNEL_CHECK(paddings->shape.rank == 2 && paddings->shape.dims[0] == 4 && paddings->shape.dims[1] == 2,
                   "paddings must be a matrix with 2 columns and 4 rows: %s",
                   tfc_shape_show(&paddings->shape, (char[TFC_SHAPE_TEXT]){0}));
  for (int i = 0; i < 8; i++)
    TFC_KERNEL_CHECK((i >= 2 && i < 6) || tfc_tensor_int(paddings, i) == 0,
                     "paddings of the batch and of the channels must be 0");
  TFC_RETURN_IF_ERROR(read_axis(f, x, size, paddings, 1, &h));
  TFC_RETURN_IF_ERROR(read_axis(f, x, size, paddings, 2, &w));
  const int64_t rows = h.before + h.size + h.after, columns = w.before + w.size + w.after;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(rows + columns) * sizeof(struct tap), &taps));
  h.taps = taps->data, w.taps = h.taps + rows;
  fill_taps(f, &h), fill_taps(f, &w);
  TFC_TRY(s, tfc_state_tensor(ctx, x->dtype, &TFC_SHAPE(x->shape.dims[0], rows, columns, x->shape.dims[3]), &padded));
  pad(x, &h, &w, &padded);
  s = tfc_conv_forward(ctx, &f->window, &padded, ctx->inputs[ctx->input_count - 1]);
out:
  tfc_tensor_release(&padded);
  tfc_buffer_release(taps);
  return s;
}

static tfc_status shape_fused(struct tfc_shape_ctx *ctx) {
  const uint32_t n = ctx->node->input_count;
  const struct tfc_tensor *p = ctx->input_values ? ctx->input_values[n - 2] : NULL;
  struct tfc_window w;
  struct tfc_shape x, matrix, size = TFC_SHAPE_UNKNOWN;
  TFC_RETURN_IF_ERROR(tfc_window_read(ctx->graph, ctx->node, 4, &w));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, n - 2, 2, &matrix));
  if (n == 4) {
    size = ops_described_shape(ctx, 1);
    for (int d = 0; d < 2; d++) x.dims[1 + d] = size.rank == 2 ? size.dims[d] : TFC_DIM_UNKNOWN;
  }
  for (int d = 0; d < 4; d++)
    x.dims[d] = p && tfc_tensor_elements(p) == 8
                    ? ops_dim_add(x.dims[d], tfc_tensor_int(p, 2 * d) + tfc_tensor_int(p, 2 * d + 1))
                    : TFC_DIM_UNKNOWN;
  return tfc_conv_infer(ctx, &w, &x, n - 1);
}
static void cost_fused(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                       const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  const struct tfc_shape *w = &inputs[n->input_count - 1];
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
  out->flops = 2.0 * (double)tfc_shape_elements(&outputs[0]) * (double)(w->dims[0] * w->dims[1] * w->dims[2]);
}

#define ROW .outputs = "output: T", .shape = shape_fused, .cost = cost_fused, .prepare = prepare, .kernel = fused_conv
static const struct tfc_op_def nn_fused_pad_rows[] = {
    {.name = "FusedPadConv2D",
     .inputs = "input: T, paddings: int32, filter: T",
     .attrs = "T: {half, bfloat16, float, double}, mode: {'REFLECT', 'SYMMETRIC'}, strides: list(int), padding: "
              "{'SAME', 'VALID'}",
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 2,
     ROW,
     .samples = "float[1,4,5,2], int32[4,2]=[0,0,1,2,2,0,0,0], float[3,2,2,3] {mode='REFLECT', strides=[1,1,1,1], "
                "padding='VALID'}"},
    {.name = "FusedResizeAndPadConv2D",
     .inputs = "input: T, size: int32, paddings: int32, filter: T",
     .attrs = "T: {half, float, double}, resize_align_corners: bool = false, mode: {'REFLECT', 'SYMMETRIC'}, strides: "
              "list(int), padding: {'SAME', 'VALID'}",
     .types = OPS_BITS(OPS_FLOATS) & ~TFC_TYPE_BIT(TFC_BFLOAT16),
     .host_inputs = 6,
     ROW,
     .samples = "float[1,4,5,2], int32[2]=[6,7], int32[4,2]=[0,0,1,2,2,0,0,0], float[3,2,2,3] {mode='SYMMETRIC', "
                "strides=[1,2,2,1], padding='SAME'}"},
};
TFC_REGISTER_OPS(nn_fused_pad_rows);
