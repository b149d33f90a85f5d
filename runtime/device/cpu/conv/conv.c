// Fast kernels of Conv2D, Conv3D and their gradients for float32 with channels last. Each kernel is a matrix product
// whose patches (patches.h) are never written to memory:
//
//   y  [positions of y, filters]      = patches of x [positions of y, cells * channels] · w
//   dx [positions of x, channels]     = patches of dy · w rotated by half a circle. With a stride of s there is one
//                                       product for each remainder of a position modulo s (s * s of them, for volumes
//                                       s * s * s), because positions with one remainder meet the same cells
//   dw [cells * channels, filters]    = patches of x, transposed · dy, summed over pieces of 512 positions: one after
//                                       the other, or on several cores at once (pieces.h), or over lines (lines.h)
//
// The gradients need shapes that are known when the plan is made. A convolution whose shapes are known only when it
// runs (behind the results of a loop, say) finds its sizes then. The kernels decline other layouts, groups, and windows
// that have both a dilation and a stride.
#include <stdlib.h>

#include "runtime/device/cpu/conv/lines.h"
#include "runtime/device/cpu/conv/padded.h"
#include "runtime/device/cpu/conv/patches.h"
#include "runtime/device/cpu/conv/pieces.h"
#include "runtime/device/cpu/conv/pooled.h"
#include "runtime/device/cpu/conv_sizes.h"
#include "runtime/host/gemm/panels.h"
#include "runtime/host/gemm/scratch.h"

enum { MOST_ZEROS = 8192, PIECE = TFC_PIECE, LEAST_POSITIONS = 12, MOST_PARTS = 64, LEAST_ROWS = 192 };
// Images of at most so many channels get a border. It saves more (PADDED_MORE) where patches are transposed or are
// volumes, with more rows that may reach over an edge. For a filter's gradient, an image whose channels are not whole
// stripes can be read in place if it has a border (PADDED_ODD).
enum { PADDED = 1, PADDED_MORE = 4, PADDED_ODD = 64 };
static const float zeros[MOST_ZEROS];

static const int64_t most_cells = TFC_PRODUCTS_MOST;

struct conv {
  struct tfc_conv_sizes sizes;
  struct tfc_shape shape;      // of output 0
  bool pointwise;              // a window of one cell with stride 1: images are matrices
  const struct tfc_pool *pool; // output 0 is the maxima of the convolution; NULL: it is the convolution
  // A constant filter, packed when the plan is made: one matrix, or for dx with strides one for each part. NULL: the
  // filter is packed in each step.
  float **packed;
  int64_t packed_count;
  bool late; // shapes are known only when it runs: `sizes`, `shape` and `pointwise` mean nothing
  // If `late`: the state of the op's own kernel, which runs if this one declines the shapes.
  void *reference;
  void (*release_reference)(void *state);
};

static tfc_status declined(void) {
  return tfc_status_make(TFC_UNIMPLEMENTED, "not covered");
}

static void release(void *state) {
  struct conv *c = state;
  for (int64_t i = 0; i < c->packed_count; i++) free(c->packed[i]);
  if (c->release_reference) c->release_reference(c->reference);
}

static void pack_constant(const struct tfc_cpu_prepare *p, struct conv *c);

// Sets the sizes by the shapes in `p`. False: the kernels decline.
static bool set_sizes(const struct tfc_cpu_prepare *p, struct conv *c) {
  struct tfc_conv_sizes z;
  if (!tfc_conv_sizes_read(p, &z) || z.dtype != TFC_FLOAT) return false;
  bool one = true;
  for (int k = 0; k < 3; k++) {
    if (z.stride[k] > 1 && z.dilation[k] > 1) return false;
    one = one && z.size[k] == 1 && z.stride[k] == 1 && z.before[k] == 0 && z.out[k] == z.in[k];
  }
  if (z.depth != z.channels || z.made != z.filters) return false;
  if (z.channels > MOST_ZEROS || z.filters > MOST_ZEROS) return false;
  c->sizes = z, c->shape = p->base->output_shapes[0], c->pointwise = one;
  return true;
}

// Whether the shapes of a convolution will be known only when it runs.
static bool is_late(const struct tfc_cpu_prepare *p) {
  const struct tfc_prepare_ctx *base = p->base;
  return p->variant == TFC_CONV_FORWARD && base->input_dtypes[0] == TFC_FLOAT && !base->pool && !base->window &&
         !tfc_shape_is_static(&base->input_shapes[0]) && base->def->kernel;
}
static tfc_status prepare_late(struct tfc_cpu_prepare *p, struct conv *c) {
  struct tfc_prepare_ctx own = *p->base;
  own.state = NULL, own.release = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_prepare(&own));
  c->late = true;
  c->reference = own.state, c->release_reference = own.release;
  return NULL;
}

