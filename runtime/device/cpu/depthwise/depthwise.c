// Fast kernels of DepthwiseConv2dNative and its gradients for float32 and float64 with channels last, computed line by
// line with vectors over the channels (lines.h). They also serve Conv2D and its gradients if each channel is a group of
// its own, which is the same operation with another shape of the filter:
//
//   y [batch, out_h, out_w, k]   one line for each row of y; k = channels * multiplier
//   dx [batch, h, w, k]          one line for each row of x and each remainder of a column modulo the stride, because
//                                columns with one remainder meet the same cells of the window
//   dw [cells, k]                rows of y are divided into pieces; the sums of the pieces are added in order
//
// With a multiplier above 1, each channel of x is first repeated for each of its filters, and for dx the results of
// these copies are added up at the end. Lines and pieces depend on shapes alone, so the order of all sums does, too.
// The kernels need shapes that are known when the plan is made; they decline channels first and 16-bit types.
#include <pthread.h>
#include <string.h>

#include "runtime/base/instructions.h"
#include "runtime/device/cpu/conv_sizes.h"
#include "runtime/device/cpu/depthwise/lines.h"
#include "runtime/ops/nn_window.h"

// ENOUGH: so many multiply-adds, or elements, make it worth starting another thread
enum { MOST_PIECES = 32, PIECE_POSITIONS = 64, ENOUGH = 32768 };

enum { ROLE = 3, GROUPS = 4 }; // bits of a row's variant: the role (ROLE is its mask), and whether the op is Conv2D

struct depthwise {
  struct tfc_conv_sizes sizes;
  struct tfc_shape shape; // of the result
  const struct tfc_depthwise_lines *lines;
  bool bordered; // the padding was written as a border of zeros around x, which are multiplied like other elements
  int64_t multiplier, k, cells;
  // The cells of a row of the window, as a line uses them; those of remainder r are [starts[r], starts[r + 1]). For dx
  // there are as many remainders as the stride, else one.
  struct tfc_depthwise_cell *columns;
  int64_t *starts, remainders;
  size_t element;
};

static const struct tfc_depthwise_kernel *kernel = &tfc_depthwise_generic;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void choose(void) {
#if defined(__x86_64__)
  if (tfc_instructions_allowed(TFC_INSTRUCTIONS_AVX512))
    kernel = &tfc_depthwise_avx512;
  else if (tfc_instructions_allowed(TFC_INSTRUCTIONS_AVX2))
    kernel = &tfc_depthwise_avx2;
#endif
}

static tfc_status declined(void) {
  return tfc_status_make(TFC_UNIMPLEMENTED, "not covered");
}

static int64_t ceil_div(int64_t a, int64_t b) { // b > 0
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}
static int64_t clamp(int64_t v, int64_t most) {
  return v < 0 ? 0 : v < most ? v : most;
}

// Computes, for each column of the window, which positions of a line meet it.
static void meet_columns(struct depthwise *d) {
  const int64_t stride = d->sizes.stride[1], dilation = d->sizes.dilation[1], before = d->sizes.before[1];
  int64_t n = 0;
  for (int64_t r = 0; r < d->remainders; r++) {
    d->starts[r] = n;
    for (int64_t j = 0; j < d->sizes.size[1]; j++) {
      struct tfc_depthwise_cell cell = {.filter = j * d->k};
      if (d->sizes.role == TFC_CONV_INPUT) { // position q of the line is column r + q * stride of dx
        const int64_t shifted = r + before - j * dilation, first = ceil_div(shifted, stride);
        if (first * stride != shifted) continue;
        const int64_t positions = ceil_div(d->sizes.in[1] - r, stride);
        cell.in = first * d->k;
        cell.first = clamp(-first, positions), cell.last = clamp(d->sizes.out[1] - first, positions);
      } else {
        const int64_t shifted = j * dilation - before;
        cell.in = shifted * d->k;
        cell.first = clamp(ceil_div(-shifted, stride), d->sizes.out[1]);
        cell.last = clamp(ceil_div(d->sizes.in[1] - shifted, stride), d->sizes.out[1]);
      }
      if (cell.first < cell.last || d->bordered) d->columns[n++] = cell;
    }
  }
  d->starts[d->remainders] = n;
}

