// Arithmetic on quantized tensors: products and convolutions of bytes into sums of 32 bits (with the integers that
// stand for 0 taken off first, so that padding is 0), additions of biases, pools.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/base/instructions.h"
#include "runtime/ops/nn_window.h"
#include "runtime/ops/quant_common.h"
#include "runtime/ops/row.h"

// Returns the range of sums of products: a step is the product of both steps.
static struct tfc_range range_of_products(tfc_dtype ta, struct tfc_range a, tfc_dtype tb, struct tfc_range b) {
  struct tfc_quant_type qa = tfc_quant_type_of(ta), qb = tfc_quant_type_of(tb);
  float step =
      (a.high - a.low) / (float)(qa.highest - qa.lowest) * ((b.high - b.low) / (float)(qb.highest - qb.lowest));
  return (struct tfc_range){step * (float)INT32_MIN, step * (float)INT32_MAX};
}

struct product { // y [rows, columns] = (a - zero_a) [rows, depth] times (b - zero_b) [depth, columns]
  const uint8_t *a, *b;
  int32_t *y;
  int32_t zero_a, zero_b;
  int64_t columns, depth, a_row, a_step, b_row, b_step;
};
static void multiply_rows(void *arg, int64_t begin, int64_t end) {
  const struct product *p = arg;
  for (int64_t r = begin; r < end; r++) {
    uint32_t *y = (uint32_t *)p->y + r * p->columns; // unsigned: sums wrap
    memset(y, 0, (size_t)p->columns * sizeof *y);
    for (int64_t k = 0; k < p->depth; k++) {
      uint32_t a = (uint32_t)p->a[r * p->a_row + k * p->a_step] - (uint32_t)p->zero_a;
      const uint8_t *b = p->b + k * p->b_row;
      for (int64_t c = 0; c < p->columns; c++) y[c] += a * ((uint32_t)b[c * p->b_step] - (uint32_t)p->zero_b);
    }
  }
}

// --- By vectors -----------------------------------------------------------------------------------------------------
// A byte minus the zero (the integer that stands for 0) fits into 16 bits if the zero is a byte, too. Then a sum is a
// number of dot products of runs: 16-bit integers that are contiguous in both operands (processors have an instruction
// that adds products of pairs). A matrix product has one run, a convolution one for each row of the window in an image
// with padding.
struct runs {
  int64_t count, length; // number of runs for one output, and their length
  int64_t a_step;        // from run to run in the left operand; in the right one they follow each other
};
// Multiplies the left operands of two outputs (a, c) by four right operands, which are `depth` apart, and adds the
// products to sums. Begins at element `from` of each run.
static void add_dots(const struct runs *r, int64_t from, const int16_t *a, const int16_t *c, const int16_t *b,
                     int64_t depth, int32_t *restrict sums) {
  for (int64_t i = 0; i < r->count; i++)
    for (int64_t k = from; k < r->length; k++)
      for (int q = 0; q < 4; q++) {
        const int16_t w = b[q * depth + i * r->length + k];
        sums[q] += a[i * r->a_step + k] * w, sums[4 + q] += c[i * r->a_step + k] * w;
      }
}
static void dots_generic(const struct runs *r, const int16_t *a, const int16_t *c, const int16_t *b, int64_t depth,
                         int32_t *restrict sums) {
  memset(sums, 0, 8 * sizeof *sums);
  add_dots(r, 0, a, c, b, depth, sums);
}
#if defined(__x86_64__)
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define ADD_PAIRS(sum, x, w) sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, w))
__attribute__((target("avx2"))) static void dots_avx2(const struct runs *r, const int16_t *a, const int16_t *c,
                                                      const int16_t *b, int64_t depth, int32_t *restrict sums) {
  const int64_t whole = r->length / 16 * 16;
  __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
  for (int64_t i = 0; i < r->count; i++) {
    const int16_t *x = a + i * r->a_step, *y = c + i * r->a_step, *p = b + i * r->length;
    for (int64_t k = 0; k < whole; k += 16) {
      const __m256i xs = LOAD(x + k), ys = LOAD(y + k);
      const __m256i p0 = LOAD(p + k), p1 = LOAD(p + depth + k), p2 = LOAD(p + 2 * depth + k);
      const __m256i p3 = LOAD(p + 3 * depth + k);
      ADD_PAIRS(s0, xs, p0);
      ADD_PAIRS(t0, ys, p0);
      ADD_PAIRS(s1, xs, p1);
      ADD_PAIRS(t1, ys, p1);
      ADD_PAIRS(s2, xs, p2);
      ADD_PAIRS(t2, ys, p2);
      ADD_PAIRS(s3, xs, p3);
      ADD_PAIRS(t3, ys, p3);
    }
  }
  const __m256i s = _mm256_hadd_epi32(_mm256_hadd_epi32(s0, s1), _mm256_hadd_epi32(s2, s3));
  const __m256i t = _mm256_hadd_epi32(_mm256_hadd_epi32(t0, t1), _mm256_hadd_epi32(t2, t3));
  _mm_storeu_si128((__m128i *)(void *)sums, _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1)));
  _mm_storeu_si128((__m128i *)(void *)(sums + 4),
                   _mm_add_epi32(_mm256_castsi256_si128(t), _mm256_extracti128_si256(t, 1)));
  if (whole < r->length) add_dots(r, whole, a, c, b, depth, sums);
}
#undef LOAD
#undef ADD_PAIRS
#endif