static tfc_status prepare(struct tfc_cpu_prepare *p) {
  struct conv *c = TFC_ARENA_NEW(p->base->arena, struct conv);
  if (!c) return tfc_status_no_memory(NULL);
  *c = (struct conv){.pool = p->base->pool};
  p->base->state = c;
  p->base->release = release;
  if (!set_sizes(p, c)) return is_late(p) ? prepare_late(p, c) : declined();
  if (c->pool) c->shape = tfc_image_shape(&c->pool->w, c->pool->y.batch, c->pool->y.size, c->pool->y.channels);
  pack_constant(p, c);
  return NULL;
}

static int64_t product_of(int64_t factor, const int64_t sizes[3]) {
  return factor * sizes[0] * sizes[1] * sizes[2];
}

static struct tfc_patches patches_of_input(const struct conv *c, const float *x) {
  struct tfc_patches p = {.image = x, .batch = c->sizes.batch, .channels = c->sizes.channels, .zeros = zeros};
  for (int k = 0; k < 3; k++) {
    p.in[k] = c->sizes.in[k], p.out[k] = c->sizes.out[k], p.size[k] = c->sizes.size[k],
    p.stride[k] = c->sizes.stride[k];
    p.dilation[k] = c->sizes.dilation[k], p.before[k] = c->sizes.before[k];
  }
  tfc_patches_init(&p);
  return p;
}

static void pad_and_scatter(struct tfc_kernel_ctx *ctx, struct tfc_patches *patches) {
  (void)tfc_patches_pad(ctx, patches, tfc_patches_are_flat(patches) ? PADDED : PADDED_MORE);
  tfc_patches_scatter(patches);
}

// --- On the tile unit -----------------------------------------------------------------------------------------------
// A sum over the cells of a window: for each cell, the matrix of the pixels under it at all positions, times the cell's
// part of the filter. Cell i of the window uses the filter's cell `first[k] + step[k] * i`; with `rotated` the order of
// the cells is reversed. *out_done is false if another way is faster or numbers are too large for the tile unit.
struct window_sum {
  const struct conv *conv;
  const struct tfc_patches *patches;
  const float *w;
  bool rotated; // for dx; a cell's part of the filter, [channels, filters], is then used transposed
  int64_t first[2], step[2];
};

static tfc_status sum_on_tiles(struct tfc_kernel_ctx *ctx, const struct window_sum *sum, int64_t rows, int64_t columns,
                               float *out, bool *out_done) {
  const struct tfc_patches *p = sum->patches;
  const struct conv *c = sum->conv;
  const int64_t cells = p->size[0] * p->size[1], k = p->channels;
  struct tfc_split_product products[TFC_PRODUCTS_MOST];
  struct tfc_patches_cell cell[TFC_PRODUCTS_MOST];
  *out_done = false;
  if (cells > most_cells || !tfc_patches_are_flat(p) ||
      !tfc_products_choose_split(ctx, rows, columns, cells * k, cells * tfc_split_blocks(k), true))
    return NULL;
  for (int64_t q = 0; q < cells; q++) {
    int64_t i = q / p->size[1], j = q % p->size[1];
    cell[q] = (struct tfc_patches_cell){p, i, j, 0};
    int64_t y = sum->first[0] + (sum->rotated ? p->size[0] - 1 - i : i) * sum->step[0];
    int64_t x = sum->first[1] + (sum->rotated ? p->size[1] - 1 - j : j) * sum->step[1];
    const float *w = sum->w + (y * c->sizes.size[1] + x) * c->sizes.channels * c->sizes.filters;
    struct tfc_matrix b = {w, sum->rotated ? 1 : c->sizes.filters, sum->rotated ? c->sizes.filters : 1};
    products[q] = (struct tfc_split_product){.a = tfc_patches_of_cell(&cell[q]), .b = {.matrix = b}, .k = k};
  }
  return tfc_products_run_split(products, cells, rows, columns, false, out, out_done);
}

