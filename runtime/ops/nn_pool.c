// Maximum and average pooling of two and three dimensions, and their gradients.
//
// Cells in the padding do not count: an average is over the cells inside the image. Of equal maxima, the first one of
// the window gets the gradient; in three dimensions, each of them does. A maximum begins with the least finite number
// and takes what is greater, so NaN is ignored.
#include <float.h>

#include "runtime/ops/nn_window.h"

struct pool {
  struct tfc_image x, y;
  struct tfc_window w;
  int64_t before[3];
  tfc_dtype dtype;
  const void *in, *grad;
  void *out;
  int64_t *argmax;
  bool average;
};

static int rank_of(const struct tfc_node *n) {
  for (size_t i = 0; i + 1 < n->op.size; i++)
    if (n->op.data[i] == '3' && n->op.data[i + 1] == 'D') return 5;
  return 4;
}

// Whether window and strides are the last two inputs instead of attributes.
static bool sizes_given(const struct tfc_node *n) {
  return tfc_str_ends(n->op, "V2");
}

static tfc_status pool_prepare(struct tfc_prepare_ctx *ctx) {
  struct tfc_window *w = TFC_ARENA_NEW(ctx->arena, struct tfc_window);
  if (!w) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  ctx->state = w;
  return tfc_window_read(ctx->graph, ctx->node, rank_of(ctx->node), w);
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

static tfc_status describe(struct tfc_kernel_ctx *ctx, const struct tfc_shape *x, tfc_dtype dtype, struct pool *p,
                           struct tfc_shape *out_y) {
  *p = (struct pool){.w = *(const struct tfc_window *)ctx->state, .dtype = dtype};
  if (sizes_given(ctx->node))
    TFC_RETURN_IF_ERROR(tfc_window_given(&p->w, ctx->inputs[ctx->input_count - 2], ctx->inputs[ctx->input_count - 1]));
  TFC_KERNEL_CHECK(x->rank == p->w.spatial + 2, "tensor_in must be %d-dimensional: %s", p->w.spatial + 2,
                   tfc_shape_show(x, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(output_shape(&p->w, x, p->before, out_y));
  tfc_image_of(&p->w, x, &p->x);
  tfc_image_of(&p->w, out_y, &p->y);
  return NULL;
}

// Finds the window of output position `at`: cells [lo, hi) of the image in each dimension.
static void window_at(const struct pool *p, const int64_t at[3], int64_t lo[3], int64_t hi[3]) {
  for (int k = 0; k < 3; k++) {
    lo[k] = at[k] * p->w.stride[k] - p->before[k];
    hi[k] = lo[k] + p->w.size[k] < p->x.size[k] ? lo[k] + p->w.size[k] : p->x.size[k];
    if (lo[k] < 0) lo[k] = 0;
  }
}
static void position(const struct pool *p, int64_t row, int64_t *n, int64_t at[3]) {
  for (int k = 2; k >= 0; k--) at[k] = row % p->y.size[k], row /= p->y.size[k];
  *n = row;
}
static int64_t place(const struct tfc_image *im, int64_t n, const int64_t at[3]) {
  return n * im->batch_stride + at[0] * im->stride[0] + at[1] * im->stride[1] + at[2] * im->stride[2];
}
#define EACH_CELL(at, lo, hi)                                                                                          \
  for (int64_t at[3] = {lo[0], 0, 0}; at[0] < hi[0]; at[0]++)                                                          \
    for (at[1] = lo[1]; at[1] < hi[1]; at[1]++)                                                                        \
      for (at[2] = lo[2]; at[2] < hi[2]; at[2]++)

enum { CHANNELS = 256 };

#define LOWEST                                                                                                         \
  _Generic((S *)0, float * : -FLT_MAX, double * : -DBL_MAX, ops_f16 * : -65504.0f, ops_b16 * : -0x1.FEp127f,         \
           int8_t * : INT8_MIN, int16_t * : INT16_MIN, int32_t * : INT32_MIN, int64_t * : INT64_MIN, default : 0)

// Output positions [begin, end), all channels; with constant strides the loops over channels are vectors.
static inline __attribute__((always_inline)) void pool_by_strides(const struct pool *p, int64_t begin, int64_t end,
                                                                  int64_t xs, int64_t ys, int64_t deep) {
  for (int64_t row = begin; row < end; row++) {
    int64_t n, at[3], lo[3], hi[3];
    position(p, row, &n, at);
    window_at(p, at, lo, hi);
    const int64_t to = place(&p->y, n, at);
    const int64_t cells = (hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]);
    OPS_SWITCH(OPS_REALS, p->dtype, {
      const S *x = p->in;
      S *y = p->out;
      const C lowest = LOWEST;
      for (int64_t first = 0; first < p->y.channels; first += CHANNELS) {
        const int64_t count = p->y.channels - first < CHANNELS ? p->y.channels - first : CHANNELS;
        C best[CHANNELS];
        for (int64_t c = 0; c < count; c++) best[c] = p->average ? (C)0 : lowest;
        EACH_CELL(cell, lo, hi) {
          const S *from = x + place(&p->x, n, cell);
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
static void pool_rows_anyhow(void *arg, int64_t begin, int64_t end) {
  const struct pool *p = arg;
  pool_by_strides(p, begin, end, p->x.channel_stride, p->y.channel_stride, p->w.channel_size);
}

static tfc_status pool(struct tfc_kernel_ctx *ctx) {
  struct pool p;
  struct tfc_shape ys;
  struct tfc_tensor *y = NULL;
  const struct tfc_tensor *x = ctx->inputs[0];
  TFC_RETURN_IF_ERROR(describe(ctx, &x->shape, x->dtype, &p, &ys));
  TFC_KERNEL_CHECK(!tfc_str_starts(ctx->node->op, "Avg") || p.w.channel_size == 1, "average pooling over channels");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &ys, &y));
  if (tfc_tensor_elements(y) == 0) return NULL;
  p.in = x->data;
  p.out = y->data;
  p.average = tfc_str_starts(ctx->node->op, "Avg");
  int64_t rows = p.y.batch * p.y.size[0] * p.y.size[1] * p.y.size[2];
  const bool plain = p.x.channel_stride == 1 && p.y.channel_stride == 1 && p.w.channel_size == 1;
  tfc_kernel_parallel_for(ctx, rows, p.y.channels >= 1024 ? 8 : 8192 / (p.y.channels + 1) + 1,
                          plain ? pool_rows : pool_rows_anyhow, &p);
  return NULL;
}

// --- MaxPoolWithArgmax -------------------------------------------------------------------------------------------
// Finds the index of each maximum, with channels last, within its image or within the batch; for images [begin, end).
static void argmax_images(void *arg, int64_t begin, int64_t end) {
  const struct pool *p = arg;
  const int64_t per_image = p->y.size[0] * p->y.size[1] * p->y.size[2];
  for (int64_t row = begin * per_image; row < end * per_image; row++) {
    int64_t n, at[3], lo[3], hi[3];
    position(p, row, &n, at);
    window_at(p, at, lo, hi);
    const int64_t to = place(&p->y, n, at);
    OPS_SWITCH(OPS_REALS, p->dtype, {
      const S *x = p->in;
      for (int64_t c = 0; c < p->y.channels; c++) {
        const int64_t deep = p->w.channel_size;
        int64_t best = -1;
        C max = 0;
        EACH_CELL(cell, lo, hi) for (int64_t d = 0; d < deep; d++) {
          const int64_t i = place(&p->x, n, cell) + (c * deep + d) * p->x.channel_stride;
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
  struct pool p;
  struct tfc_shape ys;
  struct tfc_tensor *y = NULL, *index = NULL;
  struct tfc_buffer *scratch = NULL;
  const struct tfc_tensor *x = ctx->inputs[0];
  TFC_RETURN_IF_ERROR(describe(ctx, &x->shape, x->dtype, &p, &ys));
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
  tfc_kernel_parallel_for(ctx, p.x.batch, 1, argmax_images, &p);
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

// --- Kernels of the gradient ops ---------------------------------------------------------------------------------
struct max_grad {
  struct pool pool;
  const void *y, *dy;
  void *dx;
  bool inverse; // MaxPoolGradGrad: picks the gradient of the image at each maximum
};
// For images [begin, end): gives the output's gradient to the cells whose value is near orig_output's, as in
// TensorFlow. `inverse`: gives the image's gradient at the first equal cell to the output; 0 if no cell is equal (NaN).
static void match_images(void *arg, int64_t begin, int64_t end) {
  const struct max_grad *m = arg;
  const struct pool *p = &m->pool;
  const int64_t per_image = p->y.size[0] * p->y.size[1] * p->y.size[2], deep = p->w.channel_size;
  OPS_SWITCH(OPS_REALS, p->dtype, {
    const S *x = p->in, *y = m->y, *dy = m->dy;
    S *dx = m->dx;
    const int64_t size = m->inverse ? p->y.batch_stride : p->x.batch_stride;
    S step;
    OPS_PUT(step, (C)1e-5f);
    const double near = (double)OPS_GET(step);
    memset(dx + begin * size, 0, (size_t)((end - begin) * size) * sizeof(S));
    for (int64_t row = begin * per_image; row < end * per_image; row++) {
      int64_t n, at[3], lo[3], hi[3];
      position(p, row, &n, at);
      window_at(p, at, lo, hi);
      for (int64_t c = 0; c < p->y.channels; c++) {
        const int64_t to = place(&p->y, n, at) + c * p->y.channel_stride;
        const C value = OPS_GET(y[to]);
        bool found = false;
        EACH_CELL(cell, lo, hi) for (int64_t d = 0; d < deep; d++) {
          const int64_t i = place(&p->x, n, cell) + (c * deep + d) * p->x.channel_stride;
          if (m->inverse) {
            if (!found && OPS_GET(x[i]) == value) dx[to] = dy[i], found = true;
            continue;
          }
          S apart;
          OPS_PUT(apart, OPS_GET(x[i]) - value);
          if (fabs((double)OPS_GET(apart)) < near) OPS_PUT(dx[i], OPS_GET(dx[i]) + OPS_GET(dy[to]));
        }
      }
    }
  })
}
// As the function above, in float with channels last: handles all channels of a window at once. Output positions
// [begin, end).
static inline __attribute__((always_inline)) void match_positions(const struct max_grad *m, int64_t begin,
                                                                  int64_t end) {
  const struct pool *p = &m->pool;
  for (int64_t row = begin; row < end; row++) {
    int64_t n, at[3], lo[3], hi[3];
    position(p, row, &n, at);
    window_at(p, at, lo, hi);
    const float *y = (const float *)m->y + place(&p->y, n, at), *dy = (const float *)m->dy + place(&p->y, n, at);
    EACH_CELL(cell, lo, hi) {
      const float *x = (const float *)p->in + place(&p->x, n, cell);
      float *dx = (float *)m->dx + place(&p->x, n, cell);
      for (int64_t c = 0; c < p->y.channels; c++) {
        const float old = dx[c], sum = old + dy[c];
        dx[c] = fabsf(x[c] - y[c]) < 1e-5f ? sum : old;
      }
    }
  }
}
OPS_CLONES static void match_channels(void *arg, int64_t begin, int64_t end) { // images
  const struct max_grad *m = arg;
  const struct pool *p = &m->pool;
  const int64_t rows = p->y.size[0] * p->y.size[1] * p->y.size[2];
  memset((float *)m->dx + begin * p->x.batch_stride, 0, (size_t)((end - begin) * p->x.batch_stride) * sizeof(float));
  match_positions(m, begin * rows, end * rows);
}

// Images [begin, end): each maximum's place gets the output's gradient.
static void route_images(void *arg, int64_t begin, int64_t end) {
  struct max_grad *m = arg;
  struct pool *p = &m->pool;
  argmax_images(p, begin, end);
  const int64_t out_image = p->y.batch_stride, in_image = p->x.batch_stride;
  OPS_SWITCH(OPS_REALS, p->dtype, {
    const S *dy = m->dy;
    S *dx = m->dx;
    memset(dx + begin * in_image, 0, (size_t)((end - begin) * in_image) * sizeof(S));
    for (int64_t i = begin * out_image; i < end * out_image; i++)
      if (p->argmax[i] >= 0) OPS_PUT(dx[p->argmax[i]], OPS_GET(dx[p->argmax[i]]) + OPS_GET(dy[i]));
  })
}

// As route_positions, for 8 channels of one window of float32, which stay in registers. The window's cells are at
// `cells`, elements of x; `y` is the place of the channels in y.
enum { MOST_CELLS = 64 };
typedef float eight __attribute__((vector_size(8 * sizeof(float)), aligned(4)));
typedef int32_t eight_masks __attribute__((vector_size(8 * sizeof(int32_t))));
static inline __attribute__((always_inline)) void route_eight(const struct max_grad *m, const int64_t *cells,
                                                              int32_t count, int64_t channel, int64_t y) {
  const float *x = (const float *)m->pool.in + channel;
  float *dx = (float *)m->dx + channel;
  eight best = *(const eight *)(x + cells[0]);
  eight_masks where = {0};
  for (int32_t k = 1; k < count; k++) {
    const eight v = *(const eight *)(x + cells[k]);
    const eight_masks larger = v > best;
    best = (eight)(((eight_masks)v & larger) | ((eight_masks)best & ~larger));
    where = ((k - (eight_masks){0}) & larger) | (where & ~larger);
  }
  const eight dy = *(const eight *)((const float *)m->dy + y);
  for (int32_t k = 0; k < count; k++) {
    eight *to = (eight *)(dx + cells[k]);
    const eight_masks here = where == k;
    *to = (eight)(((eight_masks)(*to + dy) & here) | ((eight_masks)*to & ~here));
  }
}

// Computes the first channels of a window by vectors, and returns how many.
static inline __attribute__((always_inline)) int64_t route_eights(const struct max_grad *m, int64_t n,
                                                                  const int64_t lo[3], const int64_t hi[3], int64_t y) {
  const struct pool *p = &m->pool;
  int64_t cells[MOST_CELLS], channel = 0;
  int32_t count = 0;
  const int64_t all = (hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]);
  if (p->dtype != TFC_FLOAT || all < 1 || all > MOST_CELLS) return 0;
  EACH_CELL(cell, lo, hi) cells[count++] = place(&p->x, n, cell);
  if (!count) return 0; // the window lies in the padding: two of its dimensions have negative sizes
  for (; channel + 8 <= p->y.channels; channel += 8) route_eight(m, cells, count, channel, y + channel);
  return channel;
}

// Channels last: all channels of a window at once. Finds each maximum's cell in the window; then every cell adds its
// gradients, in the order of route_images, so that the sums are the same to the bit. Output positions [begin, end).
static inline __attribute__((always_inline)) void route_positions(const struct max_grad *m, int64_t begin,
                                                                  int64_t end) {
  const struct pool *p = &m->pool;
  OPS_SWITCH(OPS_FLOATS, p->dtype, {
    for (int64_t row = begin; row < end; row++) {
      int64_t n, at[3], lo[3], hi[3];
      position(p, row, &n, at);
      window_at(p, at, lo, hi);
      const int64_t to = place(&p->y, n, at);
      for (int64_t first = route_eights(m, n, lo, hi, to); first < p->y.channels; first += CHANNELS) {
        const int64_t count = p->y.channels - first < CHANNELS ? p->y.channels - first : CHANNELS;
        const S *dy = (const S *)m->dy + to + first;
        C best[CHANNELS];
        int32_t where[CHANNELS], k = 0;
        EACH_CELL(cell, lo, hi) {
          const S *x = (const S *)p->in + place(&p->x, n, cell) + first;
          if (k == 0)
            for (int64_t c = 0; c < count; c++) best[c] = OPS_GET(x[c]), where[c] = 0;
          else
            for (int64_t c = 0; c < count; c++) {
              const C v = OPS_GET(x[c]);
              where[c] = v > best[c] ? k : where[c];
              best[c] = v > best[c] ? v : best[c];
            }
          k++;
        }
        k = 0;
        EACH_CELL(cell, lo, hi) {
          S *dx = (S *)m->dx + place(&p->x, n, cell) + first;
          for (int64_t c = 0; c < count; c++) {
            const C old = OPS_GET(dx[c]), sum = old + OPS_GET(dy[c]);
            OPS_PUT(dx[c], where[c] == k ? sum : old);
          }
          k++;
        }
      }
    }
  })
}
static void clear_images(const struct max_grad *m, int64_t first, int64_t count) { // elements of dx
  const size_t size = tfc_dtype_size(m->pool.dtype);
  memset((char *)m->dx + (size_t)first * size, 0, (size_t)count * size);
}
OPS_CLONES static void route_channels(void *arg, int64_t begin, int64_t end) { // images
  const struct max_grad *m = arg;
  const struct pool *p = &m->pool;
  const int64_t rows = p->y.size[1] * p->y.size[2];
  clear_images(m, begin * p->x.batch_stride, (end - begin) * p->x.batch_stride);
  route_positions(m, begin * rows, end * rows);
}
// For windows that do not overlap. Rows of windows are independent then: row `i` handles the lines of the image up to
// those of the next row.
OPS_CLONES static void route_lines(void *arg, int64_t begin, int64_t end) {
  const struct max_grad *m = arg;
  const struct pool *p = &m->pool;
  for (int64_t i = begin; i < end; i++) {
    const int64_t n = i / p->y.size[1], y = i % p->y.size[1];
    int64_t first = y * p->w.stride[1] - p->before[1], last = first + p->w.stride[1];
    if (first < 0 || y == 0) first = 0;
    if (last > p->x.size[1] || y + 1 == p->y.size[1]) last = p->x.size[1];
    if (last < first) last = first; // a window in the padding
    clear_images(m, n * p->x.batch_stride + first * p->x.stride[1], (last - first) * p->x.stride[1]);
    route_positions(m, i * p->y.size[2], (i + 1) * p->y.size[2]);
  }
}

// Inputs: (orig_input, orig_output, grad).
static tfc_status max_pool_gradient(struct tfc_kernel_ctx *ctx, bool inverse) {
  struct max_grad m = {.inverse = inverse};
  struct tfc_shape ys;
  struct tfc_tensor *out = NULL;
  struct tfc_buffer *scratch = NULL;
  const struct tfc_tensor *x = ctx->inputs[0], *y = ctx->inputs[1], *g = ctx->inputs[2];
  TFC_RETURN_IF_ERROR(describe(ctx, &x->shape, x->dtype, &m.pool, &ys));
  TFC_KERNEL_CHECK(tfc_shape_equal(&ys, &y->shape), "Expected orig_output shape to be %s, but got %s",
                   tfc_shape_show(&ys, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&y->shape, (char[TFC_SHAPE_TEXT]){0}));
  const struct tfc_shape *gs = inverse ? &x->shape : &ys;
  TFC_KERNEL_CHECK(tfc_shape_equal(gs, &g->shape), "Expected grad shape to be %s, but got %s",
                   tfc_shape_show(gs, (char[TFC_SHAPE_TEXT]){0}), tfc_shape_show(&g->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, inverse ? &ys : &x->shape, &out));
  if (tfc_tensor_elements(out) == 0) return NULL;
  m.pool.in = x->data;
  m.y = y->data;
  m.dy = g->data;
  m.dx = out->data;
  if (inverse || m.pool.w.spatial == 3) {
    const bool last = m.pool.w.channel_size == 1 && m.pool.x.channel_stride == 1 && m.pool.y.channel_stride == 1;
    tfc_kernel_parallel_for(ctx, m.pool.x.batch, 1,
                            !inverse && last && x->dtype == TFC_FLOAT ? match_channels : match_images, &m);
    return NULL;
  }
  bool floats = x->dtype == TFC_FLOAT || x->dtype == TFC_DOUBLE || x->dtype == TFC_HALF || x->dtype == TFC_BFLOAT16;
  if (floats && m.pool.w.channel_size == 1 && m.pool.x.channel_stride == 1 && m.pool.y.channel_stride == 1) {
    if (m.pool.w.stride[1] >= m.pool.w.size[1])
      tfc_kernel_parallel_for(ctx, m.pool.x.batch * m.pool.y.size[1], 4, route_lines, &m);
    else
      tfc_kernel_parallel_for(ctx, m.pool.x.batch, 1, route_channels, &m);
    return NULL;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)tfc_shape_elements(&ys) * sizeof(int64_t) + 1, &scratch));
  m.pool.argmax = scratch->data;
  tfc_kernel_parallel_for(ctx, m.pool.x.batch, 1, route_images, &m);
  tfc_buffer_release(scratch);
  return NULL;
}
static tfc_status max_pool_grad(struct tfc_kernel_ctx *ctx) {
  return max_pool_gradient(ctx, false);
}
static tfc_status max_pool_grad_grad(struct tfc_kernel_ctx *ctx) {
  return max_pool_gradient(ctx, true);
}

// Inputs: (input, grad, argmax).
static tfc_status max_pool_grad_with_argmax(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *dx = NULL;
  const struct tfc_tensor *x = ctx->inputs[0], *g = ctx->inputs[1], *index = ctx->inputs[2];
  TFC_KERNEL_CHECK(x->shape.rank == 4, "tensor_in must be 4-dimensional");
  TFC_KERNEL_CHECK(tfc_shape_equal(&g->shape, &index->shape) && g->shape.rank == 4,
                   "grad and argmax must have one shape of 4 dimensions");
  TFC_KERNEL_CHECK(g->shape.dims[0] == x->shape.dims[0], "grad and input must have the same batch");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &dx));
  if (dx->size) memset(dx->data, 0, dx->size);
  bool batch = tfc_node_attr_bool(ctx->graph, ctx->node, "include_batch_in_index", false);
  int64_t total = tfc_tensor_elements(x), n = tfc_tensor_elements(g);
  int64_t per_in = x->shape.dims[0] ? total / x->shape.dims[0] : 0,
          per_out = g->shape.dims[0] ? n / g->shape.dims[0] : 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t at = tfc_tensor_int(index, i) + (batch ? 0 : i / per_out * per_in);
    TFC_KERNEL_CHECK(at >= 0 && at < total, "argmax %lld is outside of the input", (long long)at);
    OPS_SWITCH(OPS_REALS, x->dtype, {
      S *to = (S *)dx->data + at;
      OPS_PUT(*to, OPS_GET(*to) + OPS_GET(((const S *)g->data)[i]));
    })
  }
  return NULL;
}

// Computes averages' gradients of images [begin, end): each cell gets its share of the gradients of all windows that
// contain it.
static void average_grad_images(void *arg, int64_t begin, int64_t end) {
  const struct pool *p = arg;
  for (int64_t n = begin; n < end; n++) {
    OPS_SWITCH(OPS_FLOATS, p->dtype, {
      const S *dy = p->grad;
      S *dx = p->out;
      for (int64_t cell[3] = {0, 0, 0}; cell[0] < p->x.size[0]; cell[0]++)
        for (cell[1] = 0; cell[1] < p->x.size[1]; cell[1]++)
          for (cell[2] = 0; cell[2] < p->x.size[2]; cell[2]++) {
            int64_t lo[3], hi[3]; // output positions whose windows contain the cell
            for (int k = 0; k < 3; k++) {
              const int64_t at = cell[k] + p->before[k];
              lo[k] = at < p->w.size[k] ? 0 : (at - p->w.size[k]) / p->w.stride[k] + 1;
              hi[k] = at / p->w.stride[k] + 1 < p->y.size[k] ? at / p->w.stride[k] + 1 : p->y.size[k];
            }
            for (int64_t first = 0; first < p->x.channels; first += CHANNELS) {
              const int64_t count = p->x.channels - first < CHANNELS ? p->x.channels - first : CHANNELS;
              C sums[CHANNELS] = {0};
              EACH_CELL(at, lo, hi) {
                int64_t low[3], high[3];
                window_at(p, at, low, high);
                const C share = (C)1 / (C)((high[0] - low[0]) * (high[1] - low[1]) * (high[2] - low[2]));
                const S *from = dy + place(&p->y, n, at);
                for (int64_t c = 0; c < count; c++) sums[c] += OPS_GET(from[(first + c) * p->y.channel_stride]) * share;
              }
              S *to = dx + place(&p->x, n, cell);
              for (int64_t c = 0; c < count; c++) OPS_PUT(to[(first + c) * p->x.channel_stride], sums[c]);
            }
          }
    })
  }
}

// Inputs: (orig_input_shape, grad).
static tfc_status avg_pool_grad(struct tfc_kernel_ctx *ctx) {
  struct pool p;
  struct tfc_shape xs, ys;
  struct tfc_tensor *dx = NULL;
  const struct tfc_tensor *g = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &xs));
  TFC_RETURN_IF_ERROR(describe(ctx, &xs, g->dtype, &p, &ys));
  TFC_KERNEL_CHECK(tfc_shape_equal(&ys, &g->shape), "Expected grad shape to be %s, but got %s",
                   tfc_shape_show(&ys, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&g->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, g->dtype, &xs, &dx));
  if (tfc_tensor_elements(dx) == 0) return NULL;
  p.grad = g->data;
  p.out = dx->data;
  tfc_kernel_parallel_for(ctx, p.x.batch, 1, average_grad_images, &p);
  return NULL;
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static tfc_status shape_pool(struct tfc_shape_ctx *ctx) {
  struct tfc_window w;
  struct tfc_shape x;
  int rank = rank_of(ctx->node);
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
static tfc_status shape_average_grad(struct tfc_shape_ctx *ctx) {
  struct tfc_shape sizes = ops_described_shape(ctx, 0);
  ctx->outputs[0] = sizes.rank < 0 ? tfc_shape_unknown_of_rank(rank_of(ctx->node)) : sizes;
  return NULL;
}
static tfc_status shape_max_grad(struct tfc_shape_ctx *ctx) {
  return ops_with_rank(ctx, 0, rank_of(ctx->node), &ctx->outputs[0]);
}
// Pooling input 0, the image, gives a shape like input 1, the pooled image; the gradient in input 2 has the image's
// shape.
static tfc_status shape_max_grad_grad_given(struct tfc_shape_ctx *ctx) {
  struct tfc_shape merged;
  TFC_RETURN_IF_ERROR(shape_pool(ctx));
  TFC_RETURN_IF_ERROR(tfc_shape_merge(ctx->inputs[0], ctx->inputs[2], &merged));
  return tfc_shape_merge(ctx->inputs[1], &ctx->outputs[0], &merged);
}
static tfc_status shape_max_grad_grad(struct tfc_shape_ctx *ctx) {
  return ops_with_rank(ctx, 1, rank_of(ctx->node), &ctx->outputs[0]);
}

// --- Gradients ---------------------------------------------------------------------------------------------------
#define COPIED "ksize strides padding explicit_paddings data_format"
#define GRADIENTS(name, D)                                                                                             \
  static tfc_status grad_of_max_pool##name(struct tfc_grad_ctx *c) {                                                   \
    c->grad_inputs[0] =                                                                                                \
        grad_node(c, "MaxPool" D "Grad", TFC_OUTPUTS(grad_in(c, 0), grad_out(c, 0), c->grad_outputs[0]), COPIED);      \
    return grad_status(c);                                                                                             \
  }                                                                                                                    \
  static tfc_status grad_of_max_pool##name##_grad(struct tfc_grad_ctx *c) {                                            \
    for (uint32_t i = 0; i < 2; i++) c->grad_inputs[i] = tfc_add1(c->builder, "ZerosLike", grad_in(c, i));             \
    c->grad_inputs[2] =                                                                                                \
        grad_node(c, "MaxPool" D "GradGrad", TFC_OUTPUTS(grad_in(c, 0), grad_in(c, 1), c->grad_outputs[0]), COPIED);   \
    return grad_status(c);                                                                                             \
  }                                                                                                                    \
  static tfc_status grad_of_max_pool##name##_grad_grad(struct tfc_grad_ctx *c) {                                       \
    for (uint32_t i = 0; i < 2; i++) c->grad_inputs[i] = tfc_add1(c->builder, "ZerosLike", grad_in(c, i));             \
    c->grad_inputs[2] =                                                                                                \
        grad_node(c, "MaxPool" D "Grad", TFC_OUTPUTS(grad_in(c, 0), grad_in(c, 1), c->grad_outputs[0]), COPIED);       \
    return grad_status(c);                                                                                             \
  }                                                                                                                    \
  static tfc_status grad_of_avg_pool##name(struct tfc_grad_ctx *c) {                                                   \
    c->grad_inputs[0] =                                                                                                \
        grad_node(c, "AvgPool" D "Grad", TFC_OUTPUTS(grad_shape_of_input(c, 0), c->grad_outputs[0]), COPIED);          \
    return grad_status(c);                                                                                             \
  }                                                                                                                    \
  static tfc_status grad_of_avg_pool##name##_grad(struct tfc_grad_ctx *c) {                                            \
    c->grad_inputs[1] = grad_node(c, "AvgPool" D, TFC_OUTPUTS(c->grad_outputs[0]), COPIED);                            \
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
// Adds a gradient node whose window and strides are the forward node's inputs `first` and `first + 1`.
static struct tfc_output add_given(struct tfc_grad_ctx *c, const char *op, struct tfc_output x, struct tfc_output y,
                                   uint32_t first) {
  return grad_node(c, op, TFC_OUTPUTS(x, y, c->grad_outputs[0], grad_in(c, first), grad_in(c, first + 1)),
                   "padding data_format");
}
static tfc_status grad_of_max_pool_given(struct tfc_grad_ctx *c) {
  c->grad_inputs[0] = add_given(c, "MaxPoolGradV2", grad_in(c, 0), grad_out(c, 0), 1);
  return grad_status(c);
}
static tfc_status grad_of_max_pool_grad_given(struct tfc_grad_ctx *c) {
  for (uint32_t i = 0; i < 2; i++) c->grad_inputs[i] = tfc_add1(c->builder, "ZerosLike", grad_in(c, i));
  c->grad_inputs[2] = add_given(c, "MaxPoolGradGradV2", grad_in(c, 0), grad_in(c, 1), 3);
  return grad_status(c);
}
// Estimates the cost if the window's size is not known before the step: each output is assumed to come from 4 cells.
static void cost_pool_given(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                            const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  int64_t count = tfc_shape_elements(n->input_count > 3 ? &inputs[1] : &outputs[0]);
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
  out->flops = count > 0 ? 4 * (double)count : 0;
}
static void cost_pool(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  const struct tfc_attr *k = tfc_node_attr(g, n, "ksize");
  int64_t count = tfc_shape_elements(n->input_count > 1 ? &inputs[n->input_count - 1] : &outputs[0]);
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
  out->flops = count > 0 ? (double)count : 0;
  for (uint32_t i = 0; k && k->kind == TFC_ATTR_LIST_INT && i < k->count; i++) out->flops *= (double)k->ints[i];
}

#define POOL(types_, grad_)                                                                                            \
  .types = types_, .shape = shape_pool, .gradient = grad_, .cost = cost_pool, .prepare = pool_prepare, .kernel = pool
#define SAMPLES                                                                                                        \
  "float[2,5,5,3] {ksize=[1,2,2,1], strides=[1,2,2,1], padding='SAME'}; "                                              \
  "float[1,6,7,2] {ksize=[1,3,2,1], strides=[1,1,2,1], padding='VALID'}"
#define SAMPLES_3D "float[2,4,5,5,3] {ksize=[1,2,2,2,1], strides=[1,2,2,2,1], padding='SAME'}"
static const struct tfc_op_def nn_pool_rows[] = {
    {.name = "MaxPool",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float, ksize: "
              "list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID', 'EXPLICIT'}, explicit_paddings: "
              "list(int) = [], data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     POOL(OPS_BITS(OPS_REALS), grad_of_max_pool),
     .samples = SAMPLES},
    {.name = "AvgPool",
     .inputs = "value: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID'}, data_format: {'NHWC', "
              "'NCHW'} = 'NHWC', T: {half, bfloat16, float, double}",
     POOL(OPS_BITS(OPS_FLOATS), grad_of_avg_pool),
     .samples = SAMPLES},
    {.name = "MaxPool3D",
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
     .shape = shape_pool,
     .gradient = grad_of_with_argmax,
     .cost = cost_pool,
     .prepare = pool_prepare,
     .kernel = max_pool_with_argmax},
    {.name = "MaxPoolV2",
     .inputs = "input: T, ksize: int32, strides: int32",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float, padding: "
              "{'SAME', 'VALID'}, data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     .types = OPS_BITS(OPS_REALS),
     .host_inputs = 6,
     .shape = shape_pool,
     .gradient = grad_of_max_pool_given,
     .cost = cost_pool_given,
     .prepare = pool_prepare,
     .kernel = pool,
     .samples = "float[2,5,5,3], int32[4]=[1,2,2,1], int32[4]=[1,2,2,1] {padding='SAME'}"},
    {.name = "MaxPoolGradV2",
     .inputs = "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32",
     .outputs = "output: T",
     .attrs = "padding: {'SAME', 'VALID'}, data_format: {'NHWC', 'NCHW'} = 'NHWC', T: {float, double, int32, uint8, "
              "int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = float",
     .types = OPS_BITS(OPS_REALS),
     .host_inputs = 24,
     .shape = shape_max_grad,
     .gradient = grad_of_max_pool_grad_given,
     .cost = cost_pool_given,
     .prepare = pool_prepare,
     .kernel = max_pool_grad,
     .samples = "float[1,4,4,2], float[1,2,2,2], float[1,2,2,2], int32[4]=[1,2,2,1], int32[4]=[1,2,2,1] "
                "{padding='SAME'}"},
    {.name = "MaxPoolGradGradV2",
     .inputs = "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32",
     .outputs = "output: T",
     .attrs = "padding: {'SAME', 'VALID'}, data_format: {'NHWC', 'NCHW'} = 'NHWC', T: {float, double, int32, uint8, "
              "int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
     .types = OPS_BITS(OPS_REALS),
     .host_inputs = 24,
     .shape = shape_max_grad_grad_given,
     .cost = cost_pool_given,
     .prepare = pool_prepare,
     .kernel = max_pool_grad_grad,
     .samples = "float[1,4,4,2], float[1,2,2,2], float[1,4,4,2], int32[4]=[1,2,2,1], int32[4]=[1,2,2,1] "
                "{padding='SAME'}"},
    {.name = "MaxPoolGrad",
     .inputs = "orig_input: T, orig_output: T, grad: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID', 'EXPLICIT'}, "
              "explicit_paddings: list(int) = [], data_format: {'NHWC', 'NCHW'} = 'NHWC', T: {float, double, int32, "
              "uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = float",
     .types = OPS_BITS(OPS_REALS),
     .shape = shape_max_grad,
     .gradient = grad_of_max_pool_grad,
     .cost = cost_pool,
     .prepare = pool_prepare,
     .kernel = max_pool_grad},
    {.name = "MaxPool3DGrad",
     .inputs = "orig_input: TInput, orig_output: TInput, grad: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 5, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, data_format: {'NDHWC', "
              "'NCDHW'} = 'NDHWC', T: {half, bfloat16, float} = float, TInput: {half, bfloat16, float} = float",
     .types = OPS_BITS(OPS_FLOATS),
     .shape = shape_max_grad,
     .gradient = grad_of_max_pool3d_grad,
     .cost = cost_pool,
     .prepare = pool_prepare,
     .kernel = max_pool_grad},
    {.name = "MaxPoolGradGrad",
     .inputs = "orig_input: T, orig_output: T, grad: T",
     .outputs = "output: T",
     .attrs =
         "ksize: list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID'}, data_format: {'NHWC', 'NCHW'} = "
         "'NHWC', T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
     .types = OPS_BITS(OPS_REALS),
     .shape = shape_max_grad_grad,
     .gradient = grad_of_max_pool_grad_grad,
     .cost = cost_pool,
     .prepare = pool_prepare,
     .kernel = max_pool_grad_grad},
    {.name = "MaxPool3DGradGrad",
     .inputs = "orig_input: T, orig_output: T, grad: T",
     .outputs = "output: T",
     .attrs =
         "ksize: list(int) >= 5, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, data_format: {'NDHWC', 'NCDHW'} "
         "= 'NDHWC', T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
     .types = OPS_BITS(OPS_FLOATS),
     .shape = shape_max_grad_grad,
     .gradient = grad_of_max_pool3d_grad_grad,
     .cost = cost_pool,
     .prepare = pool_prepare,
     .kernel = max_pool_grad_grad},
    {.name = "MaxPoolGradWithArgmax",
     .inputs = "input: T, grad: T, argmax: Targmax",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID'}, include_batch_in_index: "
              "bool = false, Targmax: {int32, int64}, T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
              "uint16, half, uint32, uint64}",
     .shape = shape_max_grad,
     .cost = cost_pool,
     .prepare = pool_prepare,
     .kernel = max_pool_grad_with_argmax},
    {.name = "AvgPoolGrad",
     .inputs = "orig_input_shape: int32, grad: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID'}, data_format: {'NHWC', "
              "'NCHW'} = 'NHWC', T: {half, bfloat16, float, double}",
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 1,
     .shape = shape_average_grad,
     .gradient = grad_of_avg_pool_grad,
     .cost = cost_pool,
     .prepare = pool_prepare,
     .kernel = avg_pool_grad},
    {.name = "AvgPool3DGrad",
     .inputs = "orig_input_shape: int32, grad: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 5, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, data_format: {'NDHWC', "
              "'NCDHW'} = 'NDHWC', T: {half, bfloat16, float, double}",
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 1,
     .shape = shape_average_grad,
     .gradient = grad_of_avg_pool3d_grad,
     .cost = cost_pool,
     .prepare = pool_prepare,
     .kernel = avg_pool_grad},
};
TFC_REGISTER_OPS(nn_pool_rows);