struct dot_job { // y [rows, columns]; row r of y has its left operand at a + r / width * a_line + r % width * a_row
  struct runs runs;
  const int16_t *a, *b; // b [columns rounded up to 4, depth]
  int32_t *y;
  int64_t width, a_line, a_row, columns, depth;
  void (*dots)(const struct runs *r, const int16_t *a, const int16_t *c, const int16_t *b, int64_t depth,
               int32_t *restrict sums);
};
static void dot_rows(void *arg, int64_t begin, int64_t end) {
  const struct dot_job *j = arg;
  for (int64_t r = begin; r < end; r += 2) {
    const int64_t next = r + 1 < end ? r + 1 : r;
    const int16_t *a = j->a + r / j->width * j->a_line + r % j->width * j->a_row;
    const int16_t *c = j->a + next / j->width * j->a_line + next % j->width * j->a_row;
    for (int64_t column = 0; column < j->columns; column += 4) {
      int32_t sums[8];
      j->dots(&j->runs, a, c, j->b + column * j->depth, j->depth, sums);
      const int64_t n = j->columns - column < 4 ? j->columns - column : 4;
      memcpy(j->y + r * j->columns + column, sums, (size_t)n * sizeof *sums);
      memcpy(j->y + next * j->columns + column, sums + 4, (size_t)n * sizeof *sums);
    }
  }
}
// Whether both zeros are bytes and no sum overflows.
static bool may_dot(int32_t zero_a, int32_t zero_b, int64_t depth) {
  return zero_a >= 0 && zero_a <= UINT8_MAX && zero_b >= 0 && zero_b <= UINT8_MAX && depth > 0 && depth <= 32768;
}
// out [columns rounded up to 4, depth] = b (columns at b_step, depths at b_row) minus its zero.
static tfc_status right_of(struct tfc_kernel_ctx *ctx, const uint8_t *b, int32_t zero, int64_t depth, int64_t columns,
                           int64_t b_row, int64_t b_step, struct tfc_buffer **out) {
  const int64_t padded = (columns + 3) / 4 * 4;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(padded * depth) * sizeof(int16_t) + 64, out));
  int16_t *to = (*out)->data;
  memset(to + columns * depth, 0, (size_t)((padded - columns) * depth) * sizeof *to);
  for (int64_t c = 0; c < columns; c++)
    for (int64_t k = 0; k < depth; k++) to[c * depth + k] = (int16_t)(b[k * b_row + c * b_step] - zero);
  return NULL;
}
static void run_dots(struct tfc_kernel_ctx *ctx, struct dot_job *job, int64_t rows) {
  job->dots = dots_generic;
#if defined(__x86_64__)
  if (tfc_instructions_allowed(TFC_INSTRUCTIONS_AVX2)) job->dots = dots_avx2;
#endif
  const int64_t grain = (1 + 131072 / (1 + job->depth * job->columns)) * 2;
  tfc_kernel_parallel_for(ctx, rows, grain, dot_rows, job);
}

