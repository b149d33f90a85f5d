// Maximum and average pooling of two and three dimensions. Their gradients are in nn_pool_grad.c.
//
// Cells in the padding do not count: an average is over the cells inside the image. A maximum begins with the least
// finite number and takes what is greater, so NaN is ignored.
#include <float.h>

#include "runtime/ops/nn_pool.h"

int tfc_pool_rank(const struct tfc_node *n) {
  for (size_t i = 0; i + 1 < n->op.size; i++)
    if (n->op.data[i] == '3' && n->op.data[i + 1] == 'D') return 5;
  return 4;
}

// Whether window and strides are the last two inputs instead of attributes.
static bool sizes_given(const struct tfc_node *n) {
  return tfc_str_ends(n->op, "V2");
}

tfc_status tfc_pool_prepare(struct tfc_prepare_ctx *ctx) {
  struct tfc_window *w = TFC_ARENA_NEW(ctx->arena, struct tfc_window);
  if (!w) return tfc_status_no_memory(NULL);
  ctx->state = w;
  return tfc_window_read(ctx->graph, ctx->node, tfc_pool_rank(ctx->node), w);
}

// Over channels, TensorFlow pools only with windows that do not overlap and that have size 1 in all other dimensions;
// its kernel then keeps every row and column, whatever their strides.
static tfc_status output_shape(struct tfc_window *w, const struct tfc_shape *x, int64_t *before,
                               struct tfc_shape *out) {
  for (int k = 0; k < 3 && w->channel_size > 1; k++) w->stride[k] = 1;
  int64_t size[3] = {1, 1, 1}, channels = x->dims[tfc_window_channel_axis(w)];
  for (int k = 3 - w->spatial; k < 3; k++) {
    int64_t in = x->dims[tfc_window_axis(w, k)];
    TFC_RETURN_IF_ERROR(before ? tfc_window_output(w, k, in, w->size[k], &size[k], &before[k])
                               : tfc_window_infer(w, k, in, w->size[k], &size[k]));
  }
  if (w->channel_size > 1) {
    if (w->size[0] * w->size[1] * w->size[2] != 1 || w->channel_stride != w->channel_size)
      return tfc_status_make(TFC_UNIMPLEMENTED,
                             "pooling over channels needs a window and stride of 1 elsewhere and a stride of its size");
    if (channels >= 0 && channels % w->channel_size)
      return tfc_status_make(TFC_UNIMPLEMENTED, "pooling over channels needs their number to be a multiple of the "
                                                "window's size");
    if (channels >= 0) channels /= w->channel_size;
  }
  *out = tfc_image_shape(w, x->dims[0], size, channels);
  return NULL;
}

