// B is first packed in the caller's scratch memory if that pays (always if B is transposed, else if B and A have many
// rows); otherwise B is read in place, and only its last panel is packed. Then pieces of C, divided by panels of
// columns and, if these are too few, by rows, run on any free core; the result does not depend on which.
//
// For few rows times a transposed B that is not packed, the transposed product is computed: B is then packed in stripes
// while it is used, and never written as a whole. Each element is the same chain of multiply-adds.
#include "runtime/host/gemm/products.h"

#include <math.h>
#include <string.h>

#include "runtime/host/gemm/panels.h"
#include "runtime/host/gemm/scratch.h"

// Measured limits are of one core of an AMD EPYC with AVX-512 and 1 MB of second-level cache, where a product reaches
// 118 GFLOP/s at most. A range of ratios holds for all sizes that were measured between the named ones.
enum {
  // A product of fewer rows reads B in place, because packing B would take as long as multiplying by it.
  few_rows = 12,
  MOST_ROW_PARTS = 256,
  // If rows are divided among threads, each part reads all of B: with at least 48 rows, that takes little of its time.
  LEAST_ROWS = 48,
  LEAST_PIECE = 24,
  // A piece takes one core some 25 us, of which taking the next piece is less than a hundredth. The thread that ends
  // first waits for the others for at most four times as long.
  PIECE_FLOP = 3000000,
  MOST_PIECE_FLOP = 12000000
};

struct job {
  bool as_one, joined; // the right sides are packed as one; `joined` as in tfc_gemm_product
  struct tfc_gemm_product products[TFC_PRODUCTS_MOST];
  const struct tfc_product *given;
  int64_t count, total_k, m, n;
  float *c;
  bool accumulate;
  int64_t row_part, panel_part, panel_parts; // the sizes of a piece
  int64_t row_parts;
  int64_t threads;
  const struct tfc_kernel_finish *finish; // finishes rows when a thread has computed all their panels; NULL: there is
                                          // none
  int64_t finish_rows;                    // at most so many rows are computed before they are finished
  _Atomic bool begun[MOST_ROW_PARTS];     // each part of the rows
  _Atomic int64_t next[MOST_ROW_PARTS];   // the next piece of each part
  _Atomic bool failed;
};

static void run_pieces(void *arg, int64_t begin, int64_t end) {
  struct job *job = arg;
  for (int64_t piece = begin; piece < end; piece++) {
    int64_t row = piece / job->panel_parts * job->row_part, first = piece % job->panel_parts * job->panel_part;
    int64_t row_end = row + job->row_part < job->m ? row + job->row_part : job->m;
    int64_t panels = tfc_gemm_panels(job->n), last = first + job->panel_part;
    float *a = tfc_thread_scratch(TFC_SCRATCH_A, tfc_gemm_scratch_bytes(row_end - row, job->total_k) + 64);
    if (!a) {
      job->failed = true;
      return;
    }
    last = last < panels ? last : panels;
    if (!job->finish)
      tfc_gemm_run(job->products, job->count, job->n, job->c, job->n, job->accumulate, row, row_end, first, last, a);
    for (int64_t next; job->finish && row < row_end; row = next) {
      next = row + job->finish_rows < row_end ? row + job->finish_rows : row_end;
      tfc_gemm_run(job->products, job->count, job->n, job->c, job->n, job->accumulate, row, next, first, last, a);
      job->finish->rows(job->finish, job->c, row, next);
    }
  }
}

// Runs pieces of one part of the rows until none is left; each thread that works on the part packs its rows of A once.
static void run_row_part(struct job *job, int64_t part) {
  const int64_t panels = tfc_gemm_panels(job->n), row = part * job->row_part;
  const int64_t row_end = row + job->row_part < job->m ? row + job->row_part : job->m;
  float *a = NULL;
  for (int64_t i; (i = atomic_fetch_add_explicit(&job->next[part], 1, memory_order_relaxed)) < job->panel_parts;) {
    if (!a) {
      a = tfc_thread_scratch(TFC_SCRATCH_A, tfc_gemm_scratch_bytes(row_end - row, job->total_k) + 64);
      if (!a) {
        job->failed = true;
        return;
      }
      tfc_gemm_pack_a(job->products, job->count, row, row_end, a);
    }
    int64_t first = i * job->panel_part, last = first + job->panel_part < panels ? first + job->panel_part : panels;
    tfc_gemm_run_block(job->products, job->count, job->n, job->c, job->n, job->accumulate, row, row_end, first, last,
                       a);
  }
}