static tfc_status multiply_by_dots(struct tfc_kernel_ctx *ctx, const struct product *p, int64_t rows) {
  struct tfc_buffer *a = NULL, *b = NULL;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(rows * p->depth) * sizeof(int16_t) + 64, &a));
  for (int64_t r = 0; r < rows; r++)
    for (int64_t k = 0; k < p->depth; k++)
      ((int16_t *)a->data)[r * p->depth + k] = (int16_t)(p->a[r * p->a_row + k * p->a_step] - p->zero_a);
  TFC_TRY(s, right_of(ctx, p->b, p->zero_b, p->depth, p->columns, p->b_row, p->b_step, &b));
  struct dot_job job = {.runs = {1, p->depth, 0},
                        .a = a->data,
                        .b = b->data,
                        .y = p->y,
                        .width = 1,
                        .a_line = p->depth,
                        .columns = p->columns,
                        .depth = p->depth};
  run_dots(ctx, &job, rows);
out:
  tfc_buffer_release(a);
  tfc_buffer_release(b);
  return s;
}

static tfc_status check_types(const struct tfc_kernel_ctx *ctx, tfc_dtype a, tfc_dtype b) {
  if (ctx->inputs[0]->dtype == a && ctx->inputs[1]->dtype == b) return NULL;
  return tfc_status_make(TFC_UNIMPLEMENTED, "no kernel of %s and %s", tfc_dtype_name(ctx->inputs[0]->dtype),
                         tfc_dtype_name(ctx->inputs[1]->dtype));
}
static tfc_status matmul(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  struct tfc_range ra, rb;
  struct tfc_tensor *y = NULL;
  bool ta = tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_a", false);
  bool tb = tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_b", false);
  TFC_RETURN_IF_ERROR(check_types(ctx, TFC_QUINT8, TFC_QUINT8));
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 2, &ra));
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 4, &rb));
  TFC_KERNEL_CHECK(ra.high > ra.low, "max_a must be larger than min_a.");
  TFC_KERNEL_CHECK(rb.high > rb.low, "max_b must be larger than min_b.");
  TFC_KERNEL_CHECK(a->shape.rank == 2, "In[0] is not a matrix");
  TFC_KERNEL_CHECK(b->shape.rank == 2, "In[1] is not a matrix");
  const int64_t *da = a->shape.dims, *db = b->shape.dims;
  TFC_KERNEL_CHECK(da[!ta] == db[tb], "Matrix size-incompatible: In[0]: %s, In[1]: %s",
                   tfc_shape_show(&a->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&b->shape, (char[TFC_SHAPE_TEXT]){0}));
  int64_t rows = da[ta], columns = db[!tb];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_QINT32, &TFC_SHAPE(rows, columns), &y));
  struct product p = {.a = a->data,
                      .b = b->data,
                      .y = y->data,
                      .zero_a = (int32_t)tfc_quant_unclamped(a->dtype, 0, ra),
                      .zero_b = (int32_t)tfc_quant_unclamped(b->dtype, 0, rb),
                      .columns = columns,
                      .depth = da[!ta],
                      .a_row = ta ? 1 : da[1],
                      .a_step = ta ? da[1] : 1,
                      .b_row = tb ? 1 : db[1],
                      .b_step = tb ? db[1] : 1};
  if (rows && columns && may_dot(p.zero_a, p.zero_b, p.depth))
    TFC_RETURN_IF_ERROR(multiply_by_dots(ctx, &p, rows));
  else if (rows && columns)
    tfc_kernel_parallel_for(ctx, rows, 1 + 65536 / (1 + p.depth * columns), multiply_rows, &p);
  return tfc_quant_put_range(ctx, 1, range_of_products(a->dtype, ra, b->dtype, rb));
}