// --- Forward -----------------------------------------------------------------------------------------------------
static tfc_status forward(struct tfc_kernel_ctx *ctx, const struct conv *c) {
  const float *x = ctx->inputs[0]->data, *w = ctx->inputs[1]->data;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &c->shape, &y));
  struct tfc_patches patches = patches_of_input(c, x);
  const int64_t positions = product_of(c->sizes.batch, c->sizes.out);
  struct tfc_product p = {.b = {w, c->sizes.filters, 1}, .k = product_of(c->sizes.channels, c->sizes.size)};
  struct window_sum sum = {.conv = c, .patches = &patches, .w = w, .step = {1, 1}};
  bool done = false;
  if (!c->pointwise && !c->pool)
    TFC_RETURN_IF_ERROR(sum_on_tiles(ctx, &sum, positions, c->sizes.filters, y->data, &done));
  if (done) return NULL;
  if (c->packed_count && !tfc_products_may_split(ctx)) p.packed_b = c->packed[0];
  // A window of one cell over an image with a border is not pointwise, and must have the same bits.
  if (c->pointwise && !tfc_gemm_has_few_columns(c->sizes.channels, p.k, c->sizes.filters))
    p.a = (struct tfc_matrix){x, c->sizes.channels, 1};
  else
    p.source = &patches.base;
  if (p.source) pad_and_scatter(ctx, &patches);
  if (c->pool) return tfc_pooled_run(ctx, &c->sizes, &p, c->pool, y->data);
  return tfc_products_run_finished(ctx, &p, positions, c->sizes.filters, y->data);
}

// Finds the sizes by the inputs of this step. Steps may run at once, so the sizes are not kept.
static tfc_status forward_late(struct tfc_kernel_ctx *ctx, const struct conv *c) {
  const struct tfc_shape shapes[2] = {ctx->inputs[0]->shape, ctx->inputs[1]->shape};
  const tfc_dtype dtypes[2] = {ctx->inputs[0]->dtype, ctx->inputs[1]->dtype};
  struct tfc_shape y;
  struct tfc_window window;
  struct tfc_prepare_ctx base = {.graph = ctx->graph,
                                 .node = ctx->node,
                                 .input_shapes = shapes,
                                 .output_shapes = &y,
                                 .input_dtypes = dtypes,
                                 .window = &window};
  const struct tfc_cpu_prepare p = {.base = &base, .variant = TFC_CONV_FORWARD};
  struct conv now = {0};
  if (tfc_conv_result(ctx->graph, ctx->node, &shapes[0], &shapes[1], &window, &y) && set_sizes(&p, &now))
    return forward(ctx, &now);
  void *const own = ctx->state;
  ctx->state = c->reference; // this kernel also reports inputs that do not fit
  tfc_status s = ctx->node->def->kernel(ctx);
  ctx->state = own;
  return s;
}

// --- Backward, input ------------------------------------------------------------------------------------------------
// A part is made of the window's cells first + t * step, t < count, from the last to the first: these are the cells
// that meet the positions of x with one remainder. For them dy is read like an image by a window of `count` cells that
// begins `before` positions earlier.
struct part {
  int64_t remainder, positions; // x = remainder + s * q, q < positions
  int64_t first, step, count, before;
};

static struct part part_of(const struct conv *c, int k, int64_t remainder) {
  int64_t s = c->sizes.stride[k], shifted = remainder + c->sizes.before[k];
  struct part p = {.remainder = remainder, .positions = (c->sizes.in[k] - remainder + s - 1) / s};
  if (s == 1) {
    p.step = 1, p.count = c->sizes.size[k];
    p.before = (c->sizes.size[k] - 1) * c->sizes.dilation[k] - c->sizes.before[k];
    return p;
  }
  p.first = shifted % s, p.step = s;
  p.count = c->sizes.size[k] > p.first ? (c->sizes.size[k] - p.first + s - 1) / s : 0;
  p.before = p.count - 1 - shifted / s;
  return p;
}

// Finds part `i` of the product of all strides: the positions that have the same remainder in each dimension.
static void parts_of(const struct conv *c, int64_t i, struct part out[3]) {
  out[0] = part_of(c, 0, i / c->sizes.stride[1] % c->sizes.stride[0]);
  out[1] = part_of(c, 1, i % c->sizes.stride[1]);
  out[2] = part_of(c, 2, i / c->sizes.stride[1] / c->sizes.stride[0]);
}

struct rotating { // packs the rotated filter as B [cells * filters, channels]
  struct tfc_gemm_right right;
  const struct conv *conv;
  struct part parts[3];
  const float *w;
  float *packed;
};

// Returns the number of the filter's cell that is cell q of a part's window.
static int64_t filter_cell(const struct rotating *t, int64_t q) {
  const struct conv *c = t->conv;
  const struct part *y = &t->parts[0], *x = &t->parts[1], *z = &t->parts[2];
  const int64_t j = q % x->count, i = q / x->count % y->count, h = q / x->count / y->count;
  return ((z->first + h * z->step) * c->sizes.size[0] + y->first + i * y->step) * c->sizes.size[1] + x->first +
         j * x->step;
}
static int64_t cells_of(const struct rotating *t) {
  return t->parts[0].count * t->parts[1].count * t->parts[2].count;
}