// Runs the work of one thread: first its own parts of the rows, then parts that no thread has begun, then pieces of the
// parts with the most pieces left.
static void share(void *arg, int64_t begin, int64_t end) {
  struct job *job = arg;
  if (begin >= end) return;
  for (int64_t i = 0, first = job->row_parts * begin / job->threads; i < job->row_parts; i++) {
    const int64_t part = (first + i) % job->row_parts;
    if (atomic_load_explicit(&job->begun[part], memory_order_relaxed)) continue;
    if (!atomic_exchange_explicit(&job->begun[part], true, memory_order_relaxed)) run_row_part(job, part);
  }
  for (;;) {
    int64_t best = -1, most = 1; // a part's last piece is left to the threads that already work on the part
    for (int64_t part = 0; part < job->row_parts; part++) {
      int64_t left = job->panel_parts - atomic_load_explicit(&job->next[part], memory_order_relaxed);
      if (left > most) best = part, most = left;
    }
    if (best < 0) return;
    run_row_part(job, best);
  }
}

// A thread packs rows of A once and takes a few panels of B at a time, so that threads that are slower or come later do
// less.
static bool share_out(struct job *job, int64_t threads) {
  const int64_t block = tfc_gemm_block(job->products, job->count, job->n, job->accumulate);
  const int64_t panels = tfc_gemm_panels(job->n);
  if (!block) return false;
  int64_t parts = (job->m + block - 1) / block, even = (parts + threads - 1) / threads * threads;
  const int64_t most = job->m / LEAST_ROWS > 1 ? job->m / LEAST_ROWS : 1;
  if (even <= most)
    parts = even;
  else if (parts < most)
    parts = most;
  // The thread that finishes first may have to wait for a piece, so pieces must not be too long.
  const double panel_flop = 2.0 * (double)job->m * (double)tfc_gemm_panel() * (double)job->total_k;
  while (2 * parts <= most && panel_flop / (double)parts > MOST_PIECE_FLOP) parts *= 2;
  job->row_part = ((job->m + parts - 1) / parts + 7) / 8 * 8;
  job->row_parts = (job->m + job->row_part - 1) / job->row_part;
  if (job->row_part > block || job->row_parts > MOST_ROW_PARTS) return false;
  double flop = 2.0 * (double)job->row_part * (double)tfc_gemm_panel() * (double)job->total_k;
  job->panel_part = (int64_t)(PIECE_FLOP / flop) + 1;
  if (job->panel_part > panels) job->panel_part = panels;
  job->panel_parts = (panels + job->panel_part - 1) / job->panel_part;
  return true;
}

// Whether rows of B are read in place. With few rows of A each panel is read once. More rows read it from the
// second-level cache if it stays there: its rows of 3 lines each share only as many cache sets as their distance allows
// (for the smallest cache: 1024 sets of 16 lines, half of it for A and C).
static bool read_in_place(const struct tfc_product *p, int64_t m, int64_t n) {
  enum {
    line = 16,
    lines = 3,
    sets = 1024,
    ways = 16,
    many_rows = 512,
    many_rows_of_narrow = 40,
    short_k = 256,
    few_k = 64
  };
  const bool is_narrow = tfc_gemm_panel() < lines * line;
  if (p->b.column != 1 || m < few_rows) return p->b.column == 1;
  // False if packing takes only a small part of the time. (With narrow panels, this is so from fewer rows on, because
  // rows that are read in place are parts of cache lines in many pages.) Otherwise true if the panel fits into the
  // first-level cache.
  const bool long_enough = p->k >= short_k || p->k <= few_k; // a few rows of a panel stay in the first-level cache
  if (m > (is_narrow ? many_rows_of_narrow : many_rows) || !long_enough) return false;
  if (p->b.row % line || n < 2 * tfc_gemm_panel() || (uintptr_t)p->b.data % (line * sizeof(float))) return false;
  int64_t apart = p->b.row / line % sets, common = apart & -apart; // the power of two in the distance
  if (!apart) return false;
  int64_t used = common <= lines ? sets : sets / common * lines;
  return p->k * lines <= used * ways / 2;
}