tfc_status tfc_pool_describe(struct tfc_kernel_ctx *ctx, const struct tfc_shape *x, tfc_dtype dtype, struct tfc_pool *p,
                             struct tfc_shape *out_y) {
  *p = (struct tfc_pool){.w = *(const struct tfc_window *)ctx->state, .dtype = dtype};
  if (sizes_given(ctx->node))
    TFC_RETURN_IF_ERROR(tfc_window_given(&p->w, ctx->inputs[ctx->input_count - 2], ctx->inputs[ctx->input_count - 1]));
  TFC_KERNEL_CHECK(x->rank == p->w.spatial + 2, "tensor_in must be %d-dimensional: %s", p->w.spatial + 2,
                   tfc_shape_show(x, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(output_shape(&p->w, x, p->before, out_y));
  tfc_image_of(&p->w, x, &p->x);
  tfc_image_of(&p->w, out_y, &p->y);
  return NULL;
}

#define LOWEST                                                                                                         \
  _Generic((S *)0, float * : -FLT_MAX, double * : -DBL_MAX, ops_f16 * : -65504.0f, ops_b16 * : -0x1.FEp127f,         \
           int8_t * : INT8_MIN, int16_t * : INT16_MIN, int32_t * : INT32_MIN, int64_t * : INT64_MIN, default : 0)

// Output positions [begin, end), all channels; with constant strides the loops over channels are vectors.
static inline __attribute__((always_inline)) void pool_by_strides(const struct tfc_pool *p, int64_t begin, int64_t end,
                                                                  int64_t xs, int64_t ys, int64_t deep) {
  for (int64_t row = begin; row < end; row++) {
    int64_t n, at[3], lo[3], hi[3];
    tfc_pool_position(p, row, &n, at);
    tfc_pool_window(p, at, lo, hi);
    const int64_t to = tfc_pool_place(&p->y, n, at);
    const int64_t cells = (hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]);
    OPS_SWITCH(OPS_REALS, p->dtype, {
      const S *x = p->in;
      S *y = p->out;
      const C lowest = LOWEST;
      for (int64_t first = 0; first < p->y.channels; first += TFC_POOL_CHANNELS) {
        const int64_t count = p->y.channels - first < TFC_POOL_CHANNELS ? p->y.channels - first : TFC_POOL_CHANNELS;
        C best[TFC_POOL_CHANNELS];
        for (int64_t c = 0; c < count; c++) best[c] = p->average ? (C)0 : lowest;
        TFC_POOL_EACH_CELL(cell, lo, hi) {
          const S *from = x + tfc_pool_place(&p->x, n, cell);
          for (int64_t d = 0; d < deep; d++) {
            if (p->average)
              for (int64_t c = 0; c < count; c++) best[c] = (C)(best[c] + OPS_GET(from[(first + c) * xs]));
            else
              for (int64_t c = 0; c < count; c++) {
                const C v = OPS_GET(from[((first + c) * deep + d) * xs]);
                best[c] = v > best[c] ? v : best[c];
              }
          }
        }
        if (p->average)
          for (int64_t c = 0; c < count; c++) OPS_PUT(y[to + (first + c) * ys], best[c] / (C)cells);
        else
          for (int64_t c = 0; c < count; c++) OPS_PUT(y[to + (first + c) * ys], best[c]);
      }
    })
  }
}

OPS_CLONES static void pool_rows(void *arg, int64_t begin, int64_t end) { // channels last, not pooled over
  pool_by_strides(arg, begin, end, 1, 1, 1);
}
// Maxima of float32 with channels last. The maxima of up to four vectors of channels stay in registers while the cells
// of a window are read. The vectors have eight lanes, because compilers compare larger ones one element at a time.
typedef float eight __attribute__((vector_size(32), aligned(4)));
typedef int32_t masks __attribute__((vector_size(32)));
enum { LANES = 8, MOST_VECTORS = 4 };

static inline __attribute__((always_inline)) void max_of_cells(int vectors, const float *from, const int64_t count[3],
                                                               const int64_t stride[3], float *to) {
  eight best[MOST_VECTORS];
  for (int v = 0; v < vectors; v++) best[v] = (eight){0} - FLT_MAX;
  for (int64_t i = 0; i < count[0]; i++)
    for (int64_t j = 0; j < count[1]; j++) {
      const float *at = from + i * stride[0] + j * stride[1];
      for (int64_t k = 0; k < count[2]; k++, at += stride[2])
        for (int v = 0; v < vectors; v++) {
          const eight x = *(const eight *)(at + v * LANES);
          const masks larger = x > best[v];
          best[v] = (eight)(((masks)x & larger) | ((masks)best[v] & ~larger));
        }
    }
  for (int v = 0; v < vectors; v++) *(eight *)(to + v * LANES) = best[v];
}

OPS_CLONES static void max_rows(void *arg, int64_t begin, int64_t end) {
  const struct tfc_pool *p = arg;
  int64_t n, at[3];
  tfc_pool_position(p, begin, &n, at);
  for (int64_t row = begin; row < end; row++) {
    int64_t lo[3], hi[3], count[3], c = 0;
    tfc_pool_window(p, at, lo, hi);
    for (int k = 0; k < 3; k++) count[k] = hi[k] - lo[k];
    const float *from = (const float *)p->in + tfc_pool_place(&p->x, n, lo);
    float *to = (float *)p->out + tfc_pool_place(&p->y, n, at);
    for (; c + MOST_VECTORS * LANES <= p->y.channels; c += MOST_VECTORS * LANES)
      max_of_cells(MOST_VECTORS, from + c, count, p->x.stride, to + c);
    for (; c + LANES <= p->y.channels; c += LANES) max_of_cells(1, from + c, count, p->x.stride, to + c);
    tfc_pool_next(p, &n, at);
  }
}

static void pool_rows_anyhow(void *arg, int64_t begin, int64_t end) {
  const struct tfc_pool *p = arg;
  pool_by_strides(p, begin, end, p->x.channel_stride, p->y.channel_stride, p->w.channel_size);
}

tfc_status tfc_pool_of_node(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *x,
                            struct tfc_pool *out, struct tfc_shape *out_y) {
  struct tfc_pool p = {.dtype = TFC_FLOAT};
  TFC_RETURN_IF_ERROR(tfc_window_read(g, n, tfc_pool_rank(n), &p.w));
  if (x->rank != p.w.spatial + 2) return tfc_status_make(TFC_INVALID_ARGUMENT, "an image of another rank");
  TFC_RETURN_IF_ERROR(output_shape(&p.w, x, p.before, out_y));
  tfc_image_of(&p.w, x, &p.x);
  tfc_image_of(&p.w, out_y, &p.y);
  *out = p;
  return NULL;
}

void tfc_pool_maxima(struct tfc_pool *p, int64_t begin, int64_t end) {
  (p->y.channels % LANES ? pool_rows : max_rows)(p, begin, end);
}

static tfc_status pool(struct tfc_kernel_ctx *ctx) {
  struct tfc_pool p;
  struct tfc_shape ys;
  struct tfc_tensor *y = NULL;
  const struct tfc_tensor *x = ctx->inputs[0];
  TFC_RETURN_IF_ERROR(tfc_pool_describe(ctx, &x->shape, x->dtype, &p, &ys));
  TFC_KERNEL_CHECK(!tfc_str_starts(ctx->node->op, "Avg") || p.w.channel_size == 1, "average pooling over channels");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &ys, &y));
  if (tfc_tensor_elements(y) == 0) return NULL;
  p.in = x->data;
  p.out = y->data;
  p.average = tfc_str_starts(ctx->node->op, "Avg");
  int64_t rows = p.y.batch * p.y.size[0] * p.y.size[1] * p.y.size[2];
  const bool plain = p.x.channel_stride == 1 && p.y.channel_stride == 1 && p.w.channel_size == 1;
  const bool vectors = plain && !p.average && x->dtype == TFC_FLOAT && p.y.channels % LANES == 0;
  tfc_kernel_parallel_for(ctx, rows, p.y.channels >= 1024 ? 8 : 8192 / (p.y.channels + 1) + 1,
                          vectors ? max_rows
                          : plain ? pool_rows
                                  : pool_rows_anyhow,
                          &p);
  return NULL;
}

