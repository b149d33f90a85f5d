// Gradients of pooling, and gradients of these gradients, as operations of their own.
//
// Of equal maxima, the first one of the window gets the gradient; in three dimensions, each of them does.
#include "runtime/ops/nn_pool.h"

typedef float eight __attribute__((vector_size(8 * sizeof(float)), aligned(4)));
typedef int32_t eight_masks __attribute__((vector_size(8 * sizeof(int32_t))));

struct max_grad {
  struct tfc_pool pool;
  const void *y, *dy;
  void *dx;
  bool inverse; // MaxPoolGradGrad: picks the gradient of the image at each maximum
};
// For images [begin, end): gives the output's gradient to the cells whose value is near orig_output's, as in
// TensorFlow. `inverse`: gives the image's gradient at the first equal cell to the output; 0 if no cell is equal (NaN).
static void match_images(void *arg, int64_t begin, int64_t end) {
  const struct max_grad *m = arg;
  const struct tfc_pool *p = &m->pool;
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
      tfc_pool_position(p, row, &n, at);
      tfc_pool_window(p, at, lo, hi);
      for (int64_t c = 0; c < p->y.channels; c++) {
        const int64_t to = tfc_pool_place(&p->y, n, at) + c * p->y.channel_stride;
        const C value = OPS_GET(y[to]);
        bool found = false;
        TFC_POOL_EACH_CELL(cell, lo, hi) for (int64_t d = 0; d < deep; d++) {
          const int64_t i = tfc_pool_place(&p->x, n, cell) + (c * deep + d) * p->x.channel_stride;
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
// Whether each cell of the image is in one window and in no other.
static bool is_tiled(const struct tfc_pool *p) {
  for (int k = 0; k < 3; k++)
    if (p->w.size[k] != p->w.stride[k] || p->before[k] || p->y.size[k] * p->w.stride[k] < p->x.size[k]) return false;
  return true;
}

// As match_images, in float with channels last: handles all channels of a window at once. Output positions [begin,
// end). `tiled`: each cell of dx is in one window and is written; otherwise the gradient is added to the cell.
static inline __attribute__((always_inline)) void match_positions(const struct max_grad *m, int64_t begin, int64_t end,
                                                                  bool tiled) {
  const struct tfc_pool *p = &m->pool;
  int64_t n, at[3];
  tfc_pool_position(p, begin, &n, at);
  for (int64_t row = begin; row < end; row++) {
    int64_t lo[3], hi[3];
    tfc_pool_window(p, at, lo, hi);
    const float *y = (const float *)m->y + tfc_pool_place(&p->y, n, at),
                *dy = (const float *)m->dy + tfc_pool_place(&p->y, n, at);
    TFC_POOL_EACH_CELL(cell, lo, hi) {
      const float *x = (const float *)p->in + tfc_pool_place(&p->x, n, cell);
      float *dx = (float *)m->dx + tfc_pool_place(&p->x, n, cell);
      int64_t c = 0;
      for (; c + 8 <= p->y.channels; c += 8) {
        const eight apart = *(const eight *)(x + c) - *(const eight *)(y + c),
                    old = tiled ? (eight){0} : *(eight *)(dx + c);
        const eight_masks near = (eight)((eight_masks)apart & INT32_MAX) < 1e-5f;
        const eight sum = old + *(const eight *)(dy + c);
        *(eight *)(dx + c) = (eight)(((eight_masks)sum & near) | ((eight_masks)old & ~near));
      }
      for (; c < p->y.channels; c++) {
        const float old = tiled ? 0 : dx[c], sum = old + dy[c];
        dx[c] = fabsf(x[c] - y[c]) < 1e-5f ? sum : old;
      }
    }
    tfc_pool_next(p, &n, at);
  }
}
OPS_CLONES static void match_channels(void *arg, int64_t begin, int64_t end) { // images
  const struct max_grad *m = arg;
  const struct tfc_pool *p = &m->pool;
  const int64_t rows = p->y.size[0] * p->y.size[1] * p->y.size[2];
  if (is_tiled(p)) {
    match_positions(m, begin * rows, end * rows, true);
    return;
  }
  memset((float *)m->dx + begin * p->x.batch_stride, 0, (size_t)((end - begin) * p->x.batch_stride) * sizeof(float));
  match_positions(m, begin * rows, end * rows, false);
}

// Images [begin, end): each maximum's place gets the output's gradient.
static void route_images(void *arg, int64_t begin, int64_t end) {
  struct max_grad *m = arg;
  struct tfc_pool *p = &m->pool;
  tfc_pool_argmax(p, begin, end);
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
  const struct tfc_pool *p = &m->pool;
  int64_t cells[MOST_CELLS], channel = 0;
  int32_t count = 0;
  const int64_t all = (hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]);
  if (p->dtype != TFC_FLOAT || all < 1 || all > MOST_CELLS) return 0;
  TFC_POOL_EACH_CELL(cell, lo, hi) cells[count++] = tfc_pool_place(&p->x, n, cell);
  if (!count) return 0; // the window lies in the padding: two of its dimensions have negative sizes
  for (; channel + 8 <= p->y.channels; channel += 8) route_eight(m, cells, count, channel, y + channel);
  return channel;
}

// Channels last: all channels of a window at once. Finds each maximum's cell in the window; then every cell adds its
// gradients, in the order of route_images, so that the sums are the same to the bit. Output positions [begin, end).
static inline __attribute__((always_inline)) void route_positions(const struct max_grad *m, int64_t begin,
                                                                  int64_t end) {
  const struct tfc_pool *p = &m->pool;
  int64_t n, at[3];
  tfc_pool_position(p, begin, &n, at);
  OPS_SWITCH(OPS_FLOATS, p->dtype, {
    for (int64_t row = begin; row < end; row++) {
      int64_t lo[3], hi[3];
      tfc_pool_window(p, at, lo, hi);
      const int64_t to = tfc_pool_place(&p->y, n, at);
      for (int64_t first = route_eights(m, n, lo, hi, to); first < p->y.channels; first += TFC_POOL_CHANNELS) {
        const int64_t count = p->y.channels - first < TFC_POOL_CHANNELS ? p->y.channels - first : TFC_POOL_CHANNELS;
        const S *dy = (const S *)m->dy + to + first;
        C best[TFC_POOL_CHANNELS];
        int32_t where[TFC_POOL_CHANNELS], k = 0;
        TFC_POOL_EACH_CELL(cell, lo, hi) {
          const S *x = (const S *)p->in + tfc_pool_place(&p->x, n, cell) + first;
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
        TFC_POOL_EACH_CELL(cell, lo, hi) {
          S *dx = (S *)m->dx + tfc_pool_place(&p->x, n, cell) + first;
          for (int64_t c = 0; c < count; c++) {
            const C old = OPS_GET(dx[c]), sum = old + OPS_GET(dy[c]);
            OPS_PUT(dx[c], where[c] == k ? sum : old);
          }
          k++;
        }
      }
      tfc_pool_next(p, &n, at);
    }
  })
}
static void clear_images(const struct max_grad *m, int64_t first, int64_t count) { // elements of dx
  const size_t size = tfc_dtype_size(m->pool.dtype);
  memset((char *)m->dx + (size_t)first * size, 0, (size_t)count * size);
}
OPS_CLONES static void route_channels(void *arg, int64_t begin, int64_t end) { // images
  const struct max_grad *m = arg;
  const struct tfc_pool *p = &m->pool;
  const int64_t rows = p->y.size[1] * p->y.size[2];
  clear_images(m, begin * p->x.batch_stride, (end - begin) * p->x.batch_stride);
  route_positions(m, begin * rows, end * rows);
}
// For windows that do not overlap. Rows of windows are independent then: row `i` handles the lines of the image up to
// those of the next row.
OPS_CLONES static void route_lines(void *arg, int64_t begin, int64_t end) {
  const struct max_grad *m = arg;
  const struct tfc_pool *p = &m->pool;
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
  TFC_RETURN_IF_ERROR(tfc_pool_describe(ctx, &x->shape, x->dtype, &m.pool, &ys));
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
  const struct tfc_pool *p = arg;
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
            for (int64_t first = 0; first < p->x.channels; first += TFC_POOL_CHANNELS) {
              const int64_t count =
                  p->x.channels - first < TFC_POOL_CHANNELS ? p->x.channels - first : TFC_POOL_CHANNELS;
              C sums[TFC_POOL_CHANNELS] = {0};
              TFC_POOL_EACH_CELL(at, lo, hi) {
                int64_t low[3], high[3];
                tfc_pool_window(p, at, low, high);
                const C share = (C)1 / (C)((high[0] - low[0]) * (high[1] - low[1]) * (high[2] - low[2]));
                const S *from = dy + tfc_pool_place(&p->y, n, at);
                for (int64_t c = 0; c < count; c++) sums[c] += OPS_GET(from[(first + c) * p->y.channel_stride]) * share;
              }
              S *to = dx + tfc_pool_place(&p->x, n, cell);
              for (int64_t c = 0; c < count; c++) OPS_PUT(to[(first + c) * p->x.channel_stride], sums[c]);
            }
          }
    })
  }
}