// Whether chains are so short, and their rows so many, that packing B takes less time than it saves, although B could
// be read in place: if a sum is packed as one, a tile of C is read and written once for several chains. A sum of 20
// products with 800 columns takes 0.84 to 0.92 of the time if k is 16 to 32 and rows are 96 to 256, 0.93 to 1.00 if k
// is 48 or 64. If k is 96, it takes 0.96 to 1.12, and 64 rows with k from 32 on 1.04 to 1.10.
static bool are_short(const struct tfc_product *p, int64_t m, int64_t n) {
  return m >= 96 && (p->k <= 32 || (p->k <= 64 && n >= 512));
}

// Whether the right sides of a sum are packed as one: only if all of them are packed here.
static bool pack_as_one(const struct job *job) {
  bool can = job->count > 1;
  for (int64_t i = 0; i < job->count && can; i++) {
    const struct tfc_product *p = &job->given[i];
    can = !p->packed_b && !p->source && (are_short(p, job->m, job->n) || !read_in_place(p, job->m, job->n));
  }
  return can;
}

// Computes where each B is packed, as offsets in floats into one block, and the size of the block.
static size_t lay_out(const struct job *job, size_t *offsets) {
  size_t at = 0;
  int64_t width = tfc_gemm_panel();
  for (int64_t i = 0; i < job->count; i++) {
    const struct tfc_product *p = &job->given[i];
    offsets[i] = at;
    if (p->packed_b) continue;
    if (job->as_one) {
      at += (size_t)(p->k * width); // the next product begins behind the rows of this one
      continue;
    }
    int64_t panels = read_in_place(p, job->m, job->n) ? job->n % width != 0 : tfc_gemm_panels(job->n);
    at += ((size_t)(panels * p->k * width) + 15) / 16 * 16;
  }
  if (job->as_one) at *= (size_t)tfc_gemm_panels(job->n);
  return (at + (size_t)(8 * width)) * sizeof(float);
}

struct packing {
  struct job *job;
  float *memory;
  const size_t *offsets;
};
enum { PACKED_ROWS = 64 }; // rows of B that a thread packs at a time

// Packs pieces [begin, end). A piece is PACKED_ROWS rows of the B of one product; pieces are numbered through all
// products.
static void pack_pieces(void *arg, int64_t begin, int64_t end) {
  const struct packing *packing = arg;
  struct job *job = packing->job;
  const int64_t panels = tfc_gemm_panels(job->n), width = tfc_gemm_panel();
  for (int64_t i = 0; i < job->count && end > 0; i++) {
    const struct tfc_product *p = &job->given[i];
    const int64_t pieces = (p->k + PACKED_ROWS - 1) / PACKED_ROWS;
    if (begin < pieces && !p->packed_b) {
      const int64_t first = begin > 0 ? begin * PACKED_ROWS : 0, last = end < pieces ? end * PACKED_ROWS : p->k;
      float *memory = packing->memory + packing->offsets[i];
      if (job->as_one)
        tfc_gemm_pack_part(p->b, job->total_k, job->n, first, last, 0, panels, memory);
      else if (!read_in_place(p, job->m, job->n))
        tfc_gemm_pack_part(p->b, p->k, job->n, first, last, 0, panels, memory);
      else if (job->n % width)
        tfc_gemm_pack_part(p->b, p->k, job->n, first, last, panels - 1, panels, memory - (panels - 1) * width * p->k);
    }
    begin -= pieces, end -= pieces;
  }
}