static tfc_status prepare(struct tfc_cpu_prepare *p) {
  struct tfc_prepare_ctx *base = p->base;
  struct tfc_conv_sizes z;
  struct tfc_cpu_prepare of_role = *p;
  of_role.variant &= ROLE;
  if (base->pool) return declined();
  if (!tfc_conv_sizes_read(&of_role, &z) || (z.dtype != TFC_FLOAT && z.dtype != TFC_DOUBLE)) return declined();
  if (p->variant & GROUPS) {
    if (z.depth != 1 || z.channels == 1 || z.filters % z.channels || z.made != z.filters) return declined();
    z.filters /= z.channels;
  } else if (z.depth != z.channels || z.made != z.channels * z.filters) {
    return declined();
  }
  if (z.size[0] > TFC_DEPTHWISE_MOST_CELLS || z.size[1] > TFC_DEPTHWISE_MOST_CELLS / z.size[0]) return declined();
  struct depthwise *d = TFC_ARENA_NEW(base->arena, struct depthwise);
  if (!d) return tfc_status_no_memory(NULL);
  *d = (struct depthwise){.sizes = z,
                          .shape = base->output_shapes[0],
                          .bordered = base->window != NULL,
                          .multiplier = z.filters,
                          .k = z.made};
  d->element = z.dtype == TFC_FLOAT ? sizeof(float) : sizeof(double);
  d->cells = d->sizes.size[0] * d->sizes.size[1];
  d->remainders = z.role != TFC_CONV_INPUT              ? 1
                  : d->sizes.stride[1] < d->sizes.in[1] ? d->sizes.stride[1]
                                                        : d->sizes.in[1];
  d->columns = tfc_arena_alloc(base->arena, (size_t)d->sizes.size[1] * sizeof *d->columns);
  d->starts = tfc_arena_alloc(base->arena, (size_t)(d->remainders + 1) * sizeof *d->starts);
  if (!d->columns || !d->starts) return tfc_status_no_memory(NULL);
  meet_columns(d);
  pthread_once(&once, choose);
  d->lines = z.dtype == TFC_FLOAT ? &kernel->of_float : &kernel->of_double;
  base->state = d;
  return NULL;
}

// --- One pass over the lines ---------------------------------------------------------------------------------------
struct pass {
  const struct depthwise *d;
  const char *x, *filter, *dy;            // k channels
  char *to;                               // y, dx or dw
  char *sums;                             // [pieces, cells, k]
  const struct tfc_kernel_finish *finish; // of y; NULL: none
  int64_t pieces;
};

// Finds the cells for the line that is row `at` of y; returns their number.
static int64_t forward_cells(const struct depthwise *d, int64_t at, struct tfc_depthwise_cell *cells) {
  int64_t i0, i1, n = 0;
  tfc_window_cells(at, d->sizes.stride[0], d->sizes.dilation[0], d->sizes.before[0], d->sizes.size[0], d->sizes.in[0],
                   &i0, &i1);
  if (d->bordered) i0 = 0, i1 = d->sizes.size[0];
  for (int64_t i = i0; i < i1; i++) {
    const int64_t h = at * d->sizes.stride[0] - d->sizes.before[0] + i * d->sizes.dilation[0];
    for (int64_t j = 0; j < d->starts[1]; j++) {
      cells[n] = d->columns[j];
      if (h < 0 || h >= d->sizes.in[0]) cells[n].zero = true, cells[n].first = 0, cells[n].last = d->sizes.out[1];
      cells[n].in += h * d->sizes.in[1] * d->k;
      cells[n++].filter += i * d->sizes.size[1] * d->k;
    }
  }
  return n;
}

// Whether the window of row `at` of y has all its rows inside the image.
static bool is_inside(const struct depthwise *d, int64_t at) {
  const int64_t top = at * d->sizes.stride[0] - d->sizes.before[0];
  return top >= 0 && top + (d->sizes.size[0] - 1) * d->sizes.dilation[0] < d->sizes.in[0];
}