// Packs the pieces [begin, end) of the rotated filter. A piece is one cell's part of one panel; pieces are numbered in
// the order in which they lie in memory.
static void rotate_cells(void *arg, int64_t begin, int64_t end) {
  const struct rotating *t = arg;
  const struct conv *c = t->conv;
  const int64_t width = tfc_gemm_panel(), cells = cells_of(t);
  for (int64_t at = begin; at < end; at++) {
    const int64_t panel = at / cells, cell = filter_cell(t, cells - 1 - at % cells);
    float *to = t->packed + at * c->sizes.filters * width;
    struct tfc_matrix b = {t->w + cell * c->sizes.channels * c->sizes.filters, 1, c->sizes.filters};
    tfc_gemm_pack(b, c->sizes.filters, c->sizes.channels, panel, panel + 1, to - panel * c->sizes.filters * width);
  }
}

// Packs a panel of B, whose rows are the filters of the window's first cell, then those of the second cell, and so on.
static void rotate_panel(const struct tfc_gemm_right *right, int64_t first, int64_t last, int64_t panel, float *out) {
  const struct rotating *t = (const struct rotating *)(const void *)right;
  const struct conv *c = t->conv;
  const int64_t width = tfc_gemm_panel(), cells = cells_of(t);
  while (first < last) {
    const int64_t cell = filter_cell(t, cells - 1 - first / c->sizes.filters), filter = first % c->sizes.filters;
    const int64_t n = c->sizes.filters - filter < last - first ? c->sizes.filters - filter : last - first;
    struct tfc_matrix b = {t->w + cell * c->sizes.channels * c->sizes.filters + filter, 1, c->sizes.filters};
    tfc_gemm_pack(b, n, c->sizes.channels, panel, panel + 1, out - panel * n * width);
    first += n, out += n * width;
  }
}

struct scatter { // writes the rows of a part to their positions in dx
  const struct conv *conv;
  const struct part *parts;
  const float *from;
  float *dx;
};
// Returns where the first row of a line of a part belongs in dx; the next rows are stride[1] pixels apart.
static float *line_of_part(const struct conv *c, const struct part *parts, int64_t line, float *dx) {
  const struct part *y = &parts[0], *x = &parts[1], *z = &parts[2];
  const int64_t rest = line / y->positions, n = rest / z->positions;
  const int64_t plane = n * c->sizes.in[2] + z->remainder + rest % z->positions * c->sizes.stride[2];
  const int64_t at = plane * c->sizes.in[0] + y->remainder + line % y->positions * c->sizes.stride[0];
  return dx + (at * c->sizes.in[1] + x->remainder) * c->sizes.channels;
}
static void scatter_lines(void *arg, int64_t begin, int64_t end) {
  const struct scatter *s = arg;
  const struct conv *c = s->conv;
  const int64_t positions = s->parts[1].positions;
  for (int64_t line = begin; line < end; line++) {
    float *to = line_of_part(c, s->parts, line, s->dx);
    const float *from = s->from + line * positions * c->sizes.channels;
    for (int64_t q = 0; q < positions; q++, from += c->sizes.channels, to += c->sizes.stride[1] * c->sizes.channels)
      memcpy(to, from, (size_t)c->sizes.channels * sizeof *to);
  }
}

// A part whose filter stays in the cache is computed line by line, where it belongs in dx.
struct in_place {
  const struct conv *conv;
  const struct part *parts;
  struct tfc_gemm_product product;
  float *dx;
  _Atomic bool failed;
};
static void lines_in_place(void *arg, int64_t begin, int64_t end) {
  struct in_place *j = arg;
  const int64_t m = j->parts[1].positions, n = j->conv->sizes.channels, apart = n * j->conv->sizes.stride[1];
  float *a = tfc_thread_scratch(TFC_SCRATCH_A, tfc_gemm_scratch_bytes(m, j->product.k) + 64);
  if (!a) {
    j->failed = true;
    return;
  }
  for (int64_t line = begin; line < end; line++) {
    float *to = line_of_part(j->conv, j->parts, line, j->dx) - line * m * apart; // where row 0 would be
    tfc_gemm_run(&j->product, 1, n, to, apart, false, line * m, (line + 1) * m, 0, tfc_gemm_panels(n), a);
  }
}
// Whether lines begin at whole stripes of rows, and the filter stays in the cache.
static bool fits_in_place(const struct conv *c, const struct part *parts, int64_t k) {
  const struct tfc_gemm_product p = {.k = k};
  return parts[1].positions % 8 == 0 && tfc_gemm_block(&p, 1, c->sizes.channels, false) == 0;
}