// Fills job->products. `ctx` NULL: packs only on this thread.
static bool pack_operands(struct tfc_kernel_ctx *ctx, struct job *job) {
  size_t offsets[TFC_PRODUCTS_MOST];
  job->as_one = pack_as_one(job);
  job->joined = job->as_one && ctx && ctx->rounding; // one chain over the k of all products
  float *memory = tfc_thread_scratch(TFC_SCRATCH_B, lay_out(job, offsets));
  if (!memory) return false;
  struct packing packing = {job, memory, offsets};
  int64_t panels = tfc_gemm_panels(job->n), pieces = 0, needed = 0;
  for (int64_t i = 0; i < job->count; i++) {
    const struct tfc_product *p = &job->given[i];
    struct tfc_gemm_product *q = &job->products[i];
    job->total_k += p->k;
    pieces += (p->k + PACKED_ROWS - 1) / PACKED_ROWS;
    *q = (struct tfc_gemm_product){
        .a = p->a, .source = p->source, .packed_b = p->packed_b, .k = p->k, .joined = job->joined};
    if (p->packed_b) continue;
    if (!job->as_one && read_in_place(p, job->m, job->n)) {
      q->b = p->b.data, q->b_row = p->b.row, q->tail = memory + offsets[i];
      needed += job->n % tfc_gemm_panel() ? p->k : 0;
    } else {
      q->packed_b = memory + offsets[i];
      needed += p->k * panels;
    }
  }
  for (int64_t i = 0; i < job->count && job->as_one; i++) job->products[i].panel_rows = job->total_k;
  if (!needed) return true;
  if (ctx && needed * tfc_gemm_panel() > 16384)
    tfc_kernel_parallel_for(ctx, pieces, 1, pack_pieces, &packing);
  else
    pack_pieces(&packing, 0, pieces);
  return true;
}

// Finds the size of a piece with which equal pieces keep all threads busy to the end; *out_time: when the last one
// ends.
static int64_t even_part(int64_t units, int64_t threads, int64_t multiple, int64_t least, int64_t *out_time) {
  int64_t best = units;
  *out_time = units;
  for (int64_t rounds = 6; rounds > 0; rounds--) {
    int64_t part = (units + rounds * threads - 1) / (rounds * threads);
    part = (part + multiple - 1) / multiple * multiple;
    int64_t pieces = (units + part - 1) / part, time = (pieces + threads - 1) / threads * part;
    if (part < least || time >= *out_time) continue;
    best = part;
    *out_time = time;
  }
  return best;
}

void tfc_products_split(int64_t rows, int64_t panels, int64_t threads, int64_t least, int64_t *out_rows,
                        int64_t *out_panels) {
  int64_t row_time, panel_time;
  *out_rows = (rows + 7) / 8 * 8, *out_panels = panels;
  if (threads <= 1) return;
  int64_t row_part = even_part(rows, threads, 8, least, &row_time);
  int64_t panel_part = even_part(panels, threads, 1, 1, &panel_time);
  double by_rows = (double)row_time / (double)rows, by_panels = (double)panel_time / (double)panels;
  if (by_rows * (double)threads <= 1.2 || (by_rows <= by_panels && row_part < rows)) {
    *out_rows = row_part;
  } else if (by_panels * (double)threads <= 1.2) {
    *out_panels = panel_part;
  } else { // neither rows nor panels can be divided evenly
    *out_panels = 1;
    int64_t parts = (3 * threads + panels - 1) / panels, part = (rows + parts - 1) / parts;
    *out_rows = (part + 7) / 8 * 8;
  }
}

// --- Products on the tile unit -----------------------------------------------------------------------------------
bool tfc_products_may_split(const struct tfc_kernel_ctx *ctx) {
  return ctx->rounding && ctx->env->device_cores == 1 && tfc_split_available();
}

bool tfc_products_choose_split(const struct tfc_kernel_ctx *ctx, int64_t m, int64_t n, int64_t k, int64_t blocks,
                               bool ready) {
  return tfc_products_may_split(ctx) && tfc_split_pays(m, n, k, blocks, ready) && tfc_split_is_fast();
}

tfc_status tfc_products_run_split(const struct tfc_split_product *products, int64_t count, int64_t m, int64_t n,
                                  bool accumulate, float *c, bool *out_fits) {
  struct tfc_split_product ready[TFC_PRODUCTS_MOST];
  size_t bytes = 0, at = 0;
  int64_t total_k = 0;
  const int64_t panels = tfc_split_sides(n);
  const uint64_t begin = tfc_split_clock();
  void *scratch = tfc_thread_scratch(TFC_SCRATCH_A, TFC_SPLIT_SCRATCH);
  if (!scratch) return tfc_status_no_memory(NULL);
  bool first = m > TFC_SPLIT_ROWS, fits = true; // otherwise each B is packed only once anyway
  for (int64_t i = 0; i < count; i++) {
    bytes += products[i].packed_b ? 0 : tfc_split_packed_bytes(products[i].k, n);
    total_k += products[i].k;
  }
  char *packed = first && bytes ? tfc_thread_scratch(TFC_SCRATCH_B, bytes) : NULL;
  if (first && bytes && !packed) return tfc_status_no_memory(NULL);
  for (int64_t i = 0; i < count; i++) {
    ready[i] = products[i];
    if (!first || ready[i].packed_b) continue;
    ready[i].packed_b = packed + at;
    fits &= tfc_split_pack_b(&ready[i].b, ready[i].k, n, 0, panels, packed + at);
    at += tfc_split_packed_bytes(ready[i].k, n);
  }
  *out_fits = tfc_split_run(ready, count, n, c, n, accumulate, 0, m, 0, panels, scratch) && fits;
  tfc_split_took(true, 2.0 * (double)m * (double)n * (double)total_k, begin);
  return NULL;
}