struct convolution { // x [batch, height, width, channels], filter [rows, columns, channels, outputs]
  const struct tfc_tensor *x, *filter;
  struct tfc_tensor *y;
  int64_t stride, top, left;
  int32_t zero_x, zero_filter;
};
static void convolve_rows(void *arg, int64_t begin, int64_t end) {
  const struct convolution *v = arg;
  const int64_t *dx = v->x->shape.dims, *df = v->filter->shape.dims, *dy = v->y->shape.dims;
  const uint8_t *x = v->x->data, *filter = v->filter->data;
  for (int64_t r = begin; r < end; r++) {
    int64_t image = r / dy[1], row = r % dy[1];
    for (int64_t column = 0; column < dy[2]; column++) {
      uint32_t *y = (uint32_t *)v->y->data + (r * dy[2] + column) * dy[3];
      memset(y, 0, (size_t)dy[3] * sizeof *y);
      for (int64_t i = 0; i < df[0]; i++)
        for (int64_t j = 0; j < df[1]; j++) {
          int64_t h = row * v->stride - v->top + i, w = column * v->stride - v->left + j;
          bool inside = h >= 0 && h < dx[1] && w >= 0 && w < dx[2];
          // Outside of the image is the byte that stands for 0. If 0 is not in the range, only 8 bits of that integer
          // are kept.
          uint32_t outside = (uint32_t)(uint8_t)v->zero_x - (uint32_t)v->zero_x;
          if (!inside && outside == 0) continue;
          for (int64_t k = 0; k < dx[3]; k++) {
            uint32_t a =
                inside ? (uint32_t)x[((image * dx[1] + h) * dx[2] + w) * dx[3] + k] - (uint32_t)v->zero_x : outside;
            const uint8_t *b = filter + ((i * df[1] + j) * df[2] + k) * df[3];
            for (int64_t c = 0; c < dy[3]; c++) y[c] += a * ((uint32_t)b[c] - (uint32_t)v->zero_filter);
          }
        }
    }
  }
}
// The image less its zero with the padding that the windows reach, so that each row of a window is a run.
struct padding_job {
  const struct convolution *v;
  int16_t *to;
  int64_t height, width; // with padding
};
static void pad_rows(void *arg, int64_t begin, int64_t end) {
  const struct padding_job *j = arg;
  const int64_t *dx = j->v->x->shape.dims, line = j->width * dx[3];
  for (int64_t r = begin; r < end; r++) {
    int16_t *to = j->to + r * line;
    const int64_t h = r % j->height - j->v->top;
    memset(to, 0, (size_t)line * sizeof *to);
    if (h < 0 || h >= dx[1]) continue;
    const uint8_t *x = (const uint8_t *)j->v->x->data + (r / j->height * dx[1] + h) * dx[2] * dx[3];
    const int64_t first = j->v->left < 0 ? -j->v->left : 0; // columns that no window reaches
    const int64_t left = j->v->left > 0 ? j->v->left : 0;
    const int64_t n = dx[2] - first < j->width - left ? dx[2] - first : j->width - left;
    for (int64_t i = 0; i < n * dx[3]; i++) to[left * dx[3] + i] = (int16_t)(x[first * dx[3] + i] - j->v->zero_x);
  }
}
static tfc_status convolve_by_dots(struct tfc_kernel_ctx *ctx, const struct convolution *v) {
  const int64_t *dx = v->x->shape.dims, *df = v->filter->shape.dims, *dy = v->y->shape.dims;
  struct tfc_buffer *a = NULL, *b = NULL;
  tfc_status s = NULL;
  struct padding_job pad = {
      .v = v, .height = (dy[1] - 1) * v->stride + df[0], .width = (dy[2] - 1) * v->stride + df[1]};
  const int64_t line = pad.width * dx[3], depth = df[0] * df[1] * df[2];
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(dx[0] * pad.height * line) * sizeof(int16_t) + 64, &a));
  pad.to = a->data;
  tfc_kernel_parallel_for(ctx, dx[0] * pad.height, 1 + 32768 / (1 + line), pad_rows, &pad);
  TFC_TRY(s, right_of(ctx, v->filter->data, v->zero_filter, depth, df[3], df[3], 1, &b));
  struct dot_job job = {.runs = {df[0], df[1] * df[2], line},
                        .a = a->data,
                        .b = b->data,
                        .y = v->y->data,
                        .width = dy[2],
                        .a_row = v->stride * dx[3],
                        .columns = df[3],
                        .depth = depth};
  // One job for each image: rows of windows have a constant distance only within an image, because of the padding.
  for (int64_t image = 0; image < dy[0]; image++) {
    job.a = (const int16_t *)a->data + image * pad.height * line, job.a_line = v->stride * line;
    job.y = (int32_t *)v->y->data + image * dy[1] * dy[2] * dy[3];
    run_dots(ctx, &job, dy[1] * dy[2]);
  }