// Returns how many rows of y from `at` on, of one image and before `end`, are computed together. In narrow images many
// positions are at the left and right border; together these are as fast as others.
static int64_t rows_together(const struct depthwise *d, int64_t at, int64_t end) {
  enum { MOST = 8, NARROW = 32 };
  const int64_t in_image = at % d->sizes.out[0];
  int64_t n = 1;
  if (d->sizes.out[1] > NARROW || !is_inside(d, in_image)) return 1;
  while (n < MOST && at + n < end && in_image + n < d->sizes.out[0] && is_inside(d, in_image + n)) n++;
  return n;
}

static void forward_rows(void *arg, int64_t begin, int64_t end) {
  const struct pass *p = arg;
  const struct depthwise *d = p->d;
  struct tfc_depthwise_cell cells[TFC_DEPTHWISE_MOST_CELLS];
  const size_t image = (size_t)(d->sizes.in[0] * d->sizes.in[1] * d->k) * d->element,
               row = (size_t)(d->sizes.out[1] * d->k) * d->element;
  struct tfc_depthwise_block block = {.positions = d->sizes.out[1],
                                      .in_step = d->sizes.stride[1] * d->k,
                                      .in_line = d->sizes.stride[0] * d->sizes.in[1] * d->k,
                                      .out_step = d->k,
                                      .out_line = d->sizes.out[1] * d->k,
                                      .bordered = d->bordered,
                                      .last = p->finish ? p->finish->last : NULL};
  for (int64_t at = begin; at < end; at += block.lines) {
    const int64_t count = forward_cells(d, at % d->sizes.out[0], cells);
    block.lines = rows_together(d, at, end);
    block.at = at * block.out_line;
    d->lines->lines(cells, count, &block, p->x + (size_t)(at / d->sizes.out[0]) * image, p->filter,
                    p->to + (size_t)at * row, d->k);
    if (p->finish && !block.last)
      p->finish->rows(p->finish, (float *)(void *)p->to, at * d->sizes.out[1], (at + block.lines) * d->sizes.out[1]);
  }
}

static void input_rows(void *arg, int64_t begin, int64_t end) {
  const struct pass *p = arg;
  const struct depthwise *d = p->d;
  struct tfc_depthwise_cell cells[TFC_DEPTHWISE_MOST_CELLS];
  const size_t image = (size_t)(d->sizes.out[0] * d->sizes.out[1] * d->k) * d->element;
  for (int64_t at = begin; at < end; at++)
    for (int64_t r = 0; r < d->remainders; r++) {
      int64_t count = 0;
      for (int64_t i = 0; i < d->sizes.size[0]; i++) {
        const int64_t shifted = at % d->sizes.in[0] + d->sizes.before[0] - i * d->sizes.dilation[0],
                      row = shifted / d->sizes.stride[0];
        if (shifted < 0 || row * d->sizes.stride[0] != shifted || row >= d->sizes.out[0]) continue;
        for (int64_t j = d->starts[r]; j < d->starts[r + 1]; j++) {
          cells[count] = d->columns[j];
          cells[count].in += row * d->sizes.out[1] * d->k;
          cells[count++].filter += i * d->sizes.size[1] * d->k;
        }
      }
      const struct tfc_depthwise_block block = {.lines = 1,
                                                .positions = ceil_div(d->sizes.in[1] - r, d->sizes.stride[1]),
                                                .in_step = d->k,
                                                .out_step = d->sizes.stride[1] * d->k};
      d->lines->lines(cells, count, &block, p->dy + (size_t)(at / d->sizes.in[0]) * image, p->filter,
                      p->to + (size_t)((at * d->sizes.in[1] + r) * d->k) * d->element, d->k);
    }
}

static void filter_pieces(void *arg, int64_t begin, int64_t end) {
  const struct pass *p = arg;
  const struct depthwise *d = p->d;
  struct tfc_depthwise_cell cells[TFC_DEPTHWISE_MOST_CELLS];
  const int64_t rows = d->sizes.batch * d->sizes.out[0];
  const size_t image = (size_t)(d->sizes.in[0] * d->sizes.in[1] * d->k) * d->element,
               row = (size_t)(d->sizes.out[1] * d->k) * d->element;
  const size_t whole = (size_t)(d->cells * d->k) * d->element;
  for (int64_t piece = begin; piece < end; piece++) {
    char *sums = p->sums + (size_t)piece * whole;
    memset(sums, 0, whole);
    for (int64_t at = piece * rows / p->pieces; at < (piece + 1) * rows / p->pieces; at++) {
      const int64_t count = forward_cells(d, at % d->sizes.out[0], cells);
      d->lines->filter(cells, count, p->x + (size_t)(at / d->sizes.out[0]) * image, d->sizes.stride[1] * d->k,
                       p->dy + (size_t)at * row, sums, d->k);
    }
  }
}