static bool all_fit(struct tfc_matrix x, int64_t rows, int64_t columns) {
  bool fit = true;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) fit = fit && fabsf(x.data[i * x.row + j * x.column]) < 0x1p127f;
  return fit;
}

// Computes the sum on the tile unit if that pays. *out_done: it did so.
static tfc_status try_split(bool allowed, const struct tfc_product *products, int64_t count, int64_t m, int64_t n,
                            bool accumulate, float *c, bool *out_done) {
  struct tfc_split_product split[TFC_PRODUCTS_MOST];
  bool ready = false;
  int64_t total_k = 0, blocks = 0;
  *out_done = false;
  for (int64_t i = 0; i < count; i++) ready = ready || products[i].split_b;
  if (!ready && !allowed) return NULL;
  for (int64_t i = 0; i < count; i++) {
    const struct tfc_product *p = &products[i];
    if (!ready && (p->packed_b || p->source || p->right)) return NULL;
    split[i] =
        (struct tfc_split_product){.a = {.matrix = p->a}, .b = {.matrix = p->b}, .packed_b = p->split_b, .k = p->k};
    total_k += p->k, blocks += tfc_split_blocks(p->k);
  }
  if (!ready && !(tfc_split_pays(m, n, total_k, blocks, false) && tfc_split_is_fast())) return NULL;
  if (!ready && accumulate) // if a number turned out to be too large, the old C would be lost
    for (int64_t i = 0; i < count; i++)
      if (!all_fit(products[i].a, m, products[i].k) || !all_fit(products[i].b, products[i].k, n)) return NULL;
  TFC_RETURN_IF_ERROR(tfc_products_run_split(split, count, m, n, accumulate, c, out_done));
  *out_done = *out_done || ready;
  return NULL;
}

// Whether C is computed as a transposed product: then only A is packed, and rows of B are read in place. Of up to 256
// rows, times B of 512 x 2048 to 1024 x 4096, this took 0.81 (64 rows) to 0.97 (256) of the time of packing B; with
// AVX2 0.90 to 1.02 up to 96 rows, and up to 1.16 with more, because a panel of A is narrower.
static bool pays_transposed(const struct tfc_product *p, int64_t m, int64_t n) {
  enum { MOST_ROWS = 256, MOST_ROWS_OF_NARROW = 96 };
  return !p->packed_b && !p->source && !p->right && p->b.row == 1 && p->b.column != 1 &&
         m <= (tfc_gemm_panels_are_wide() ? MOST_ROWS : MOST_ROWS_OF_NARROW) && p->k >= 2 * m && n > m;
}

struct turn { // makes C [m, n] from its transpose
  const float *from;
  float *c;
  int64_t m, n;
};
static void turn_columns(void *arg, int64_t begin, int64_t end) {
  const struct turn *t = arg;
  enum { piece = 16 };
  for (int64_t j = begin; j < end; j += piece) {
    int64_t last = j + piece < end ? j + piece : end;
    for (int64_t i = 0; i < t->m; i++)
      for (int64_t q = j; q < last; q++) t->c[i * t->n + q] = t->from[q * t->m + i];
  }
}

static tfc_status run(struct tfc_kernel_ctx *ctx, const struct tfc_product *products, int64_t count, int64_t m,
                      int64_t n, bool accumulate, float *c, struct tfc_kernel_finish *finish);

