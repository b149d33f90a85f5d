// Blocking: rows are divided into blocks whose packed A stays in the second-level cache. Within a block, the outer loop
// is over panels (B is streamed once, A comes from the cache); but if all of B fits into the cache and C must be
// streamed, it is over rows. A tile of C takes all products of a sum in turn, so that it stays in the first-level
// cache, unless their panels together are larger than the second-level cache should hold: then all tiles use one
// product's panel before the next product's.
//
// A single product with a long k is computed in pieces of k: all of a block's tiles for one piece before the next
// piece. So a piece of a panel is read from the second-level cache for many rows; the chains of multiply-adds continue
// from the values in C.
#include "runtime/host/gemm/gemm.h"

#include <pthread.h>
#include <string.h>

#include "runtime/base/instructions.h"
#include "runtime/host/gemm/kernel.h"
#include "runtime/ops/element_types.h"

enum {
  a_block_bytes = 640 * 1024,
  b_cached_bytes = 512 * 1024,
  long_k = 2200,
  most_piece = 768,
  rows_in_place = 192,
  long_rows = 192,
  few_columns_longest = 3584, // a panel with so many rows stays in the cache
  long_panel = 128            // rows
};

static const struct tfc_gemm_kernel *kernel = &tfc_gemm_kernel_generic;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void) {
#if defined(__x86_64__)
  if (tfc_instructions_allowed(TFC_INSTRUCTIONS_AVX512))
    kernel = &tfc_gemm_kernel_avx512;
  else if (tfc_instructions_allowed(TFC_INSTRUCTIONS_AVX2))
    kernel = &tfc_gemm_kernel_avx2;
#endif
}

static const struct tfc_gemm_kernel *chosen(void) {
  pthread_once(&once, choose);
  return kernel;
}

int64_t tfc_gemm_panel(void) {
  return chosen()->width;
}
bool tfc_gemm_panels_are_wide(void) {
  return tfc_gemm_panel() >= 48;
}
const char *tfc_gemm_name(void) {
  return chosen()->name;
}
int64_t tfc_gemm_panels(int64_t n) {
  return (n + tfc_gemm_panel() - 1) / tfc_gemm_panel();
}

// There is room for 8 more rows, because the kernel prefetches 8 rows of a panel ahead.
size_t tfc_gemm_packed_bytes(int64_t k, int64_t n) {
  int64_t width = tfc_gemm_panel();
  return (size_t)(tfc_gemm_panels(n) * width * k + 8 * width) * sizeof(float);
}

static int64_t block_rows(int64_t k) {
  int64_t rows = a_block_bytes / (int64_t)sizeof(float) / (k > 0 ? k : 1) / tfc_gemm_stripe * tfc_gemm_stripe;
  return rows < 4 * tfc_gemm_stripe ? 4 * tfc_gemm_stripe : rows;
}

size_t tfc_gemm_scratch_bytes(int64_t m, int64_t k) {
  int64_t rows = (m + tfc_gemm_stripe - 1) / tfc_gemm_stripe * tfc_gemm_stripe, block = block_rows(k);
  if (k > long_k && block < long_rows) block = long_rows;
  return (size_t)((rows < block ? rows : block) * k) * sizeof(float);
}

// Packs rows of B in groups of 8, each group across all panels: so both sides are accessed in long runs.
static void pack_rows(struct tfc_matrix b, int64_t k, int64_t n, int64_t row_first, int64_t row_last, int64_t first,
                      int64_t last, int64_t width, float *packed) {
  for (int64_t block = row_first; block < row_last; block += 8) {
    int64_t end = block + 8 < row_last ? block + 8 : row_last;
    for (int64_t p = first; p < last; p++) {
      int64_t columns = n - p * width < width ? n - p * width : width;
      for (int64_t i = block; i < end; i++) {
        const float *in = b.data + i * b.row + p * width;
        float *out = packed + (p * k + i) * width;
        if (columns == 24 &&
            width == 24) { // with a length that the compiler knows, it is a few vectors instead of two calls
          memcpy(out, in, 24 * sizeof *out);
        } else if (columns == 48) {
          memcpy(out, in, 48 * sizeof *out);
        } else if (columns == 32 && width == 48) {
          memcpy(out, in, 32 * sizeof *out);
          memset(out + 32, 0, 16 * sizeof *out);
        } else if (columns == 16 && width == 48) {
          memcpy(out, in, 16 * sizeof *out);
          memset(out + 16, 0, 32 * sizeof *out);
        } else {
          memcpy(out, in, (size_t)columns * sizeof *out);
          memset(out + columns, 0, (size_t)(width - columns) * sizeof *out);
        }
      }
    }
  }
}