out:
  tfc_buffer_release(a);
  tfc_buffer_release(b);
  return s;
}

static tfc_status conv2d(struct tfc_kernel_ctx *ctx) {
  struct tfc_window w;
  struct tfc_range rx, rf;
  struct convolution v = {.x = ctx->inputs[0], .filter = ctx->inputs[1]};
  TFC_RETURN_IF_ERROR(check_types(ctx, TFC_QUINT8, TFC_QUINT8));
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 2, &rx));
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 4, &rf));
  TFC_KERNEL_CHECK(v.x->shape.rank == 4, "input must be 4-dimensional");
  TFC_KERNEL_CHECK(v.filter->shape.rank == 4, "filter must be 4-dimensional");
  const int64_t *dx = v.x->shape.dims, *df = v.filter->shape.dims;
  TFC_RETURN_IF_ERROR(tfc_window_read(ctx->graph, ctx->node, 4, &w));
  TFC_KERNEL_CHECK(w.stride[1] == w.stride[2],
                   "Current implementation only supports equal length strides in the row and column dimensions.");
  TFC_KERNEL_CHECK(w.dilation[1] == 1 && w.dilation[2] == 1, "Current implementation only supports dilations of 1");
  TFC_KERNEL_CHECK(dx[3] == df[2], "input and filter must have the same depth: %lld vs %lld", (long long)dx[3],
                   (long long)df[2]);
  int64_t out[2], before[2];
  for (int k = 0; k < 2; k++) TFC_RETURN_IF_ERROR(tfc_window_output(&w, k + 1, dx[k + 1], df[k], &out[k], &before[k]));
  TFC_KERNEL_CHECK(dx[0] > 0 && out[0] > 0 && out[1] > 0 && df[3] > 0, "the convolution has no outputs");
  // If the steps of the window do not cover all cells, TensorFlow leaves out half of the remaining cells at each side,
  // with VALID padding too.
  v.stride = w.stride[1];
  int64_t round = w.padding == TFC_PADDING_VALID;
  v.top = ((out[0] - 1) * v.stride + df[0] - dx[1] + round) / 2;
  v.left = ((out[1] - 1) * v.stride + df[1] - dx[2] + round) / 2;
  v.zero_x = (int32_t)tfc_quant_unclamped(v.x->dtype, 0, rx);
  v.zero_filter = (int32_t)tfc_quant_unclamped(v.filter->dtype, 0, rf);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_QINT32, &TFC_SHAPE(dx[0], out[0], out[1], df[3]), &v.y));
  if (may_dot(v.zero_x, v.zero_filter, df[0] * df[1] * df[2]))
    TFC_RETURN_IF_ERROR(convolve_by_dots(ctx, &v));
  else
    tfc_kernel_parallel_for(ctx, dx[0] * out[0], 1, convolve_rows, &v);
  return tfc_quant_put_range(ctx, 1, range_of_products(v.x->dtype, rx, v.filter->dtype, rf));
}

static float farthest(struct tfc_range a, struct tfc_range b) {
  return fmaxf(a.high, fmaxf(-a.low, fmaxf(b.high, -b.low)));
}
static tfc_status bias_add(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *bias = ctx->inputs[1];
  struct tfc_range rx, rb;
  struct tfc_tensor *y = NULL;
  if (x->dtype != bias->dtype) return check_types(ctx, x->dtype, x->dtype);
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 2, &rx));
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 4, &rb));
  TFC_KERNEL_CHECK(x->shape.rank >= 2, "Input tensor must be at least 2D");
  TFC_KERNEL_CHECK(bias->shape.rank == 1, "Biases must be 1D");
  int64_t n = bias->shape.dims[0];
  TFC_KERNEL_CHECK(n == x->shape.dims[x->shape.rank - 1],
                   "Must provide as many biases as the last dimension of the input tensor: %lld vs. %lld", (long long)n,
                   (long long)x->shape.dims[x->shape.rank - 1]);
  TFC_KERNEL_CHECK(n > 0, "Must provide at least 1 bias");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_QINT32, &x->shape, &y));
  // The range of the result has room for many such sums.
  float most = farthest(rx, rb) * (1 << 17);
  struct tfc_range ry = {-most, most};
  struct tfc_quant_from fx = tfc_quant_from(x->dtype, rx), fb = tfc_quant_from(bias->dtype, rb);
  struct tfc_quant_to to = tfc_quant_to(TFC_QINT32, ry);
  uint32_t zero = (uint32_t)tfc_quant_of(TFC_QINT32, 0, ry);
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++) {
    uint32_t a = (uint32_t)tfc_quant_integer(to, tfc_quant_float(fx, tfc_quant_get(x, i)));
    uint32_t b = (uint32_t)tfc_quant_integer(to, tfc_quant_float(fb, tfc_quant_get(bias, i % n)));
    ((uint32_t *)y->data)[i] = a + (b + zero);
  }
  return tfc_quant_put_range(ctx, 1, ry);
}

