// The gradient dw of a convolution's filter. The output positions are divided into pieces. A thread takes a piece,
// packs the piece's rows of dy and of the patches (little enough for its cache), and multiplies. The products of all
// pieces are kept apart and added in the order of the pieces, so that the bits do not depend on which thread computed
// which piece.
//
// If there are fewer pieces than threads, dw itself is divided too; then several threads pack the same rows.
#include "runtime/device/cpu/conv/pieces.h"

#include "runtime/host/gemm/scratch.h"

enum { MOST_PARTS = 8, ELEMENTS = 2048 };

struct job {
  const struct tfc_patches *p;
  bool pointwise; // the window is one cell with stride 1: the image itself is the matrix
  const float *dy;
  float *dw, *sums; // the first piece's sum is dw; `sums` holds those of the others
  int64_t filters, positions, rows, pieces, panels;
  int64_t row_part, row_parts, panel_part, panel_parts; // dw is divided into row_parts * panel_parts parts
  _Atomic bool failed;
};

static int64_t rows_of(const struct tfc_patches *p) {
  return p->size[0] * p->size[1] * p->size[2] * p->channels;
}
static int64_t positions_of(const struct tfc_patches *p) {
  return p->batch * p->out[0] * p->out[1] * p->out[2];
}

// Whether pieces are faster. Their sums are written to memory, so the sums must be small compared with the memory that
// is read. (If dw has more rows, it can be divided by rows instead, and each thread packs only its own rows.)
bool tfc_pieces_pay(const struct tfc_patches *p) {
  const int64_t positions = positions_of(p), pieces = (positions + TFC_PIECE - 1) / TFC_PIECE;
  return pieces > 1 && rows_of(p) * pieces * 15 <= positions * 8;
}

// Few filters are read in place, because a packed panel of them would be mostly zeros. 64 filters are one tile where
// panels are wide: a panel of 48 and one more vector.
bool tfc_pieces_read_in_place(int64_t filters) {
  enum { MOST = 64, MOST_OF_NARROW = 32 };
  return filters % 16 == 0 && filters <= (tfc_gemm_panels_are_wide() ? MOST : MOST_OF_NARROW);
}

// Whether an image is packed, because reading it in place would take longer: an image with many channels, whose pixels
// for neighbouring positions are `step` elements apart, is on too many pages of memory, and many narrow panels would
// read it too often.
static bool is_far(int64_t step, int64_t first, int64_t last) {
  enum { FAR = 320, MOST_PANELS = 4 };
  return step > FAR || (!tfc_gemm_panels_are_wide() && last - first > MOST_PANELS);
}

void tfc_pieces_multiply(const struct tfc_patches_transposed *t, const struct tfc_gemm_product *product,
                         int64_t filters, float *dw, bool accumulate, int64_t row, int64_t row_end, int64_t first,
                         int64_t last, float *scratch) {
  enum { STRIPE = 8 };
  struct tfc_gemm_steps steps[TFC_PATCHES_POSITIONS];
  const struct tfc_patches *p = t->patches;
  const int64_t c = p->channels;
  struct tfc_gemm_turned turned = {.steps = steps, .a_row = p->stride[1] * c, .rows = STRIPE};
  const bool far = is_far(turned.a_row, first, last);
  if (!far && c % STRIPE && p->inside && p->base.stretch) { // the rows of a stripe belong to different cells
    turned.count = tfc_patches_lines(t, steps);
    for (; row < row_end; row += STRIPE) {
      turned.apart = p->offsets + row, turned.rows = row_end - row < STRIPE ? row_end - row : STRIPE;
      tfc_gemm_run_transposed(product, &turned, filters, dw + row * filters, filters, accumulate, first, last);
    }
    return;
  }
  if (far || c % STRIPE) {
    struct tfc_gemm_product packed = *product;
    packed.source = &t->base;
    tfc_gemm_run(&packed, 1, filters, dw, filters, accumulate, row, row_end, first, last, scratch);
    return;
  }
  for (int64_t known = -1; row < row_end; row += STRIPE) {
    if (row / c != known) turned.count = tfc_patches_steps(t, known = row / c, steps);
    turned.offset = row % c;
    tfc_gemm_run_transposed(product, &turned, filters, dw + row * filters, filters, accumulate, first, last);
  }
}

static int64_t piece_length(const struct job *j, int64_t piece) {
  const int64_t left = j->positions - piece * TFC_PIECE;
  return left < TFC_PIECE ? left : TFC_PIECE;
}

// As tfc_pieces_multiply, for a window of one cell.
static void matrix_piece(const struct job *j, struct tfc_gemm_product *product, int64_t q, int64_t row, int64_t row_end,
                         int64_t first, int64_t last, float *sum, float *scratch) {
  enum { STRIPE = 8 };
  const int64_t c = j->p->channels;
  const float *from = j->p->image + q * TFC_PIECE * c;
  if (c % STRIPE || is_far(c, first, last)) {
    product->a = (struct tfc_matrix){from, 1, c};
    tfc_gemm_run(product, 1, j->filters, sum, j->filters, false, row, row_end, first, last, scratch);
    return;
  }
  const struct tfc_gemm_steps steps = {from, 0, product->k};
  for (; row < row_end; row += STRIPE) {
    const struct tfc_gemm_turned turned = {&steps, 1, row, c, NULL, STRIPE};
    tfc_gemm_run_transposed(product, &turned, j->filters, sum + row * j->filters, j->filters, false, first, last);
  }
}