// Packs a transposed B, whose columns are rows in memory, in pieces of k, so that the written piece stays in the
// first-level cache.
static void pack_columns(struct tfc_matrix b, int64_t n, int64_t row_first, int64_t row_last, int64_t panel,
                         int64_t width, float *out) {
  enum { piece = 64 };
  const float *in = b.data + panel * width * b.column;
  int64_t columns = n - panel * width < width ? n - panel * width : width;
  if (columns < width)
    for (int64_t i = row_first; i < row_last; i++)
      memset(out + i * width + columns, 0, (size_t)(width - columns) * sizeof *out);
  for (int64_t block = row_first; block < row_last; block += piece) {
    int64_t end = block + piece < row_last ? block + piece : row_last, j = 0;
    for (; j + 8 <= columns && b.row == 1; j += 8) {
      const float *rows[8];
      for (int r = 0; r < 8; r++) rows[r] = in + (j + r) * b.column + block;
      chosen()->pack(rows, end - block, out + block * width + j, width);
    }
    for (; j < columns; j++)
      for (int64_t i = block; i < end; i++) out[i * width + j] = in[i * b.row + j * b.column];
  }
}

void tfc_gemm_pack_part(struct tfc_matrix b, int64_t k, int64_t n, int64_t row_first, int64_t row_last, int64_t first,
                        int64_t last, float *packed) {
  int64_t width = tfc_gemm_panel();
  if (b.column == 1) {
    pack_rows(b, k, n, row_first, row_last, first, last, width, packed);
    return;
  }
  for (int64_t p = first; p < last; p++) pack_columns(b, n, row_first, row_last, p, width, packed + p * width * k);
}

void tfc_gemm_pack(struct tfc_matrix b, int64_t k, int64_t n, int64_t first, int64_t last, float *packed) {
  tfc_gemm_pack_part(b, k, n, 0, k, first, last, packed);
}

void tfc_gemm_pack_rows(const float *const rows[8], int64_t count, float *out) {
  chosen()->pack(rows, count, out, tfc_gemm_stripe);
}

// Packs a stripe of 8 rows, k-major. If there are fewer rows, the last one is repeated; results for the repeated rows
// are not written.
static void pack_a(const struct tfc_gemm_kernel *g, struct tfc_matrix a, int64_t k, int64_t row, int64_t rows,
                   float *out) {
  const float *in = a.data + row * a.row;
  if (a.column == 1) {
    const float *each[tfc_gemm_stripe];
    for (int64_t r = 0; r < tfc_gemm_stripe; r++) each[r] = in + (r < rows ? r : rows - 1) * a.row;
    g->pack(each, k, out, tfc_gemm_stripe);
    return;
  }
  if (rows == tfc_gemm_stripe && a.row == 1) {
    for (int64_t i = 0; i < k; i++)
      for (int r = 0; r < tfc_gemm_stripe; r++) out[i * tfc_gemm_stripe + r] = in[i * a.column + r];
    return;
  }
  for (int64_t i = 0; i < k; i++)
    for (int r = 0; r < tfc_gemm_stripe; r++)
      out[i * tfc_gemm_stripe + r] = r < rows ? in[r * a.row + i * a.column] : 0;
}

// Packs two stripes of an A whose columns are contiguous, because a cache line contains parts of both.
static void pack_a_pair(struct tfc_matrix a, int64_t k, int64_t row, float *out, float *second) {
  enum { stripe = tfc_gemm_stripe, ahead = 12 };
  const float *in = a.data + row * a.row;
  for (int64_t i = 0; i < k; i++, in += a.column) {
    __builtin_prefetch(in + ahead * a.column);
    memcpy(out + i * stripe, in, stripe * sizeof *in);
    memcpy(second + i * stripe, in + stripe, stripe * sizeof *in);
  }
}

struct job {
  const struct tfc_gemm_kernel *kernel;
  const struct tfc_gemm_product *products;
  int64_t product_count, total_k;
  int64_t n, ldc;
  float *c;
  bool accumulate, joined;
};

// Packs one stripe of all products, one product after the other.
static void pack_stripe(const struct job *job, int64_t row, int64_t rows, float *out) {
  for (int64_t i = 0; i < job->product_count; i++) {
    const struct tfc_gemm_product *p = &job->products[i];
    if (p->source)
      p->source->pack(p->source, row, rows, out);
    else
      pack_a(job->kernel, p->a, p->k, row, rows, out);
    out += p->k * tfc_gemm_stripe;
  }
}

// Packs rows [begin, end), one stripe after the other.
static void pack_stripes(const struct job *job, int64_t begin, int64_t end, float *out) {
  enum { stripe = tfc_gemm_stripe };
  bool pairs = true;
  for (int64_t i = 0; i < job->product_count; i++) pairs &= !job->products[i].source && job->products[i].a.row == 1;
  for (int64_t row = begin; row < end; row += stripe) {
    int64_t rows = end - row < stripe ? end - row : stripe;
    float *to = out + (row - begin) * job->total_k;
    if (!pairs || end - row < 2 * stripe) {
      pack_stripe(job, row, rows, to);
      continue;
    }
    for (int64_t i = 0; i < job->product_count; to += job->products[i++].k * stripe)
      pack_a_pair(job->products[i].a, job->products[i].k, row, to, to + stripe * job->total_k);
    row += stripe;
  }
}