// Inputs: (orig_input_shape, grad).
static tfc_status avg_pool_grad(struct tfc_kernel_ctx *ctx) {
  struct tfc_pool p;
  struct tfc_shape xs, ys;
  struct tfc_tensor *dx = NULL;
  const struct tfc_tensor *g = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &xs));
  TFC_RETURN_IF_ERROR(tfc_pool_describe(ctx, &xs, g->dtype, &p, &ys));
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

static tfc_status shape_average_grad(struct tfc_shape_ctx *ctx) {
  struct tfc_shape sizes = ops_described_shape(ctx, 0);
  ctx->outputs[0] = sizes.rank < 0 ? tfc_shape_unknown_of_rank(tfc_pool_rank(ctx->node)) : sizes;
  return NULL;
}
static tfc_status shape_max_grad(struct tfc_shape_ctx *ctx) {
  return ops_with_rank(ctx, 0, tfc_pool_rank(ctx->node), &ctx->outputs[0]);
}
// Pooling input 0, the image, gives a shape like input 1, the pooled image; the gradient in input 2 has the image's
// shape.
static tfc_status shape_max_grad_grad_given(struct tfc_shape_ctx *ctx) {
  struct tfc_shape merged;
  TFC_RETURN_IF_ERROR(tfc_pool_shape(ctx));
  TFC_RETURN_IF_ERROR(tfc_shape_merge(ctx->inputs[0], ctx->inputs[2], &merged));
  return tfc_shape_merge(ctx->inputs[1], &ctx->outputs[0], &merged);
}
static tfc_status shape_max_grad_grad(struct tfc_shape_ctx *ctx) {
  return ops_with_rank(ctx, 1, tfc_pool_rank(ctx->node), &ctx->outputs[0]);
}