static tfc_status pool(struct tfc_kernel_ctx *ctx, bool average) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_window w;
  struct tfc_range r;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_quant_range(ctx, 1, &r));
  TFC_KERNEL_CHECK(x->shape.rank == 4, "tensor_in must be 4-dimensional");
  TFC_RETURN_IF_ERROR(tfc_window_read(ctx->graph, ctx->node, 4, &w));
  TFC_KERNEL_CHECK(w.channel_size == 1 && w.channel_stride == 1, "Depthwise pooling is not supported here");
  const int64_t *dx = x->shape.dims;
  int64_t out[2], before[2];
  for (int k = 0; k < 2; k++)
    TFC_RETURN_IF_ERROR(tfc_window_output(&w, k + 1, dx[k + 1], w.size[k + 1], &out[k], &before[k]));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &TFC_SHAPE(dx[0], out[0], out[1], dx[3]), &y));
  for (int64_t i = 0; i < tfc_tensor_elements(y); i++) {
    int64_t c = i % dx[3], column = i / dx[3] % out[1], row = i / dx[3] / out[1] % out[0],
            image = i / dx[3] / out[1] / out[0];
    int64_t first[2], last[2];
    tfc_window_cells(row, w.stride[1], 1, before[0], w.size[1], dx[1], &first[0], &last[0]);
    tfc_window_cells(column, w.stride[2], 1, before[1], w.size[2], dx[2], &first[1], &last[1]);
    int32_t sum = 0, best = INT32_MIN;
    for (int64_t a = first[0]; a < last[0]; a++)
      for (int64_t b = first[1]; b < last[1]; b++) {
        int64_t h = row * w.stride[1] - before[0] + a, v = column * w.stride[2] - before[1] + b;
        int32_t value = tfc_quant_get(x, ((image * dx[1] + h) * dx[2] + v) * dx[3] + c);
        sum += value, best = value > best ? value : best;
      }
    int64_t count = (last[0] - first[0]) * (last[1] - first[1]);
    tfc_quant_put(y, i, average ? (count ? (int32_t)(sum / count) : 0) : best);
  }
  return tfc_quant_put_range(ctx, 1, r);
}
static tfc_status average_pool(struct tfc_kernel_ctx *ctx) {
  return pool(ctx, true);
}
static tfc_status max_pool(struct tfc_kernel_ctx *ctx) {
  return pool(ctx, false);
}