// `packed` is the part's rotated filter, packed when the plan was made. NULL: this function packs it.
static tfc_status backward_part(struct tfc_kernel_ctx *ctx, const struct conv *c, const struct part parts[3],
                                const float *w, const float *packed, const float *dy, float *dx) {
  struct tfc_patches patches = {.image = dy, .batch = c->sizes.batch, .channels = c->sizes.filters, .zeros = zeros};
  for (int k = 0; k < 3; k++) {
    patches.in[k] = c->sizes.out[k], patches.out[k] = parts[k].positions, patches.size[k] = parts[k].count;
    patches.stride[k] = 1, patches.dilation[k] = c->sizes.dilation[k], patches.before[k] = parts[k].before;
  }
  tfc_patches_init(&patches);
  struct rotating rotating = {{rotate_panel}, c, {parts[0], parts[1], parts[2]}, w, NULL};
  const int64_t k = cells_of(&rotating) * c->sizes.filters,
                rows = c->sizes.batch * parts[0].positions * parts[1].positions * parts[2].positions;
  const bool by_panels = !packed && tfc_panels_pay(ctx->env->threads, rows, k, c->sizes.channels, true);
  const bool in_place = !by_panels && !tfc_products_may_split(ctx) && fits_in_place(c, parts, k);
  const bool direct = in_place || product_of(1, c->sizes.stride) == 1;
  float *to = direct ? dx : tfc_thread_scratch(TFC_SCRATCH_IMAGE, (size_t)(rows * c->sizes.channels) * sizeof *to);
  if (!to) return tfc_status_no_memory(NULL);
  struct window_sum sum = {.conv = c, .patches = &patches, .w = w, .rotated = true};
  for (int i = 0; i < 2; i++) sum.first[i] = parts[i].first, sum.step[i] = parts[i].step;
  bool done = false;
  TFC_RETURN_IF_ERROR(sum_on_tiles(ctx, &sum, rows, c->sizes.channels, to, &done));
  if (!done) pad_and_scatter(ctx, &patches);
  struct tfc_product p = {.source = &patches.base, .packed_b = packed, .k = k};
  if (packed) {
    // the filter is already packed
  } else if (!done && by_panels) {
    p.right = &rotating.right;
  } else if (!done) {
    p.packed_b = rotating.packed = tfc_thread_scratch(TFC_SCRATCH_FILTER, tfc_gemm_packed_bytes(k, c->sizes.channels));
    if (!rotating.packed) return tfc_status_no_memory(NULL);
    const int64_t pieces = tfc_gemm_panels(c->sizes.channels) * cells_of(&rotating);
    tfc_kernel_parallel_for(ctx, pieces, 8192 / c->sizes.filters / tfc_gemm_panel() + 1, rotate_cells, &rotating);
  }
  if (!done && in_place && product_of(1, c->sizes.stride) != 1) {
    struct in_place j = {c, parts, {.source = p.source, .packed_b = p.packed_b, .k = k}, dx, false};
    const int64_t each = parts[1].positions * c->sizes.channels * k;
    j.product.finite = tfc_gemm_is_finite(p.packed_b, k, c->sizes.channels);
    tfc_kernel_parallel_for(ctx, rows / parts[1].positions, 500000 / each + 1, lines_in_place, &j);
    return j.failed ? tfc_status_no_memory(NULL) : NULL;
  }
  if (!done) TFC_RETURN_IF_ERROR(tfc_products_run(ctx, &p, 1, rows, c->sizes.channels, false, to));
  if (direct) return NULL;
  struct scatter scatter = {c, parts, to, dx};
  int64_t line = parts[1].positions * c->sizes.channels;
  tfc_kernel_parallel_for(ctx, c->sizes.batch * parts[2].positions * parts[0].positions, 16384 / (line + 1) + 1,
                          scatter_lines, &scatter);
  return NULL;
}

static void clear(void *arg, int64_t begin, int64_t end) {
  memset((float *)arg + begin, 0, (size_t)(end - begin) * sizeof(float));
}

static tfc_status backward_input(struct tfc_kernel_ctx *ctx, const struct conv *c) {
  const float *w = ctx->inputs[1]->data, *dy = ctx->inputs[2]->data;
  struct tfc_tensor *dx = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &c->shape, &dx));
  if (c->pointwise) {
    struct tfc_product p = {.a = {dy, c->sizes.filters, 1}, .b = {w, 1, c->sizes.filters}, .k = c->sizes.filters};
    if (c->packed_count && !tfc_products_may_split(ctx)) p.packed_b = c->packed[0];
    return tfc_products_run(ctx, &p, 1, product_of(c->sizes.batch, c->sizes.in), c->sizes.channels, false, dx->data);
  }
  // If a window is smaller than its stride, some positions of x meet no cell; no part writes them.
  if (c->sizes.size[0] < c->sizes.stride[0] || c->sizes.size[1] < c->sizes.stride[1] ||
      c->sizes.size[2] < c->sizes.stride[2])
    tfc_kernel_parallel_for(ctx, tfc_tensor_elements(dx), 65536, clear, dx->data);
  for (int64_t i = 0; i < product_of(1, c->sizes.stride); i++) {
    struct part parts[3];
    bool any = true;
    parts_of(c, i, parts);
    for (int k = 0; k < 3; k++) any = any && parts[k].count && parts[k].positions > 0;
    const float *packed = c->packed_count ? c->packed[i] : NULL;
    if (any) TFC_RETURN_IF_ERROR(backward_part(ctx, c, parts, w, packed, dy, dx->data));
  }
  return NULL;
}