// --- Gradients ---------------------------------------------------------------------------------------------------
#define COPIED "ksize strides padding explicit_paddings data_format"
#define GRADIENTS(name, D)                                                                                             \
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
  static tfc_status grad_of_avg_pool##name##_grad(struct tfc_grad_ctx *c) {                                            \
    c->grad_inputs[1] = grad_node(c, "AvgPool" D, TFC_OUTPUTS(c->grad_outputs[0]), COPIED);                            \
    return grad_status(c);                                                                                             \
  }
GRADIENTS(, "")
GRADIENTS(3d, "3D")
// The window and the strides are the forward node's inputs 3 and 4.
static tfc_status grad_of_max_pool_grad_given(struct tfc_grad_ctx *c) {
  for (uint32_t i = 0; i < 2; i++) c->grad_inputs[i] = tfc_add1(c->builder, "ZerosLike", grad_in(c, i));
  c->grad_inputs[2] =
      grad_node(c, "MaxPoolGradGradV2",
                TFC_OUTPUTS(grad_in(c, 0), grad_in(c, 1), c->grad_outputs[0], grad_in(c, 3), grad_in(c, 4)),
                "padding data_format");
  return grad_status(c);
}

static const struct tfc_op_def nn_pool_grad_rows[] = {
    {.name = "MaxPoolGradV2",
     .inputs = "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32",
     .outputs = "output: T",
     .attrs = "padding: {'SAME', 'VALID'}, data_format: {'NHWC', 'NCHW'} = 'NHWC', T: {float, double, int32, uint8, "
              "int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = float",
     .types = OPS_BITS(OPS_REALS),
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 24,
     .shape = shape_max_grad,
     .gradient = grad_of_max_pool_grad_given,
     .cost = tfc_pool_cost_given,
     .prepare = tfc_pool_prepare,
     .kernel = max_pool_grad,
     .samples = "float[1,4,4,2], float[1,2,2,2], float[1,2,2,2], int32[4]=[1,2,2,1], int32[4]=[1,2,2,1] "
                "{padding='SAME'}"},
    {.name = "MaxPoolGradGradV2",
     .inputs = "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32",
     .outputs = "output: T",
     .attrs = "padding: {'SAME', 'VALID'}, data_format: {'NHWC', 'NCHW'} = 'NHWC', T: {float, double, int32, uint8, "
              "int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
     .types = OPS_BITS(OPS_REALS),
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 24,
     .shape = shape_max_grad_grad_given,
     .cost = tfc_pool_cost_given,
     .prepare = tfc_pool_prepare,
     .kernel = max_pool_grad_grad,
     .samples = "float[1,4,4,2], float[1,2,2,2], float[1,4,4,2], int32[4]=[1,2,2,1], int32[4]=[1,2,2,1] "
                "{padding='SAME'}"},
    {.name = "MaxPoolGrad",
     .images = {.inputs = 7, .outputs = 1},
     .inputs = "orig_input: T, orig_output: T, grad: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID', 'EXPLICIT'}, "
              "explicit_paddings: list(int) = [], data_format: {'NHWC', 'NCHW'} = 'NHWC', T: {float, double, int32, "
              "uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = float",
     .types = OPS_BITS(OPS_REALS),
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_max_grad,
     .gradient = grad_of_max_pool_grad,
     .cost = tfc_pool_cost,
     .prepare = tfc_pool_prepare,
     .kernel = max_pool_grad},
    {.name = "MaxPool3DGrad",
     .images = {.inputs = 7, .outputs = 1},
     .inputs = "orig_input: TInput, orig_output: TInput, grad: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 5, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, data_format: {'NDHWC', "
              "'NCDHW'} = 'NDHWC', T: {half, bfloat16, float} = float, TInput: {half, bfloat16, float} = float",
     .types = OPS_BITS(OPS_FLOATS),
     .shape = shape_max_grad,
     .gradient = grad_of_max_pool3d_grad,
     .cost = tfc_pool_cost,
     .prepare = tfc_pool_prepare,
     .kernel = max_pool_grad},
    {.name = "MaxPoolGradGrad",
     .inputs = "orig_input: T, orig_output: T, grad: T",
     .outputs = "output: T",
     .attrs =
         "ksize: list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID'}, data_format: {'NHWC', 'NCHW'} = "
         "'NHWC', T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
     .types = OPS_BITS(OPS_REALS),
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_max_grad_grad,
     .gradient = grad_of_max_pool_grad_grad,
     .cost = tfc_pool_cost,
     .prepare = tfc_pool_prepare,
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
     .cost = tfc_pool_cost,
     .prepare = tfc_pool_prepare,
     .kernel = max_pool_grad_grad},
    {.name = "MaxPoolGradWithArgmax",
     .inputs = "input: T, grad: T, argmax: Targmax",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID'}, include_batch_in_index: "
              "bool = false, Targmax: {int32, int64}, T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
              "uint16, half, uint32, uint64}",
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_max_grad,
     .cost = tfc_pool_cost,
     .prepare = tfc_pool_prepare,
     .kernel = max_pool_grad_with_argmax},
    {.name = "AvgPoolGrad",
     .images = {.inputs = 2, .outputs = 1, .sizes = 1},
     .inputs = "orig_input_shape: int32, grad: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 4, strides: list(int) >= 4, padding: {'SAME', 'VALID'}, data_format: {'NHWC', "
              "'NCHW'} = 'NHWC', T: {half, bfloat16, float, double}",
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 1,
     .shape = shape_average_grad,
     .gradient = grad_of_avg_pool_grad,
     .cost = tfc_pool_cost,
     .prepare = tfc_pool_prepare,
     .kernel = avg_pool_grad},
    {.name = "AvgPool3DGrad",
     .images = {.inputs = 2, .outputs = 1, .sizes = 1},
     .inputs = "orig_input_shape: int32, grad: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int) >= 5, strides: list(int) >= 5, padding: {'SAME', 'VALID'}, data_format: {'NDHWC', "
              "'NCDHW'} = 'NDHWC', T: {half, bfloat16, float, double}",
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 1,
     .shape = shape_average_grad,
     .gradient = grad_of_avg_pool3d_grad,
     .cost = tfc_pool_cost,
     .prepare = tfc_pool_prepare,
     .kernel = avg_pool_grad},
};
TFC_REGISTER_OPS(nn_pool_grad_rows);