// --- Shapes --------------------------------------------------------------------------------------------------------
static tfc_status check_ranges(struct tfc_shape_ctx *ctx, uint32_t from) {
  struct tfc_shape scalar;
  for (uint32_t i = from; i < ctx->node->input_count; i++) TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, 0, &scalar));
  ctx->outputs[1] = ctx->outputs[2] = TFC_SHAPE_SCALAR;
  return NULL;
}
static tfc_status shape_matmul(struct tfc_shape_ctx *ctx) {
  struct tfc_shape a, b;
  int ta = tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_a", false);
  int tb = tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_b", false);
  int64_t depth;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &a));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 2, &b));
  TFC_RETURN_IF_ERROR(tfc_dim_merge(a.dims[!ta], b.dims[tb], &depth));
  ctx->outputs[0] = TFC_SHAPE(a.dims[ta], b.dims[!tb]);
  return check_ranges(ctx, 2);
}
static tfc_status shape_window(struct tfc_shape_ctx *ctx, bool pooled) {
  struct tfc_window w;
  struct tfc_shape x, filter = TFC_SHAPE_UNKNOWN;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &x));
  TFC_RETURN_IF_ERROR(tfc_window_read(ctx->graph, ctx->node, 4, &w));
  if (!pooled) TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 4, &filter));
  ctx->outputs[0] = x;
  for (int k = 0; k < 2; k++)
    TFC_RETURN_IF_ERROR(tfc_window_infer(&w, k + 1, x.dims[k + 1], pooled ? w.size[k + 1] : filter.dims[k],
                                         &ctx->outputs[0].dims[k + 1]));
  if (!pooled) {
    TFC_RETURN_IF_ERROR(tfc_dim_merge(x.dims[3], filter.dims[2], &(int64_t){0}));
    ctx->outputs[0].dims[3] = filter.dims[3];
  }
  return check_ranges(ctx, pooled ? 1 : 2);
}
static tfc_status shape_conv(struct tfc_shape_ctx *ctx) {
  return shape_window(ctx, false);
}
static tfc_status shape_pool(struct tfc_shape_ctx *ctx) {
  return shape_window(ctx, true);
}
static tfc_status shape_bias(struct tfc_shape_ctx *ctx) {
  struct tfc_shape bias;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 2, NULL));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &bias));
  ctx->outputs[0] = *ctx->inputs[0];
  if (ctx->outputs[0].rank > 0) {
    int64_t *last = &ctx->outputs[0].dims[ctx->outputs[0].rank - 1];
    TFC_RETURN_IF_ERROR(tfc_dim_merge(*last, bias.dims[0], last));
  }
  return check_ranges(ctx, 2);
}

#define QUANTIZED "{qint8, quint8, qint32, qint16, quint16}"
#define PADDED "strides: list(int), padding: {'SAME', 'VALID'}"
#define ROW(types_, shape_, kernel_)                                                                                   \
  .flags = TFC_OP_NOT_DIFFERENTIABLE, .types = types_, .shape = shape_, .cost = ops_cost_outputs, .kernel = kernel_
#define UNSIGNED_BYTES TFC_TYPE_BIT(TFC_QUINT8)
#define BYTES (TFC_TYPE_BIT(TFC_QUINT8) | TFC_TYPE_BIT(TFC_QINT8))
static const struct tfc_op_def quant_math_rows[] = {
    {.name = "QuantizedMatMul",
     .inputs = "a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float",
     .outputs = "out: Toutput, min_out: float, max_out: float",
     .attrs = "T1: " QUANTIZED ", T2: " QUANTIZED ", Toutput: " QUANTIZED " = qint32, transpose_a: bool = false, "
              "transpose_b: bool = false, Tactivation: " QUANTIZED " = quint8",
     ROW(UNSIGNED_BYTES, shape_matmul, matmul),
     .samples = "quint8[3,4], quint8[4,5], float[]=-1, float[]=2, float[]=-2, float[]=3"},
    {.name = "QuantizedConv2D",
     .inputs = "input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter: float, max_filter: "
               "float",
     .outputs = "output: out_type, min_output: float, max_output: float",
     .attrs = "Tinput: " QUANTIZED ", Tfilter: " QUANTIZED ", out_type: " QUANTIZED " = qint32, " PADDED
              ", dilations: list(int) = [1, 1, 1, 1]",
     ROW(UNSIGNED_BYTES, shape_conv, conv2d)},
    {.name = "QuantizedBiasAdd",
     .inputs = "input: T1, bias: T2, min_input: float, max_input: float, min_bias: float, max_bias: float",
     .outputs = "output: out_type, min_out: float, max_out: float",
     .attrs = "T1: " QUANTIZED ", T2: " QUANTIZED ", out_type: " QUANTIZED,
     ROW(BYTES, shape_bias, bias_add)},
    {.name = "QuantizedMaxPool",
     .inputs = "input: T, min_input: float, max_input: float",
     .outputs = "output: T, min_output: float, max_output: float",
     .attrs = "T: " QUANTIZED ", ksize: list(int), " PADDED,
     ROW(BYTES, shape_pool, max_pool)},
    {.name = "QuantizedAvgPool",
     .inputs = "input: T, min_input: float, max_input: float",
     .outputs = "output: T, min_output: float, max_output: float",
     .attrs = "T: " QUANTIZED ", ksize: list(int), " PADDED,
     ROW(BYTES, shape_pool, average_pool)},
};
TFC_REGISTER_OPS(quant_math_rows);