// --- Constant filters --------------------------------------------------------------------------------------------
static float *packed_memory(int64_t k, int64_t n) {
  return aligned_alloc(64, (tfc_gemm_packed_bytes(k, n) + 63) / 64 * 64);
}

// Packs a constant filter when the plan is made, because packing takes as long as multiplying it by a hundred rows or
// more. If the device has a memory limit, or the allocation fails, the filter is packed in each step.
static void pack_constant(const struct tfc_cpu_prepare *p, struct conv *c) {
  const struct tfc_tensor *w = p->base->input_values ? p->base->input_values[1] : NULL;
  const struct tfc_conv_sizes *z = &c->sizes;
  if (!w || z->role == TFC_CONV_FILTER || p->device->info.memory != UINT64_MAX) return;
  const bool forward = z->role == TFC_CONV_FORWARD;
  if (product_of(z->batch, forward ? z->out : z->in) < LEAST_POSITIONS)
    return; // with so few positions, products read the filter in place
  const int64_t parts = forward || c->pointwise ? 1 : product_of(1, z->stride);
  if (parts > MOST_PARTS) return;
  c->packed = tfc_arena_zalloc(p->base->arena, (size_t)parts * sizeof *c->packed);
  if (!c->packed) return;
  for (c->packed_count = 0; c->packed_count < parts; c->packed_count++) {
    float **out = &c->packed[c->packed_count];
    if (forward || c->pointwise) {
      const int64_t k = forward ? product_of(z->channels, z->size) : z->filters, n = forward ? z->filters : z->channels;
      const struct tfc_matrix b = {w->data, forward ? n : 1, forward ? 1 : k};
      if ((*out = packed_memory(k, n))) tfc_gemm_pack(b, k, n, 0, tfc_gemm_panels(n), *out);
      continue;
    }
    struct rotating rotating = {.conv = c, .w = w->data};
    parts_of(c, c->packed_count, rotating.parts);
    const int64_t cells = cells_of(&rotating);
    if (!cells || !(*out = packed_memory(cells * z->filters, z->channels))) continue;
    rotating.packed = *out;
    rotate_cells(&rotating, 0, tfc_gemm_panels(z->channels) * cells);
  }
}

// --- Backward, filter --------------------------------------------------------------------------------------------
struct filter_job {
  const struct conv *conv;
  struct tfc_patches patches;
  const float *dy;
  float *packed, *dw;                        // `packed`: dy; NULL: each thread packs the pieces of dy that it needs
  int64_t positions, rows, pieces, panels;   // positions are divided into pieces
  int64_t row_part, panel_part, panel_parts; // dw is divided into parts of row_part rows and panel_part panels
  _Atomic bool failed;
};
static int64_t piece_length(const struct filter_job *j, int64_t piece) {
  return j->positions - piece * PIECE < PIECE ? j->positions - piece * PIECE : PIECE;
}
enum { ROWS_PACKED = 32, PACKINGS = PIECE / ROWS_PACKED }; // a call of pack_dy packs ROWS_PACKED rows of a piece
static void pack_dy(void *arg, int64_t begin, int64_t end) {
  const struct filter_job *j = arg;
  int64_t filters = j->conv->sizes.filters, width = tfc_gemm_panel();
  for (int64_t i = begin; i < end; i++) {
    int64_t q = i / PACKINGS, k = piece_length(j, q), first = i % PACKINGS * ROWS_PACKED;
    int64_t last = first + ROWS_PACKED < k ? first + ROWS_PACKED : k;
    struct tfc_matrix b = {j->dy + q * PIECE * filters, filters, 1};
    tfc_gemm_pack_part(b, k, filters, first, last, 0, j->panels, j->packed + q * PIECE * j->panels * width);
  }
}
static void filter_part(void *arg, int64_t begin, int64_t end) {
  struct filter_job *j = arg;
  int64_t filters = j->conv->sizes.filters, width = tfc_gemm_panel();
  for (int64_t part = begin; part < end; part++) {
    int64_t row = part / j->panel_parts * j->row_part, first = part % j->panel_parts * j->panel_part;
    int64_t row_end = row + j->row_part < j->rows ? row + j->row_part : j->rows, last = first + j->panel_part;
    if (last > j->panels) last = j->panels;
    float *a = tfc_thread_scratch(TFC_SCRATCH_A, tfc_gemm_scratch_bytes(row_end - row, PIECE) + 64);
    const bool in_place = tfc_pieces_read_in_place(filters);
    float *b = NULL;
    if (!j->packed && !in_place)
      b = tfc_thread_scratch(TFC_SCRATCH_B, tfc_gemm_packed_bytes(PIECE, (last - first) * width));
    if (!a || !(b || j->packed || in_place)) {
      j->failed = true;
      return;
    }
    for (int64_t q = 0; q < j->pieces; q++) {
      struct tfc_patches_transposed source;
      const int64_t k = piece_length(j, q);
      const float *dy = j->dy + q * PIECE * filters;
      tfc_patches_transpose(&j->patches, q * PIECE, k, &source);
      struct tfc_gemm_product p = {.b = dy, .b_row = filters, .k = k};
      if (j->packed) {
        p.packed_b = j->packed + q * PIECE * j->panels * width;
      } else if (!in_place) {
        p.packed_b = b - first * k * width;
        tfc_gemm_pack((struct tfc_matrix){dy, filters, 1}, k, filters, first, last, b - first * k * width);
      }
      tfc_pieces_multiply(&source, &p, filters, j->dw, q > 0, row, row_end, first, last, a);
    }
  }
}