// --- MaxPoolWithArgmax -------------------------------------------------------------------------------------------
void tfc_pool_argmax(void *arg, int64_t begin, int64_t end) {
  const struct tfc_pool *p = arg;
  const int64_t per_image = p->y.size[0] * p->y.size[1] * p->y.size[2];
  for (int64_t row = begin * per_image; row < end * per_image; row++) {
    int64_t n, at[3], lo[3], hi[3];
    tfc_pool_position(p, row, &n, at);
    tfc_pool_window(p, at, lo, hi);
    const int64_t to = tfc_pool_place(&p->y, n, at);
    OPS_SWITCH(OPS_REALS, p->dtype, {
      const S *x = p->in;
      for (int64_t c = 0; c < p->y.channels; c++) {
        const int64_t deep = p->w.channel_size;
        int64_t best = -1;
        C max = 0;
        TFC_POOL_EACH_CELL(cell, lo, hi) for (int64_t d = 0; d < deep; d++) {
          const int64_t i = tfc_pool_place(&p->x, n, cell) + (c * deep + d) * p->x.channel_stride;
          const C v = OPS_GET(x[i]);
          if (best < 0 || v > max) best = i, max = v;
        }
        p->argmax[to + c * p->y.channel_stride] = best;
        if (p->out) OPS_PUT(((S *)p->out)[to + c * p->y.channel_stride], max);
      }
    })
  }
}