static tfc_status run_transposed(struct tfc_kernel_ctx *ctx, const struct tfc_product *p, int64_t m, int64_t n,
                                 float *c) {
  float *transposed = tfc_thread_scratch(TFC_SCRATCH_TRANSPOSED, (size_t)(m * n) * sizeof *transposed);
  if (!transposed) return tfc_status_no_memory(NULL);
  struct tfc_product q = {.a = {p->b.data, p->b.column, p->b.row}, .b = {p->a.data, p->a.column, p->a.row}, .k = p->k};
  TFC_RETURN_IF_ERROR(run(ctx, &q, 1, n, m, false, transposed, NULL));
  struct turn turn = {transposed, c, m, n};
  if (ctx)
    tfc_kernel_parallel_for(ctx, n, 65536 / m, turn_columns, &turn);
  else
    turn_columns(&turn, 0, n);
  return NULL;
}

// Whether B is packed panel by panel where it is used.
static bool pays_by_panels(const struct tfc_kernel_ctx *ctx, const struct tfc_product *p, int64_t m, int64_t n) {
  if (p->right) return true;
  return !p->packed_b && tfc_panels_pay(ctx ? ctx->env->threads : 1, m, p->k, n, p->b.column != 1) &&
         !read_in_place(p, m, n);
}

// Whether one thread computes the product: the device has only one, or waking the others takes longer. 2 MFLOP take a
// core some 17 us, of which a second one would save half, and waking it takes 12.
static bool is_small(const struct tfc_kernel_ctx *ctx, int64_t m, int64_t n, int64_t k) {
  return !ctx || ctx->env->threads == 1 || 2.0 * (double)m * (double)n * (double)k < 2e6;
}

// A vector times a matrix, whose columns are shared out.
struct vector_job {
  const float *x;
  int64_t x_step, k;
  struct tfc_matrix b;
  float *c;
};
static void vector_columns(void *arg, int64_t begin, int64_t end) {
  const struct vector_job *j = arg;
  const struct tfc_matrix b = {j->b.data + begin * j->b.column, j->b.row, j->b.column};
  (void)tfc_gemm_vector(j->x, j->x_step, b, j->k, end - begin, j->c + begin);
}

// Computes a product in which an operand has one row or column. ctx NULL: only on this thread. False: it computed
// nothing, because B is not in memory in one of the orders that the loops read.
static bool run_vector(struct tfc_kernel_ctx *ctx, const struct tfc_product *p, int64_t m, int64_t n, float *c) {
  if (p->packed_b || p->source || p->right) return false;
  struct vector_job job = {p->a.data, p->a.column, p->k, p->b, c};
  if (m != 1) job = (struct vector_job){p->b.data, p->b.row, p->k, {p->a.data, p->a.column, p->a.row}, c};
  if (job.b.column != 1 && job.b.row != 1) return false;
  const int64_t columns = m == 1 ? n : m;
  if (ctx)
    tfc_kernel_parallel_for(ctx, columns, (250000 / (p->k + 1) + 64) / 64 * 64, vector_columns, &job);
  else
    vector_columns(&job, 0, columns);
  return true;
}

// An A of few rows times a large B, whose columns are shared out. Tiles would read a part of a cache line or two from
// each row of B, and come back to the other parts when these lines have left the cache.
struct few_job {
  struct tfc_matrix a, b;
  int64_t m, k, n;
  float *c;
};
static void few_columns(void *arg, int64_t begin, int64_t end) {
  const struct few_job *j = arg;
  const struct tfc_matrix b = {j->b.data + begin, j->b.row, 1};
  tfc_gemm_few(j->a, j->m, b, j->k, end - begin, j->c + begin, j->n);
}

static bool pays_few(const struct tfc_product *p, int64_t m, int64_t n) {
  // Columns beyond a whole number of vectors are slow, so there must be many others or none of them. A B of less than a
  // megabyte stays in the second-level cache, from which tiles read it again. With 1024 x 1024, 8 rows take 0.63 of the
  // time of tiles, 16 rows 0.94, 20 rows 1.01; with 1024 x 4096 20 rows 0.81. With AVX2, 8 rows take 0.93, 11
  // rows 1.13.
  enum { LEAST_COLUMNS = 256, MANY_COLUMNS = 768, LEAST_BYTES = 1 << 20, MOST_ROWS = 19 };
  return m <= (tfc_gemm_panels_are_wide() ? MOST_ROWS : few_rows - 1) && !p->packed_b && !p->source && !p->right &&
         p->b.column == 1 && (n >= MANY_COLUMNS || (n >= LEAST_COLUMNS && n % 16 == 0)) &&
         p->k * n * (int64_t)sizeof(float) >= LEAST_BYTES;
}