// With a window of one cell no patches are needed: dw = x, transposed, times dy.
enum { MOST_PACKED = 8 << 20, STRETCH = TFC_SPLIT_GROUP * TFC_SPLIT_K };
static tfc_status matrix_on_tiles(const struct conv *c, const float *x, const float *dy, float *dw, bool *out_done) {
  const int64_t positions = c->sizes.batch * c->sizes.out[0] * c->sizes.out[1];
  int64_t round = MOST_PACKED / (6 * c->sizes.filters) / STRETCH * STRETCH;
  if (round < STRETCH) round = STRETCH;
  *out_done = true;
  for (int64_t first = 0; first < positions && *out_done; first += round) {
    struct tfc_split_product p = {.a = {.matrix = {x + first * c->sizes.channels, 1, c->sizes.channels}},
                                  .b = {.matrix = {dy + first * c->sizes.filters, c->sizes.filters, 1}},
                                  .k = positions - first < round ? positions - first : round};
    TFC_RETURN_IF_ERROR(tfc_products_run_split(&p, 1, c->sizes.channels, c->sizes.filters, first > 0, dw, out_done));
  }
  return NULL;
}

// Computes dw on the tile unit: for each cell of the window a part of dw, [channels, filters] = (the pixels that the
// cell meets), transposed, times dy, summed over blocks of positions. dy is packed once, patches are packed when they
// are used.
static tfc_status filter_on_tiles(struct tfc_kernel_ctx *ctx, const struct conv *c, const struct tfc_patches *patches,
                                  const float *dy, float *dw, bool *out_done) {
  const int64_t positions = c->sizes.batch * c->sizes.out[0] * c->sizes.out[1],
                cells = c->sizes.size[0] * c->sizes.size[1];
  const int64_t filters = c->sizes.filters, panels = tfc_split_sides(filters);
  *out_done = false;
  if (!tfc_patches_are_flat(patches) ||
      !tfc_products_choose_split(ctx, c->sizes.channels, filters, positions, tfc_split_blocks(positions), cells > 1))
    return NULL;
  if (c->pointwise) return matrix_on_tiles(c, patches->image, dy, dw, out_done);
  int64_t round = MOST_PACKED / (6 * filters) / STRETCH * STRETCH;
  if (round < STRETCH) round = STRETCH;
  if (round > positions) round = positions;
  void *packed = tfc_thread_scratch(TFC_SCRATCH_FILTER, tfc_split_packed_bytes(round, filters));
  void *scratch = tfc_thread_scratch(TFC_SCRATCH_A, TFC_SPLIT_SCRATCH);
  if (!packed || !scratch) return tfc_status_no_memory(NULL);
  for (int64_t first = 0; first < positions; first += round) {
    const int64_t k = positions - first < round ? positions - first : round;
    struct tfc_split_matrix b = {.matrix = {dy + first * filters, filters, 1}};
    if (!tfc_split_pack_b(&b, k, filters, 0, panels, packed)) return NULL;
    for (int64_t q = 0; q < cells; q++) {
      struct tfc_patches_cell cell = {patches, q / c->sizes.size[1], q % c->sizes.size[1], first};
      struct tfc_split_product p = {.a = tfc_patches_of_cell(&cell), .packed_b = packed, .k = k};
      p.a.transposed = true;
      if (!tfc_split_run(&p, 1, filters, dw + q * c->sizes.channels * filters, filters, first > 0, 0, c->sizes.channels,
                         0, panels, scratch))
        return NULL;
    }
  }
  *out_done = true;
  return NULL;
}