#define EACH_TYPE(dtype, ...)                                                                                          \
  if ((dtype) == TFC_FLOAT) {                                                                                          \
    typedef float S;                                                                                                   \
    __VA_ARGS__                                                                                                        \
  } else {                                                                                                             \
    typedef double S;                                                                                                  \
    __VA_ARGS__                                                                                                        \
  }

// Computes elements [begin, end) of dw: adds the sums of the pieces in order.
static void join_pieces(void *arg, int64_t begin, int64_t end) {
  const struct pass *p = arg;
  const int64_t whole = p->d->cells * p->d->k;
  EACH_TYPE(p->d->sizes.dtype, {
    const S *restrict sums = (const S *)(const void *)p->sums;
    S *restrict to = (S *)(void *)p->to;
    memcpy(to + begin, sums + begin, (size_t)(end - begin) * sizeof *to);
    for (int64_t piece = 1; piece < p->pieces; piece++)
      for (int64_t i = begin; i < end; i++) to[i] += sums[piece * whole + i];
  })
}

struct repeat { // repeats each element of x
  tfc_dtype dtype;
  int64_t times;
  const void *from;
  void *to;
};
static void repeat_elements(void *arg, int64_t begin, int64_t end) {
  const struct repeat *r = arg;
  EACH_TYPE(r->dtype, {
    const S *restrict from = r->from;
    S *restrict to = r->to;
    if (r->times == 2)
      for (int64_t i = begin; i < end; i++) to[2 * i] = to[2 * i + 1] = from[i];
    else
      for (int64_t i = begin; i < end; i++)
        for (int64_t o = 0; o < r->times; o++) to[i * r->times + o] = from[i];
  })
}
static void add_repeated(void *arg, int64_t begin, int64_t end) {
  const struct repeat *r = arg;
  EACH_TYPE(r->dtype, {
    const S *restrict from = r->from;
    S *restrict to = r->to;
    for (int64_t i = begin; i < end; i++) {
      S sum = from[i * r->times];
      for (int64_t o = 1; o < r->times; o++) sum += from[i * r->times + o];
      to[i] = sum;
    }
  })
}

// Returns x with k channels: x itself if the multiplier is 1, otherwise a buffer in which each channel is repeated.
static tfc_status repeated(struct tfc_kernel_ctx *ctx, const struct depthwise *d, const void *x,
                           struct tfc_buffer **out_scratch, const char **out_x) {
  *out_x = x;
  if (d->multiplier == 1) return NULL;
  const int64_t n = d->sizes.batch * d->sizes.in[0] * d->sizes.in[1] * d->sizes.channels;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(n * d->multiplier) * d->element, out_scratch));
  struct repeat r = {d->sizes.dtype, d->multiplier, x, (*out_scratch)->data};
  tfc_kernel_parallel_for(ctx, n, ENOUGH / d->multiplier + 1, repeat_elements, &r);
  *out_x = (*out_scratch)->data;
  return NULL;
}

// Pieces have as many rows as leaves three of them for each thread, because few rows at a time are slower; `each`:
// multiply-adds of a row.
static int64_t rows_of_piece(const struct tfc_kernel_ctx *ctx, int64_t rows, int64_t each) {
  const int64_t least = ENOUGH / each + 1, share = rows / (3 * (int64_t)ctx->env->threads);
  return share > least ? share : least;
}