static void run_few(struct tfc_kernel_ctx *ctx, const struct tfc_product *p, int64_t m, int64_t n, float *c) {
  struct few_job job = {p->a, p->b, m, p->k, n, c};
  if (ctx)
    tfc_kernel_parallel_for(ctx, n, (500000 / (p->k * m + 1) + 256) / 256 * 256, few_columns, &job);
  else
    few_columns(&job, 0, n);
}

// Rows are finished while they are in the first or second-level cache. If B does not stay in the cache, as many rows of
// A as are packed at once are computed before they are finished, so that B is not read more often.
static void finish_on_the_way(struct job *job, struct tfc_kernel_finish *finish) {
  enum { FINISHED_ELEMENTS = 16384 }; // 64 KiB: they stay in the second-level cache beside the part of B that is used
  const int64_t block = tfc_gemm_block(job->products, job->count, job->n, false);
  job->finish = finish;
  job->finish_rows = block ? block : (FINISHED_ELEMENTS / job->n + 7) / 8 * 8;
  if (job->finish_rows < 8) job->finish_rows = 8;
  finish->done = true;
}

// Whether each thread takes panels and all rows, which it reads in place: a large B is then read once by all threads
// together.
static bool reads_once(const struct job *job, int64_t threads) {
  enum { LEAST = 96, MOST = 192, LONG_K = 2200 };
  const struct tfc_gemm_product *p = job->products;
  return threads > 1 && job->count == 1 && !job->accumulate && p->source && p->packed_b && job->total_k > LONG_K &&
         job->m > LEAST && job->m <= MOST && tfc_gemm_panels(job->n) >= 8 * threads;
}

// Whether each thread takes rows and all panels, because it reads rows of A where they lie: packing them would take
// longer than it saves. B comes from memory once for every so many rows.
static bool reads_rows_in_place(struct job *job, int64_t threads) {
  enum { LEAST = 128 }; // rows of each thread
  const int64_t most = job->count == 1 && !job->accumulate ? tfc_gemm_rows_in_place(job->products) : 0;
  if (threads == 1 || !most || job->m < LEAST * threads || !tfc_gemm_block(job->products, 1, job->n, false))
    return false;
  const int64_t parts = ((job->m + most - 1) / most + threads - 1) / threads * threads;
  job->row_part = ((job->m + parts - 1) / parts + 7) / 8 * 8;
  job->panel_part = tfc_gemm_panels(job->n), job->panel_parts = 1;
  return true;
}

static tfc_status run(struct tfc_kernel_ctx *ctx, const struct tfc_product *products, int64_t count, int64_t m,
                      int64_t n, bool accumulate, float *c, struct tfc_kernel_finish *finish) {
  struct job job = {.given = products, .count = count, .m = m, .n = n, .accumulate = accumulate, .c = c};
  if (!m || !n) return NULL;
  if (count == 1 && (m == 1 || n == 1)) {
    float *to = accumulate ? tfc_thread_scratch(TFC_SCRATCH_TRANSPOSED, (size_t)(m * n) * sizeof *to) : c;
    if (!to) return tfc_status_no_memory(NULL);
    if (run_vector(is_small(ctx, m, n, products->k) ? NULL : ctx, products, m, n, to)) {
      for (int64_t i = 0; i < m * n && accumulate; i++) c[i] += to[i];
      return NULL;
    }
  }
  if (count == 1 && !accumulate && pays_few(products, m, n)) {
    run_few(ctx, products, m, n, c);
    return NULL;
  }
  const bool several = ctx && ctx->env->threads > 1;
  if (count == 1 && !accumulate && several && pays_by_panels(ctx, products, m, n))
    return tfc_panels_run(ctx, products, m, n, c);
  if (count == 1 && !accumulate && pays_transposed(products, m, n)) return run_transposed(ctx, products, m, n, c);
  if (count == 1 && !accumulate && pays_by_panels(ctx, products, m, n)) return tfc_panels_run(ctx, products, m, n, c);
  if (!pack_operands(ctx, &job)) return tfc_status_no_memory(NULL);
  if (finish && finish->last) {
    job.products->last = finish->last;
    finish->done = true;
    finish = NULL;
  }
  int64_t panels = tfc_gemm_panels(n), threads = ctx ? ctx->env->threads : 1;
  if (is_small(ctx, m, n, job.total_k)) threads = 1;
  if (reads_once(&job, threads)) {
    job.row_part = m, job.panel_part = (panels + threads - 1) / threads;
    job.panel_parts = (panels + job.panel_part - 1) / job.panel_part;
    tfc_kernel_parallel_for(ctx, job.panel_parts, 1, run_pieces, &job);
    return job.failed ? tfc_status_no_memory(NULL) : NULL;
  }
  if (reads_rows_in_place(&job, threads)) {
    tfc_kernel_parallel_for(ctx, (m + job.row_part - 1) / job.row_part, 1, run_pieces, &job);
    return job.failed ? tfc_status_no_memory(NULL) : NULL;
  }
  if (ctx && threads > 1 && share_out(&job, threads)) {
    job.threads = threads;
    tfc_kernel_parallel_for(ctx, threads, 1, share, &job);
    return job.failed ? tfc_status_no_memory(NULL) : NULL;
  }
  tfc_products_split(m, panels, threads, LEAST_PIECE, &job.row_part, &job.panel_part);
  job.panel_parts = (panels + job.panel_part - 1) / job.panel_part;
  int64_t pieces = job.panel_parts * ((m + job.row_part - 1) / job.row_part);
  if (finish && job.panel_parts == 1) finish_on_the_way(&job, finish);
  if (pieces == 1 || !ctx)
    run_pieces(&job, 0, pieces);
  else
    tfc_kernel_parallel_for(ctx, pieces, 1, run_pieces, &job);
  return job.failed ? tfc_status_no_memory(NULL) : NULL;
}