static tfc_status backward_filter(struct tfc_kernel_ctx *ctx, const struct conv *c) {
  const float *x = ctx->inputs[0]->data, *dy = ctx->inputs[2]->data;
  struct tfc_tensor *dw = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &c->shape, &dw));
  struct tfc_patches patches = patches_of_input(c, x);
  bool done = false;
  TFC_RETURN_IF_ERROR(filter_on_tiles(ctx, c, &patches, dy, dw->data, &done));
  if (done) return NULL;
  if (tfc_lines_pay(&patches, c->sizes.filters)) return tfc_lines_filter(ctx, &patches, dy, c->sizes.filters, dw->data);
  if (!c->pointwise && tfc_patches_pad(ctx, &patches, c->sizes.channels % 8 ? PADDED_ODD : PADDED_MORE))
    tfc_patches_scatter(&patches);
  if (tfc_pieces_pay(&patches)) return tfc_pieces_filter(ctx, &patches, dy, c->sizes.filters, dw->data);
  struct filter_job j = {.conv = c, .patches = patches, .dy = dy, .dw = dw->data};
  j.positions = product_of(c->sizes.batch, c->sizes.out);
  j.rows = product_of(c->sizes.channels, c->sizes.size);
  j.pieces = (j.positions + PIECE - 1) / PIECE;
  j.panels = tfc_gemm_panels(c->sizes.filters);
  // If each thread takes one part of many rows, it packs pieces of dy itself, which then come from its own cache.
  const int64_t even = ((j.rows + ctx->env->threads - 1) / ctx->env->threads + 7) / 8 * 8;
  if (ctx->env->threads == 1 || even >= LEAST_ROWS || tfc_pieces_read_in_place(c->sizes.filters)) {
    j.row_part = even, j.panel_part = j.panels;
  } else {
    j.packed = tfc_thread_scratch(TFC_SCRATCH_FILTER, tfc_gemm_packed_bytes(j.positions, c->sizes.filters));
    if (!j.packed) return tfc_status_no_memory(NULL);
    tfc_kernel_parallel_for(ctx, (j.positions + ROWS_PACKED - 1) / ROWS_PACKED, 1, pack_dy, &j);
    // Every part of dw reads packed pieces of dy. If a piece is larger than the second-level cache, parts get more
    // rows, so that dy is read less often.
    const bool near = j.panels * tfc_gemm_panel() * PIECE * (int64_t)sizeof(float) <= 512 * 1024;
    tfc_products_split(j.rows, j.panels, ctx->env->threads, near ? 24 : 64, &j.row_part, &j.panel_part);
  }
  j.panel_parts = (j.panels + j.panel_part - 1) / j.panel_part;
  tfc_kernel_parallel_for(ctx, j.panel_parts * ((j.rows + j.row_part - 1) / j.row_part), 1, filter_part, &j);
  return j.failed ? tfc_status_no_memory(NULL) : NULL;
}

static tfc_status run(struct tfc_kernel_ctx *ctx) {
  const struct conv *c = ctx->state;
  if (c->late) return forward_late(ctx, c);
  return c->sizes.role == TFC_CONV_FORWARD ? forward(ctx, c)
         : c->sizes.role == TFC_CONV_INPUT ? backward_input(ctx, c)
                                           : backward_filter(ctx, c);
}

static const struct tfc_cpu_kernel rows[] = {
    {"Conv2D", TFC_TYPE_BIT(TFC_FLOAT), prepare, run, TFC_CONV_FORWARD},
    {"Conv2DBackpropInput", 0, prepare, run, TFC_CONV_INPUT},
    {"Conv2DBackpropFilter", TFC_TYPE_BIT(TFC_FLOAT), prepare, run, TFC_CONV_FILTER},
    {"Conv3D", TFC_TYPE_BIT(TFC_FLOAT), prepare, run, TFC_CONV_FORWARD},
    {"Conv3DBackpropInputV2", 0, prepare, run, TFC_CONV_INPUT},
    {"Conv3DBackpropFilterV2", TFC_TYPE_BIT(TFC_FLOAT), prepare, run, TFC_CONV_FILTER},
};
TFC_CPU_KERNELS(rows);