static tfc_status max_pool_with_argmax(struct tfc_kernel_ctx *ctx) {
  struct tfc_pool p;
  struct tfc_shape ys;
  struct tfc_tensor *y = NULL, *index = NULL;
  struct tfc_buffer *scratch = NULL;
  const struct tfc_tensor *x = ctx->inputs[0];
  TFC_RETURN_IF_ERROR(tfc_pool_describe(ctx, &x->shape, x->dtype, &p, &ys));
  TFC_KERNEL_CHECK(tfc_tensor_elements(x) > 0, "tensor_in must not be empty");
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin + 1];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &ys, &y));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, type, &ys, &index));
  int64_t count = tfc_tensor_elements(y);
  if (count == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)count * sizeof(int64_t), &scratch));
  p.in = x->data;
  p.out = y->data;
  p.argmax = scratch->data;
  tfc_kernel_parallel_for(ctx, p.x.batch, 1, tfc_pool_argmax, &p);
  int64_t per_image = p.x.batch_stride;
  bool batch = tfc_node_attr_bool(ctx->graph, ctx->node, "include_batch_in_index", false);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = batch ? p.argmax[i] : p.argmax[i] % per_image;
    if (type == TFC_INT32)
      ((int32_t *)index->data)[i] = (int32_t)at;
    else
      ((int64_t *)index->data)[i] = at;
  }
  tfc_buffer_release(scratch);
  return NULL;
}

// --- Shapes ------------------------------------------------------------------------------------------------------
tfc_status tfc_pool_shape(struct tfc_shape_ctx *ctx) {
  struct tfc_window w;
  struct tfc_shape x;
  int rank = tfc_pool_rank(ctx->node);
  TFC_RETURN_IF_ERROR(tfc_window_read(ctx->graph, ctx->node, rank, &w));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, rank, &x));
  if (sizes_given(ctx->node)) {
    const uint32_t n = ctx->node->input_count;
    for (uint32_t i = n - 2; i < n; i++) {
      struct tfc_shape s;
      TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, 1, &s));
      TFC_RETURN_IF_ERROR(tfc_dim_merge(s.dims[0], rank, &s.dims[0]));
    }
    if (!ctx->input_values || !ctx->input_values[n - 2] || !ctx->input_values[n - 1]) return NULL;
    TFC_RETURN_IF_ERROR(tfc_window_given(&w, ctx->input_values[n - 2], ctx->input_values[n - 1]));
  }
  const int64_t channels = x.dims[tfc_window_channel_axis(&w)];
  if (rank == 4 && tfc_str_starts(ctx->node->op, "Max") && w.padding != TFC_PADDING_SAME && channels >= 0 &&
      channels < w.channel_size) // for these pools only, TensorFlow requires that the window fits over the channels too
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Negative dimension size caused by subtracting %lld from %lld",
                           (long long)w.channel_size, (long long)channels);
  TFC_RETURN_IF_ERROR(output_shape(&w, &x, NULL, &ctx->outputs[0]));
  if (ctx->node->output_count > 1) ctx->outputs[1] = ctx->outputs[0];
  return NULL;
}

// --- Gradients ---------------------------------------------------------------------------------------------------
#define COPIED "ksize strides padding explicit_paddings data_format"
#define GRADIENTS(name, D)                                                                                             \
  static tfc_status grad_of_max_pool##name(struct tfc_grad_ctx *c) {                                                   \
    c->grad_inputs[0] =                                                                                                \
        grad_node(c, "MaxPool" D "Grad", TFC_OUTPUTS(grad_in(c, 0), grad_out(c, 0), c->grad_outputs[0]), COPIED);      \
    return grad_status(c);                                                                                             \
  }                                                                                                                    \
  static tfc_status grad_of_avg_pool##name(struct tfc_grad_ctx *c) {                                                   \
    c->grad_inputs[0] =                                                                                                \
        grad_node(c, "AvgPool" D "Grad", TFC_OUTPUTS(grad_shape_of_input(c, 0), c->grad_outputs[0]), COPIED);          \
    return grad_status(c);                                                                                             \
  }
GRADIENTS(, "")
GRADIENTS(3d, "3D")
static tfc_status grad_of_with_argmax(struct tfc_grad_ctx *c) {
  c->grad_inputs[0] =
      grad_node(c, "MaxPoolGradWithArgmax", TFC_OUTPUTS(grad_in(c, 0), c->grad_outputs[0], grad_out(c, 1)),
                "ksize strides padding include_batch_in_index");
  return grad_status(c);
}
static tfc_status grad_of_max_pool_given(struct tfc_grad_ctx *c) {
  c->grad_inputs[0] = grad_node(
      c, "MaxPoolGradV2", TFC_OUTPUTS(grad_in(c, 0), grad_out(c, 0), c->grad_outputs[0], grad_in(c, 1), grad_in(c, 2)),
      "padding data_format");
  return grad_status(c);
}