static double flop_of(const struct tfc_product *products, int64_t count, int64_t m, int64_t n) {
  int64_t k = 0;
  for (int64_t i = 0; i < count; i++) k += products[i].k;
  return 2.0 * (double)m * (double)n * (double)k;
}

static tfc_status run_on_device(struct tfc_kernel_ctx *ctx, const struct tfc_product *products, int64_t count,
                                int64_t m, int64_t n, bool accumulate, float *c, struct tfc_kernel_finish *finish) {
  bool done = false;
  if (m && n) TFC_RETURN_IF_ERROR(try_split(tfc_products_may_split(ctx), products, count, m, n, accumulate, c, &done));
  if (done) return NULL;
  const uint64_t begin = tfc_split_clock();
  TFC_RETURN_IF_ERROR(run(ctx, products, count, m, n, accumulate, c, finish));
  if (tfc_products_may_split(ctx)) tfc_split_took(false, flop_of(products, count, m, n), begin);
  return NULL;
}

tfc_status tfc_products_run(struct tfc_kernel_ctx *ctx, const struct tfc_product *products, int64_t count, int64_t m,
                            int64_t n, bool accumulate, float *c) {
  return run_on_device(ctx, products, count, m, n, accumulate, c, NULL);
}

tfc_status tfc_products_run_finished(struct tfc_kernel_ctx *ctx, const struct tfc_product *product, int64_t m,
                                     int64_t n, float *c) {
  return run_on_device(ctx, product, 1, m, n, false, c, ctx->finish);
}

tfc_status tfc_products_run_serial(const struct tfc_product *products, int64_t count, int64_t m, int64_t n, bool split,
                                   float *c) {
  bool done = false;
  if (m && n) TFC_RETURN_IF_ERROR(try_split(split, products, count, m, n, false, c, &done));
  return done ? NULL : run(NULL, products, count, m, n, false, c, NULL);
}

struct pack_job {
  struct tfc_matrix b;
  int64_t k, n;
  float *packed;
};

static void pack_range(void *arg, int64_t begin, int64_t end) {
  const struct pack_job *job = arg;
  const int64_t last = end * PACKED_ROWS < job->k ? end * PACKED_ROWS : job->k;
  tfc_gemm_pack_part(job->b, job->k, job->n, begin * PACKED_ROWS, last, 0, tfc_gemm_panels(job->n), job->packed);
}

void tfc_products_pack(struct tfc_kernel_ctx *ctx, struct tfc_matrix b, int64_t k, int64_t n, float *packed) {
  struct pack_job job = {b, k, n, packed};
  tfc_kernel_parallel_for(ctx, (k + PACKED_ROWS - 1) / PACKED_ROWS, 1, pack_range, &job);
}