static void sum_pieces(void *arg, int64_t begin, int64_t end) {
  struct job *j = arg;
  const int64_t width = tfc_gemm_panel();
  for (int64_t i = begin; i < end; i++) {
    const int64_t parts = j->row_parts * j->panel_parts, q = i / parts, part = i % parts, k = piece_length(j, q);
    const int64_t row = part / j->panel_parts * j->row_part, first = part % j->panel_parts * j->panel_part;
    const int64_t row_end = row + j->row_part < j->rows ? row + j->row_part : j->rows;
    const int64_t last = first + j->panel_part < j->panels ? first + j->panel_part : j->panels;
    float *a = tfc_thread_scratch(TFC_SCRATCH_A, tfc_gemm_scratch_bytes(row_end - row, k) + 64);
    const float *dy = j->dy + q * TFC_PIECE * j->filters;
    const bool in_place = tfc_pieces_read_in_place(j->filters);
    float *b = in_place ? NULL : tfc_thread_scratch(TFC_SCRATCH_B, tfc_gemm_packed_bytes(k, (last - first) * width));
    if (!a || (!b && !in_place)) {
      j->failed = true;
      return;
    }
    struct tfc_gemm_product product = {.b = dy, .b_row = j->filters, .k = k};
    if (!in_place) {
      product.packed_b = b -= first * k * width;
      tfc_gemm_pack((struct tfc_matrix){dy, j->filters, 1}, k, j->filters, first, last, b);
    }
    float *sum = q ? j->sums + (q - 1) * j->rows * j->filters : j->dw;
    if (j->pointwise) {
      matrix_piece(j, &product, q, row, row_end, first, last, sum, a);
      continue;
    }
    struct tfc_patches_transposed source;
    tfc_patches_transpose(j->p, q * TFC_PIECE, k, &source);
    tfc_pieces_multiply(&source, &product, j->filters, sum, false, row, row_end, first, last, a);
  }
}

static void add_sums(void *arg, int64_t begin, int64_t end) {
  const struct job *j = arg;
  const int64_t all = j->rows * j->filters;
  for (int64_t i = begin; i < end; i++) {
    const int64_t from = i * ELEMENTS, n = all - from < ELEMENTS ? all - from : ELEMENTS;
    float *restrict dw = j->dw + from;
    for (int64_t q = 1; q < j->pieces; q++) {
      const float *restrict sum = j->sums + (q - 1) * all + from;
      for (int64_t k = 0; k < n; k++) dw[k] = dw[k] + sum[k];
    }
  }
}

// Chooses the number of parts of dw that has the least estimated time: the cycles per position for multiplying and for
// packing both sides, plus half of a piece at the end, which a thread waits for the others on average.
static void choose_parts(struct job *j, int64_t threads) {
  double best = 0;
  for (int64_t r = 1; r <= MOST_PARTS; r++)
    for (int64_t s = 1; s <= MOST_PARTS && s <= j->panels; s++) {
      const int64_t rows = ((j->rows + r - 1) / r + 7) / 8 * 8, panels = (j->panels + s - 1) / s;
      const int64_t row_parts = (j->rows + rows - 1) / rows, panel_parts = (j->panels + panels - 1) / panels;
      const double one = 1.5 * (double)(rows * panels) + 0.5 * (double)rows + 10 * (double)panels;
      const double work = 1.5 * (double)(j->rows * j->panels) + 0.5 * (double)(j->rows * panel_parts) +
                          10 * (double)(j->panels * row_parts);
      const double time = work * (double)j->positions / (double)threads + (threads > 1 ? one * TFC_PIECE / 2 : 0);
      if (best > 0 && time >= best) continue;
      best = time;
      j->row_part = rows, j->row_parts = row_parts, j->panel_part = panels, j->panel_parts = panel_parts;
    }
}

tfc_status tfc_pieces_filter(struct tfc_kernel_ctx *ctx, const struct tfc_patches *p, const float *dy, int64_t filters,
                             float *dw) {
  struct job j = {.p = p, .dy = dy, .dw = dw, .filters = filters, .positions = positions_of(p), .rows = rows_of(p)};
  j.pointwise = true;
  for (int k = 0; k < 3; k++)
    j.pointwise = j.pointwise && p->size[k] == 1 && p->stride[k] == 1 && p->before[k] == 0 && p->out[k] == p->in[k];
  j.pieces = (j.positions + TFC_PIECE - 1) / TFC_PIECE;
  j.panels = tfc_gemm_panels(filters);
  choose_parts(&j, ctx->env->threads);
  j.sums = tfc_thread_scratch(TFC_SCRATCH_FILTER, (size_t)((j.pieces - 1) * j.rows * filters) * sizeof *j.sums);
  if (!j.sums) return tfc_status_no_memory(NULL);
  tfc_kernel_parallel_for(ctx, j.pieces * j.row_parts * j.panel_parts, 1, sum_pieces, &j);
  if (j.failed) return tfc_status_no_memory(NULL);
  tfc_kernel_parallel_for(ctx, (j.rows * filters + ELEMENTS - 1) / ELEMENTS, 4, add_sums, &j);
  return NULL;
}