static int64_t at_most(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Returns how many products of the sum, from `first` on, one call may add: their operands must follow each other in
// memory, have the same k, and their part of a panel must stay in the cache.
static int64_t group_of(const struct job *job, int64_t first) {
  const struct tfc_gemm_product *p = &job->products[first];
  const int64_t most = p->k > 0 ? b_cached_bytes / (job->kernel->width * (int64_t)sizeof(float)) / p->k : 1;
  int64_t count = 1;
  if (job->joined || !p->panel_rows) return 1;
  while (count < most && first + count < job->product_count && p[count].k == p->k) count++;
  return count;
}

// Where the tile of C at that row and panel lies; NULL: nothing follows on its elements, or their chains have not ended
// (`ended`).
static const struct tfc_last_tile *last_of(const struct job *job, int64_t row, int64_t panel, bool ended,
                                           struct tfc_last_tile *out) {
  const int64_t column = panel * job->kernel->width;
  *out = (struct tfc_last_tile){job->products->last, row * job->ldc + column, job->ldc, column};
  return ended && out->pass ? out : NULL;
}

// Computes one tile of C for `count` products of the sum. `part`: which third of the next panel is prefetched
// meanwhile; a larger number prefetches nothing but the panel itself, where it does not stay in the first-level cache.
static void one_tile(const struct job *job, int64_t first, int64_t count, const float *a, int64_t row, int64_t rows,
                     int64_t panel, int64_t part) {
  const struct tfc_gemm_kernel *g = job->kernel;
  const struct tfc_gemm_product *p = &job->products[first];
  const int64_t k = job->joined ? job->total_k : p->k, apart = (p->panel_rows ? p->panel_rows : p->k) * g->width;
  const int64_t columns = at_most(job->n - panel * g->width, g->width);
  float *c = job->c + row * job->ldc + panel * g->width;
  const float *b = p->packed_b;
  int64_t b_row = g->width;
  if (p->packed_b) {
    b += panel * apart;
  } else {
    bool whole = columns == g->width || !p->tail;
    b = whole && p->b ? p->b + panel * g->width : p->tail; // p->b is NULL if B has no rows (k = 0)
    b_row = whole ? p->b_row : g->width;
  }
  const float *ahead = b;
  if (p->packed_b && part < 3)
    ahead = b + apart + part * 16 * count * k;
  else if (p->packed_b && k >= long_panel)
    ahead = b + 16;
  struct tfc_last_tile last;
  g->tile(count, k, a, b, b_row, ahead, c, job->ldc, rows, columns,
          job->accumulate || first > 0 ? TFC_GEMM_ADD : TFC_GEMM_SET, last_of(job, row, panel, true, &last));
}

// Computes rows [begin, end), packed at `a`, of the only product (or of products that are joined), in pieces of k.
static void pieces(const struct job *job, const float *a, int64_t begin, int64_t end, int64_t first, int64_t last) {
  const struct tfc_gemm_kernel *g = job->kernel;
  const struct tfc_gemm_product *p = job->products;
  const int64_t all = job->total_k, count = (all + most_piece - 1) / most_piece, piece = (all + count - 1) / count;
  for (int64_t from = 0; from < all; from += piece) {
    int64_t k = at_most(piece, all - from);
    tfc_gemm_mode mode = from ? TFC_GEMM_CONTINUE : TFC_GEMM_SET;
    for (int64_t panel = first; panel < last; panel++) {
      int64_t columns = at_most(job->n - panel * g->width, g->width);
      const float *b = p->packed_b + panel * g->width * all + from * g->width;
      const float *next =
          panel + 1 < last ? b + g->width * all : b + piece * g->width - (last - 1 - first) * g->width * all;
      bool any = panel + 1 < last || from + piece < all;
      for (int64_t row = begin, s = 0; row < end; row += tfc_gemm_stripe, s++) {
        const float *ahead = any && s < 3 ? next + s * 16 * at_most(k, piece) : b;
        struct tfc_last_tile on;
        g->tile(1, k, a + (row - begin) * all + from * tfc_gemm_stripe, b, g->width, ahead,
                job->c + row * job->ldc + panel * g->width, job->ldc, at_most(end - row, tfc_gemm_stripe), columns,
                mode, last_of(job, row, panel, from + k == all, &on));
      }
    }
  }
}

// Whether a panel and the one behind it, which is the last and has one vector of columns, are computed together.
static bool is_wide(const struct job *job, int64_t panel, int64_t last) {
  return job->kernel->wide && panel + 2 == last && job->n - panel * job->kernel->width == job->kernel->wide_columns;
}

// Runs that are padding in all 8 rows of a stripe are left out if their rows of B are finite. Zeros times an infinite
// weight or NaN are NaN, and whether a run is read in place must not show. Looking at B must be cheap beside its use.
enum { LEAST_LEFT_OUT = 64 }; // rows that use what was looked at

// Whether none is infinite or NaN. `count` is a multiple of 8.
OPS_CLONES static bool are_finite(const float *x, int64_t count) {
  typedef uint32_t lanes __attribute__((vector_size(32)));
  lanes seen = {0};
  for (int64_t i = 0; i < count; i += 8) {
    lanes bits;
    memcpy(&bits, x + i, sizeof bits);
    seen |= (bits & 0x7fffffff) + 0x00800000; // the sign is set if the exponent is the largest
  }
  uint32_t all = 0;
  for (int i = 0; i < 8; i++) all |= seen[i];
  return !(all >> 31);
}

static bool is_padding(const struct tfc_gemm_product *p, const float *const at[tfc_gemm_stripe]) {
  if (!p->source || !p->source->zeros) return false;
  for (int64_t r = 0; r < tfc_gemm_stripe; r++)
    if (at[r] != p->source->zeros) return false;
  return true;
}

// By piece of the rows, whether its rows of B in panels [first, last) are finite, once it was looked at.
typedef enum weights { UNKNOWN, FINITE, INFINITE } weights;
struct padding {
  const struct job *job;
  int64_t first, last, length;
  bool worth; // there are enough rows
  weights known[TFC_GEMM_MOST_PIECES];
};

// Whether B is known to be finite. If there are too few rows for leaving out padding to pay, B is not looked at.
static bool all_finite(const struct padding *out) {
  const struct tfc_gemm_product *p = out->job->products;
  const int64_t width = out->job->kernel->width;
  return p->finite ||
         (out->worth && are_finite(p->packed_b + out->first * p->k * width, (out->last - out->first) * p->k * width));
}

static bool is_left_out(struct padding *out, int64_t piece, const float *const at[tfc_gemm_stripe]) {
  const struct tfc_gemm_product *p = out->job->products;
  const int64_t width = out->job->kernel->width;
  if (!out->worth || !is_padding(p, at)) return false;
  for (int64_t panel = out->first; panel < out->last && out->known[piece] == UNKNOWN; panel++)
    if (!are_finite(p->packed_b + (panel * p->k + piece * out->length) * width, out->length * width))
      out->known[piece] = INFINITE;
  if (out->known[piece] == UNKNOWN) out->known[piece] = FINITE;
  return out->known[piece] == FINITE;
}

// The pieces of 8 rows that are not left out, as spans [begin, end).
struct spans {
  int64_t count, begin[TFC_GEMM_MOST_PIECES], end[TFC_GEMM_MOST_PIECES];
};
static void find_spans(struct padding *padding, const float *const *rows, int64_t pieces, struct spans *out) {
  out->count = 0;
  for (int64_t i = 0; i < pieces; i++) {
    if (is_left_out(padding, i, rows + i * tfc_gemm_stripe)) continue;
    if (out->count == 0 || out->end[out->count - 1] < i) out->begin[out->count++] = i;
    out->end[out->count - 1] = i + 1;
  }
  if (out->count == 0) out->begin[0] = out->end[0] = 0, out->count = 1; // the product is zero
}

// Whether rows of A can be read in place.
static bool lies_in_rows(const struct tfc_gemm_product *p) {
  enum { shortest = 8 };
  if (!p->source) return p->a.column == 1;
  return p->source->find && p->source->length >= shortest && p->source->length <= TFC_GEMM_LONGEST_PIECE &&
         p->source->pieces <= TFC_GEMM_MOST_PIECES;
}

// Computes 8 rows of C from rows of A that lie in memory as the stretch says.
static void run_stretch(const struct job *job, const struct tfc_gemm_stretch *a, int64_t row, int64_t first,
                        int64_t last) {
  const struct tfc_gemm_kernel *g = job->kernel;
  const struct tfc_gemm_product *p = job->products;
  for (int64_t panel = first; panel < last; panel++) {
    const bool wide = is_wide(job, panel, last);
    const int64_t columns = wide ? g->wide_columns : at_most(job->n - panel * g->width, g->width);
    struct tfc_last_tile on;
    g->scattered(a, p->packed_b + panel * p->k * g->width, p->k * g->width, job->c + row * job->ldc + panel * g->width,
                 job->ldc, columns, last_of(job, row, panel, true, &on));
    panel += wide;
  }
}

// For a single product whose B stays in the cache: reads rows of A in place, because packing them would take longer
// than it saves. Only stripes are packed whose rows lie neither in runs (`find`) nor at the same distances (`stretch`).
static void unpacked(const struct job *job, int64_t row_first, int64_t row_last, int64_t first, int64_t last,
                     float *edge) {
  const struct tfc_gemm_kernel *g = job->kernel;
  const struct tfc_gemm_product *p = job->products;
  const int64_t pieces = p->source ? p->source->pieces : 1, length = p->source ? p->source->length : p->k;
  const float *rows[TFC_GEMM_MOST_PIECES * tfc_gemm_stripe];
  struct padding padding = {.job = job, .first = first, .last = last, .length = length};
  padding.worth = row_last - row_first >= LEAST_LEFT_OUT;
  struct spans spans;
  const bool in_runs = lies_in_rows(p), by_stretch = p->source && p->source->stretch;
  const bool leaves_out = by_stretch && all_finite(&padding);
  struct tfc_gemm_stretch stretch = {.more = 0};
  for (int64_t row = row_first; row < row_last; row += tfc_gemm_stripe) {
    if (stretch.more) {
      stretch.more--;
      for (int64_t r = 0; r < tfc_gemm_stripe; r++) stretch.rows[r] += stretch.apart;
      run_stretch(job, &stretch, row, first, last);
      continue;
    }
    if (by_stretch && p->source->stretch(p->source, row, !leaves_out, &stretch)) {
      run_stretch(job, &stretch, row, first, last);
      continue;
    }
    stretch.more = 0;
    if (!in_runs) {
      pack_stripe(job, row, tfc_gemm_stripe, edge);
      for (int64_t panel = first; panel < last; panel++) one_tile(job, 0, 1, edge, row, tfc_gemm_stripe, panel, 3);
      continue;
    }
    if (p->source)
      p->source->find(p->source, row, rows, edge);
    else
      for (int64_t r = 0; r < tfc_gemm_stripe; r++) rows[r] = p->a.data + (row + r) * p->a.row;
    // Rows that follow each other are brought while these are used. (An address behind the last one does no harm.)
    const float *ahead = !p->source && p->a.row == length ? rows[0] + tfc_gemm_stripe * length : NULL;
    find_spans(&padding, rows, pieces, &spans);
    for (int64_t panel = first; panel < last; panel++) {
      const bool wide = is_wide(job, panel, last);
      float *c = job->c + row * job->ldc + panel * g->width;
      for (int64_t i = 0; i < spans.count; i++) {
        const int64_t from = spans.begin[i], count = spans.end[i] - from;
        const float *b = p->packed_b + (panel * p->k + from * length) * g->width;
        struct tfc_last_tile on;
        const struct tfc_last_tile *finish = last_of(job, row, panel, i + 1 == spans.count, &on);
        if (wide)
          g->wide(count, length, rows + from * tfc_gemm_stripe, b, g->width * p->k, panel == first ? ahead : NULL, c,
                  job->ldc, i > 0, finish);
        else
          g->direct(count, length, rows + from * tfc_gemm_stripe, b, panel == first ? ahead : NULL, c, job->ldc,
                    at_most(job->n - panel * g->width, g->width), i > 0, finish);
      }
      panel += wide;
    }
  }
}

// For a single product whose B does not stay in the cache: reads rows of A in place. Windows of an image overlap, and
// so take less of the cache than when they are packed. As in `pieces`, a piece of a panel is used for many rows while
// it is in the cache. At most rows_in_place rows.
static void run_in_place(const struct job *job, int64_t begin, int64_t end, int64_t first, int64_t last,
                         float *scratch) {
  enum { stripe = tfc_gemm_stripe };
  const struct tfc_gemm_kernel *g = job->kernel;
  const struct tfc_gemm_product *p = job->products;
  const int64_t pieces = p->source ? p->source->pieces : 1, length = p->source ? p->source->length : p->k;
  const int64_t parts = (length + most_piece - 1) / most_piece;
  const int64_t part = (length + parts - 1) / parts, stripes = (end - begin) / stripe, left = (end - begin) % stripe;
  const float *rows[rows_in_place * TFC_GEMM_MOST_PIECES], *at[stripe];
  float *rest = scratch + stripes * stripe * p->k; // rows of a stripe that is not whole are packed
  for (int64_t s = 0; s < stripes && p->source; s++)
    p->source->find(p->source, begin + s * stripe, rows + s * pieces * stripe, scratch + s * stripe * p->k);
  for (int64_t r = 0; r < stripes * stripe && !p->source; r++) rows[r] = p->a.data + (begin + r) * p->a.row;
  if (left) pack_stripe(job, end - left, left, rest);
  for (int64_t done = 0, here; done < p->k; done += here) {
    const int64_t piece = done / length, from = done % length;
    here = at_most(part, length - from);
    bool some = false; // whether some stripe may be left out
    for (int64_t s = 0; s < stripes && stripes * stripe >= LEAST_LEFT_OUT; s++)
      some = some || is_padding(p, rows + (s * pieces + piece) * stripe);
    for (int64_t panel = first; panel < last; panel++) {
      const float *b = p->packed_b + (panel * p->k + done) * g->width;
      const float *next =
          panel + 1 < last ? b + p->k * g->width : p->packed_b + (first * p->k + done + here) * g->width;
      const bool any = panel + 1 < last || done + here < p->k;
      float *c = job->c + begin * job->ldc + panel * g->width;
      const int64_t columns = at_most(job->n - panel * g->width, g->width);
      const bool wide = is_wide(job, panel, last);
      const bool finite =
          some && are_finite(b, here * g->width) && (!wide || are_finite(b + p->k * g->width, here * g->width));
      struct tfc_last_tile on;
      for (int64_t s = 0; s < stripes; s++, c += stripe * job->ldc) {
        for (int64_t r = 0; r < stripe; r++) at[r] = rows[(s * pieces + piece) * stripe + r] + from;
        const float *ahead = any && s * stripe < g->width ? next + s * (here / 2) * 16 : NULL;
        const bool padding = finite && is_padding(p, rows + (s * pieces + piece) * stripe);
        const bool ended = done + here == p->k, continues = done > 0;
        if (padding && continues && !ended) continue;
        const int64_t steps = padding ? 0 : here; // the first piece sets C to zeros
        const struct tfc_last_tile *finish = last_of(job, begin + s * stripe, panel, ended, &on);
        if (wide)
          g->wide(1, steps, at, b, p->k * g->width, ahead, c, job->ldc, continues, finish);
        else
          g->direct(1, steps, at, b, ahead, c, job->ldc, columns, continues, finish);
      }
      if (left)
        g->tile(1, here, rest + done * stripe, b, g->width, b, c, job->ldc, left, columns,
                done ? TFC_GEMM_CONTINUE : TFC_GEMM_SET, last_of(job, end - left, panel, done + here == p->k, &on));
      if (left && wide)
        g->tile(1, here, rest + done * stripe, b + p->k * g->width, g->width, b + p->k * g->width,
                job->c + (end - left) * job->ldc + (panel + 1) * g->width, job->ldc, left,
                job->n - (panel + 1) * g->width, done ? TFC_GEMM_CONTINUE : TFC_GEMM_SET,
                last_of(job, end - left, panel + 1, done + here == p->k, &on));
      panel += wide;
    }
  }
}

// Whether a product has so few columns that a tile would hardly have work for its vectors: then vectors go along the
// rows of A. The elements are added in another order so. It must not depend on how many rows there are, on where they
// lie in memory, or on a dilation, because rewrites change these and keep every bit.
bool tfc_gemm_has_few_columns(int64_t neighbours, int64_t k, int64_t n) {
  return n <= TFC_GEMM_FEW_COLUMNS && neighbours > 0 && neighbours % TFC_GEMM_NEIGHBOURS == 0 &&
         k <= few_columns_longest;
}
static bool has_few_columns(const struct tfc_gemm_product *p, int64_t n) {
  return p->source && tfc_gemm_has_few_columns(p->source->neighbours, p->k, n);
}

// Element (i, j) of the first panel of B.
static float first_panel(const struct tfc_gemm_product *p, int64_t width, int64_t i, int64_t j) {
  return p->packed_b ? p->packed_b[i * width + j] : p->tail ? p->tail[i * width + j] : p->b[i * p->b_row + j];
}

// Computes rows of such a product. Rows that cannot be read in place are packed, and then copied one after the other.
static void few_columns(const struct job *job, int64_t row_first, int64_t row_last, float *edge) {
  const struct tfc_gemm_kernel *g = job->kernel;
  const struct tfc_gemm_product *p = job->products;
  const int64_t k = p->k;
  const bool found = lies_in_rows(p);
  const float *rows[TFC_GEMM_MOST_PIECES * tfc_gemm_stripe];
  float columns[TFC_GEMM_FEW_COLUMNS * few_columns_longest], copy[tfc_gemm_stripe * few_columns_longest];
  for (int64_t i = 0; i < k; i++)
    for (int64_t j = 0; j < job->n; j++) columns[j * k + i] = first_panel(p, g->width, i, j);
  for (int64_t row = row_first; row < row_last; row += tfc_gemm_stripe) {
    const int64_t height = at_most(row_last - row, tfc_gemm_stripe);
    const bool in_place = found && height == tfc_gemm_stripe;
    struct tfc_last_tile on;
    if (in_place) {
      p->source->find(p->source, row, rows, edge);
    } else {
      p->source->pack(p->source, row, height, edge);
      for (int64_t r = 0; r < tfc_gemm_stripe; r++) {
        const int64_t from = at_most(r, height - 1);
        for (int64_t i = 0; i < k; i++) copy[r * k + i] = edge[i * tfc_gemm_stripe + from];
        rows[r] = copy + r * k;
      }
    }
    g->dots(in_place ? p->source->pieces : 1, in_place ? p->source->length : k, rows, columns, job->c + row * job->ldc,
            job->ldc, height, job->n, last_of(job, row, 0, true, &on));
  }
}

static struct job job_of(const struct tfc_gemm_product *products, int64_t product_count, int64_t n, float *c,
                         int64_t ldc, bool accumulate) {
  struct job job = {chosen(), products, product_count, 0, n, ldc, c, accumulate, products->joined};
  for (int64_t i = 0; i < product_count; i++) job.total_k += products[i].k;
  return job;
}

static bool in_pieces(const struct job *job) {
  const bool one = job->product_count == 1 || job->joined;
  return one && !job->accumulate && job->total_k > long_k && job->products->packed_b;
}

static int64_t block_of(const struct job *job) {
  int64_t block = block_rows(job->total_k);
  return in_pieces(job) && block < long_rows ? long_rows : block;
}

static int64_t panel_bytes(const struct job *job) {
  return job->kernel->width * job->total_k * (int64_t)sizeof(float);
}

// Whether this number of panels of B stays in the cache while all rows of A are processed. The limit is larger for a
// few panels, because packing A for so few of them would take relatively long.
static bool stays_in_cache(const struct job *job, int64_t panels) {
  enum { few = 3, few_bytes = 704 * 1024 };
  return panels * panel_bytes(job) <= (panels <= few ? few_bytes : b_cached_bytes);
}

// Computes rows [begin, end) of C in panels [first, last). These rows of A are packed at `packed`.
static void run_packed(const struct job *job, int64_t begin, int64_t end, int64_t first, int64_t last,
                       bool rows_outside, const float *packed) {
  enum { step = tfc_gemm_stripe };
  const struct tfc_gemm_product *products = job->products;
  const int64_t product_count = job->joined ? 1 : job->product_count, stripes = (end - begin + step - 1) / step;
  if (in_pieces(job)) {
    pieces(job, packed, begin, end, first, last);
    return;
  }
  if (panel_bytes(job) > b_cached_bytes) { // then the loop over the products is the outer one
    for (int64_t panel = first; panel < last; panel++) {
      const float *a = packed;
      for (int64_t i = 0, count; i < product_count; i += count) {
        count = group_of(job, i);
        for (int64_t s = 0; s < stripes; s++)
          one_tile(job, i, count, a + s * step * job->total_k, begin + s * step, at_most(end - begin - s * step, step),
                   panel, s);
        a += step * count * products[i].k;
      }
    }
    return;
  }
  int64_t outer_end = rows_outside ? stripes : last - first, inner_end = rows_outside ? last - first : stripes;
  for (int64_t outer = 0; outer < outer_end; outer++)
    for (int64_t inner = 0; inner < inner_end; inner++) {
      int64_t s = rows_outside ? outer : inner, panel = first + (rows_outside ? inner : outer);
      const float *a = packed + s * step * job->total_k;
      for (int64_t i = 0, count; i < product_count; i += count) {
        count = group_of(job, i);
        one_tile(job, i, count, a, begin + s * step, at_most(end - begin - s * step, step), panel,
                 rows_outside ? 3 : s);
        a += step * count * products[i].k;
      }
    }
}

void tfc_gemm_run(const struct tfc_gemm_product *products, int64_t product_count, int64_t n, float *c, int64_t ldc,
                  bool accumulate, int64_t row_first, int64_t row_last, int64_t first, int64_t last, float *scratch) {
  struct job job = job_of(products, product_count, n, c, ldc, accumulate);
  const bool rows_outside = stays_in_cache(&job, last - first);
  // If all of B stays in the cache, packed rows are used once, and best at once: from the first-level cache.
  const int64_t block = rows_outside && !in_pieces(&job) ? 2 * tfc_gemm_stripe : block_of(&job);
  const struct tfc_gemm_product *only = products;
  const bool alone = product_count == 1 && !accumulate && only->packed_b, in_place = alone && lies_in_rows(only);
  if (product_count == 1 && !accumulate && has_few_columns(only, n)) {
    few_columns(&job, row_first, row_last, scratch);
    return;
  }
  if (rows_outside && (in_place || (alone && only->source && only->source->stretch))) {
    int64_t whole = row_first + (row_last - row_first) / tfc_gemm_stripe * tfc_gemm_stripe;
    unpacked(&job, row_first, whole, first, last, scratch);
    row_first = whole;
  } else if (in_place) {
    for (int64_t end; row_first < row_last; row_first = end) {
      end = at_most(row_first + at_most(block, rows_in_place), row_last);
      run_in_place(&job, row_first, end, first, last, scratch);
    }
  }
  for (int64_t begin = row_first; begin < row_last; begin += block) {
    int64_t end = at_most(begin + block, row_last);
    pack_stripes(&job, begin, end, scratch);
    run_packed(&job, begin, end, first, last, rows_outside, scratch);
  }
}

void tfc_gemm_run_transposed(const struct tfc_gemm_product *product, const struct tfc_gemm_turned *a, int64_t n,
                             float *c, int64_t ldc, bool accumulate, int64_t first, int64_t last) {
  const struct tfc_gemm_kernel *g = chosen();
  for (int64_t panel = first; panel < last; panel++) {
    const float *packed = product->packed_b, *b = product->b + panel * g->width;
    if (packed) b = packed + panel * g->width * product->k;
    // The last panel and a single vector of columns behind it are computed together, if B is not packed.
    const bool wide = !packed && g->wide && panel + 2 == last && n - panel * g->width == g->wide_columns;
    g->transposed(a, b, packed ? g->width : product->b_row, c + panel * g->width, ldc,
                  wide ? g->wide_columns : at_most(n - panel * g->width, g->width), accumulate);
    panel += wide;
  }
}

int64_t tfc_gemm_block(const struct tfc_gemm_product *products, int64_t product_count, int64_t n, bool accumulate) {
  struct job job = job_of(products, product_count, n, NULL, n, accumulate);
  return stays_in_cache(&job, tfc_gemm_panels(n)) ? 0 : block_of(&job);
}

bool tfc_gemm_is_finite(const float *packed_b, int64_t k, int64_t n) {
  return are_finite(packed_b, tfc_gemm_panels(n) * tfc_gemm_panel() * k);
}

int64_t tfc_gemm_rows_in_place(const struct tfc_gemm_product *product) {
  return product->packed_b && lies_in_rows(product) ? rows_in_place : 0;
}

void tfc_gemm_pack_a(const struct tfc_gemm_product *products, int64_t product_count, int64_t row_first,
                     int64_t row_last, float *packed) {
  struct job job = job_of(products, product_count, 0, NULL, 0, false);
  pack_stripes(&job, row_first, row_last, packed);
}

void tfc_gemm_run_block(const struct tfc_gemm_product *products, int64_t product_count, int64_t n, float *c,
                        int64_t ldc, bool accumulate, int64_t row_first, int64_t row_last, int64_t first, int64_t last,
                        const float *packed_a) {
  struct job job = job_of(products, product_count, n, c, ldc, accumulate);
  run_packed(&job, row_first, row_last, first, last, false, packed_a);
}

void tfc_gemm_run_panel(const struct tfc_gemm_product *product, int64_t n, float *c, int64_t row_first,
                        int64_t row_last, int64_t k_first, int64_t k_last, int64_t panel, const float *panel_b,
                        const float *packed_a) {
  const struct tfc_gemm_kernel *g = chosen();
  const int64_t columns = at_most(n - panel * g->width, g->width);
  for (int64_t row = row_first; row < row_last; row += tfc_gemm_stripe)
    g->tile(1, k_last - k_first, packed_a + (row - row_first) * product->k + k_first * tfc_gemm_stripe, panel_b,
            g->width, panel_b, c + row * n + panel * g->width, n, at_most(row_last - row, tfc_gemm_stripe), columns,
            k_first ? TFC_GEMM_CONTINUE : TFC_GEMM_SET, NULL);
}

void tfc_gemm_add(const float *a, int64_t m, const float *b, int64_t b_row, int64_t k, int64_t n, float *c) {
  const struct tfc_gemm_kernel *g = chosen();
  for (int64_t first = 0; first < n; first += g->width)
    for (int64_t row = 0; row < m; row += tfc_gemm_stripe)
      g->tile(1, k, a + row * k, b + first, b_row, NULL, c + row * n + first, n, tfc_gemm_stripe,
              at_most(n - first, g->width), TFC_GEMM_ADD, NULL);
}

bool tfc_gemm_vector(const float *x, int64_t x_step, struct tfc_matrix b, int64_t k, int64_t n, float *c) {
  if (b.column == 1)
    chosen()->row_times(k, x, x_step, b.data, b.row, n, c);
  else if (b.row == 1)
    chosen()->columns_times(k, x, x_step, b.data, b.column, n, c);
  return b.column == 1 || b.row == 1;
}

void tfc_gemm_few(struct tfc_matrix a, int64_t m, struct tfc_matrix b, int64_t k, int64_t n, float *c, int64_t ldc) {
  chosen()->few_times(m, k, a.data, a.row, a.column, b.data, b.row, n, c, ldc);
}