static tfc_status forward(struct tfc_kernel_ctx *ctx, const struct depthwise *d) {
  const int64_t rows = d->sizes.batch * d->sizes.out[0];
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *scratch = NULL;
  tfc_status s = NULL;
  struct pass p = {.d = d, .filter = ctx->inputs[1]->data, .finish = ctx->finish};
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, d->sizes.dtype, &d->shape, &y));
  TFC_TRY(s, repeated(ctx, d, ctx->inputs[0]->data, &scratch, &p.x));
  p.to = y->data;
  tfc_kernel_parallel_for(ctx, rows, rows_of_piece(ctx, rows, d->sizes.out[1] * d->k * d->cells), forward_rows, &p);
  if (p.finish) ctx->finish->done = true;
out:
  tfc_buffer_release(scratch);
  return s;
}

static tfc_status backward_input(struct tfc_kernel_ctx *ctx, const struct depthwise *d) {
  struct tfc_tensor *dx = NULL;
  struct tfc_buffer *scratch = NULL;
  tfc_status s = NULL;
  const int64_t n = d->sizes.batch * d->sizes.in[0] * d->sizes.in[1] * d->sizes.channels;
  struct pass p = {.d = d, .filter = ctx->inputs[1]->data, .dy = ctx->inputs[2]->data};
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, d->sizes.dtype, &d->shape, &dx));
  p.to = dx->data;
  if (d->multiplier > 1) {
    TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(n * d->multiplier) * d->element, &scratch));
    p.to = scratch->data;
  }
  tfc_kernel_parallel_for(ctx, d->sizes.batch * d->sizes.in[0], ENOUGH / (d->sizes.in[1] * d->k * d->cells) + 1,
                          input_rows, &p);
  if (d->multiplier > 1) {
    struct repeat r = {d->sizes.dtype, d->multiplier, p.to, dx->data};
    tfc_kernel_parallel_for(ctx, n, ENOUGH / d->multiplier + 1, add_repeated, &r);
  }
out:
  tfc_buffer_release(scratch);
  return s;
}

static tfc_status backward_filter(struct tfc_kernel_ctx *ctx, const struct depthwise *d) {
  struct tfc_tensor *dw = NULL;
  struct tfc_buffer *scratch = NULL, *sums = NULL;
  tfc_status s = NULL;
  const int64_t rows = d->sizes.batch * d->sizes.out[0], whole = d->cells * d->k;
  struct pass p = {.d = d, .dy = ctx->inputs[2]->data, .pieces = rows * d->sizes.out[1] / PIECE_POSITIONS};
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, d->sizes.dtype, &d->shape, &dw));
  TFC_TRY(s, repeated(ctx, d, ctx->inputs[0]->data, &scratch, &p.x));
  if (p.pieces > MOST_PIECES) p.pieces = MOST_PIECES;
  if (p.pieces > rows) p.pieces = rows;
  if (p.pieces < 1) p.pieces = 1;
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(p.pieces * whole) * d->element, &sums));
  p.sums = sums->data, p.to = dw->data;
  tfc_kernel_parallel_for(ctx, p.pieces, 1, filter_pieces, &p);
  tfc_kernel_parallel_for(ctx, whole, ENOUGH / p.pieces, join_pieces, &p);
out:
  tfc_buffer_release(sums);
  tfc_buffer_release(scratch);
  return s;
}

static tfc_status run(struct tfc_kernel_ctx *ctx) {
  const struct depthwise *d = ctx->state;
  return d->sizes.role == TFC_CONV_FORWARD ? forward(ctx, d)
         : d->sizes.role == TFC_CONV_INPUT ? backward_input(ctx, d)
                                           : backward_filter(ctx, d);
}

static const struct tfc_cpu_kernel rows[] = {
    {"DepthwiseConv2dNative", TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE), prepare, run, TFC_CONV_FORWARD},
    {"DepthwiseConv2dNativeBackpropInput", 0, prepare, run, TFC_CONV_INPUT},
    {"DepthwiseConv2dNativeBackpropFilter", TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE), prepare, run,
     TFC_CONV_FILTER},
    {"Conv2D", TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE), prepare, run, TFC_CONV_FORWARD | GROUPS},
    {"Conv2DBackpropInput", 0, prepare, run, TFC_CONV_INPUT | GROUPS},
    {"Conv2DBackpropFilter", TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE), prepare, run,
     TFC_CONV_FILTER | GROUPS},
};
TFC_CPU_KERNELS(rows);