void tfc_pool_cost_given(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                         const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  int64_t count = tfc_shape_elements(n->input_count > 3 ? &inputs[1] : &outputs[0]);
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
  out->flops = count > 0 ? 4 * (double)count : 0;
}
void tfc_pool_cost(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                   const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  const struct tfc_attr *k = tfc_node_attr(g, n, "ksize");
  int64_t count = tfc_shape_elements(n->input_count > 1 ? &inputs[n->input_count - 1] : &outputs[0]);
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
  out->flops = count > 0 ? (double)count : 0;
  for (uint32_t i = 0; k && k->kind == TFC_ATTR_LIST_INT && i < k->count; i++) out->flops *= (double)k->ints[i];
}

#define POOL(types_, grad_)                                                                                            \
  .images = {.inputs = 1, .outputs = 1}, .types = types_, .shape = tfc_pool_shape, .gradient = grad_,                  \
  .cost = tfc_pool_cost, .prepare = tfc_pool_prepare, .kernel = pool
#define SAMPLES                                                                                                        \
  "float[2,5,5,3] {ksize=[1,2,2,1], strides=[1,2,2,1], padding='SAME'}; "                                              \
  "float[1,6,7,2] {ksize=[1,3,2,1], strides=[1,1,2,1], padding='VALID'}"
#define SAMPLES_3D "float[2,4,5,5,3] {ksize=[1,2,2,2,1], strides=[1,2,2,2,1], padding='SAME'}"
static const struct tfc_op_def nn_pool_rows[] = {
    {.name = "MaxPool",
     .plan_trait = TFC_PLAN_MAXIMA,
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float, ksize: "
              "list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID', 'EXPLICIT'}, explicit_paddings: "
              "list(int) = [], data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     POOL(OPS_BITS(OPS_REALS), grad_of_max_pool),
     .host = {"T", TFC_INT32_BIT},
     .samples = SAMPLES},
    {.name = "AvgPool",
     .inputs = "value: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID'}, data_format: {'NHWC', "
              "'NCHW'} = 'NHWC', T: {half, bfloat16, float, double}",
     POOL(OPS_BITS(OPS_FLOATS), grad_of_avg_pool),
     .samples = SAMPLES},
    {.name = "MaxPool3D",
     .plan_trait = TFC_PLAN_MAXIMA,
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 5, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, data_format: {'NDHWC', "
              "'NCDHW'} = 'NDHWC', T: {half, bfloat16, float}",
     POOL(OPS_BITS(OPS_FLOATS), grad_of_max_pool3d),
     .samples = SAMPLES_3D},
    {.name = "AvgPool3D",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 5, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, data_format: {'NDHWC', "
              "'NCDHW'} = 'NDHWC', T: {half, bfloat16, float, double}",
     POOL(OPS_BITS(OPS_FLOATS), grad_of_avg_pool3d),
     .samples = SAMPLES_3D},
    {.name = "MaxPoolWithArgmax",
     .inputs = "input: T",
     .outputs = "output: T, argmax: Targmax",
     .attrs = "ksize: list(int) >= 4, strides: list(int) >= 4, Targmax: {int32, int64} = int64, padding: {'SAME', "
              "'VALID'}, include_batch_in_index: bool = false, T: {float, double, int32, uint8, int16, int8, int64, "
              "bfloat16, uint16, half, uint32, uint64}",
     .types = 0,
     .host = {"T", TFC_INT32_BIT},
     .shape = tfc_pool_shape,
     .gradient = grad_of_with_argmax,
     .cost = tfc_pool_cost,
     .prepare = tfc_pool_prepare,
     .kernel = max_pool_with_argmax},
    {.name = "MaxPoolV2",
     .inputs = "input: T, ksize: int32, strides: int32",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float, padding: "
              "{'SAME', 'VALID'}, data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     .types = OPS_BITS(OPS_REALS),
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 6,
     .shape = tfc_pool_shape,
     .gradient = grad_of_max_pool_given,
     .cost = tfc_pool_cost_given,
     .prepare = tfc_pool_prepare,
     .kernel = pool,
     .samples = "float[2,5,5,3], int32[4]=[1,2,2,1], int32[4]=[1,2,2,1] {padding='SAME'}"},
};
TFC_REGISTER_OPS(nn_pool_rows);
