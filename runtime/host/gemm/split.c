// A thread computes 256 rows of A at a time, for 576 k of a product (or of several short ones): the packed rows and a
// panel then stay in the second-level cache. Within that, 32 x 32 elements of C stay in four tiles while k advances. Of
// the other four tiles, two hold rows of A and two columns of B. The six products of pieces come in an order in which
// each one differs from the one before on one side only.
#include "runtime/host/gemm/split.h"

#include <string.h>

#include "runtime/base/instructions.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-bf16")
#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  TILE = 16,
  LEAST_ROWS = 128,
  LEAST_K = 128,
  TILE_BYTES = 1024,
  PIECE_BYTES = 2 * TILE_BYTES,
  GROUP_BLOCKS = TFC_SPLIT_GROUP,
  EDGE = TFC_SPLIT_SIDE
};
enum { STRIPES = TFC_SPLIT_ROWS / TFC_SPLIT_SIDE };
_Static_assert((STRIPES + 1) * GROUP_BLOCKS * TFC_SPLIT_BLOCK + 2 * EDGE * EDGE * sizeof(float) <= TFC_SPLIT_SCRATCH,
               "scratch memory");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool available;

static void ask(void) {
  enum { TILE_UNIT = 1 << 24, BFLOAT16 = 1 << 22, REQUEST = 0x1023, TILE_DATA = 18 };
  unsigned a, b, c, d;
  if (!tfc_instructions_allowed(TFC_INSTRUCTIONS_NATIVE) || !tfc_instructions_allowed(TFC_INSTRUCTIONS_AVX512)) return;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & TILE_UNIT) || !(d & BFLOAT16)) return;
  available = syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0; // the request is for all threads of the process
}

bool tfc_split_available(void) {
  pthread_once(&once, ask);
  return available;
}

// --- Packing -----------------------------------------------------------------------------------------------------
static inline __mmask16 some(int64_t count) {
  return (__mmask16)(count >= TILE ? 0xffff : count > 0 ? (1u << count) - 1 : 0);
}

// For each piece, makes a row of a tile from 16 numbers of k and the 16 numbers of k + 16. `top` collects the largest
// magnitudes.
static inline __attribute__((always_inline)) void split(__m512 low, __m512 high, char *out, __m512i *top) {
  const __m512i bits = _mm512_set1_epi32((int)0xffff0000u), half = _mm512_set1_epi32(0x8000);
  const __m512i size = _mm512_set1_epi32(0x7fffffff);
  *top = _mm512_max_epu32(*top, _mm512_and_si512(_mm512_castps_si512(low), size));
  *top = _mm512_max_epu32(*top, _mm512_and_si512(_mm512_castps_si512(high), size));
#pragma GCC unroll 3
  for (int piece = 0; piece < 3; piece++) {
    __m512i l = _mm512_castps_si512(low), h = _mm512_castps_si512(high);
    if (piece < 2) {
      l = _mm512_and_si512(_mm512_add_epi32(l, half), bits), h = _mm512_and_si512(_mm512_add_epi32(h, half), bits);
      low = _mm512_sub_ps(low, _mm512_castsi512_ps(l)), high = _mm512_sub_ps(high, _mm512_castsi512_ps(h));
    }
    _mm512_store_si512(out + piece * PIECE_BYTES, _mm512_or_si512(_mm512_srli_epi32(l, 16), _mm512_and_si512(h, bits)));
  }
}

static inline __attribute__((always_inline)) void transpose(__m512 v[TILE]) {
  __m512 t[TILE];
#pragma GCC unroll 8
  for (int i = 0; i < TILE; i += 2) {
    t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < TILE; i += 4)
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
      __m512d x = _mm512_castps_pd(t[i + j]), y = _mm512_castps_pd(t[i + j + 2]);
      v[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
      v[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
    }
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    __m512 x = _mm512_shuffle_f32x4(v[j], v[4 + j], 0x88), y = _mm512_shuffle_f32x4(v[8 + j], v[12 + j], 0x88);
    __m512 z = _mm512_shuffle_f32x4(v[j], v[4 + j], 0xdd), w = _mm512_shuffle_f32x4(v[8 + j], v[12 + j], 0xdd);
    t[j] = _mm512_shuffle_f32x4(x, y, 0x88), t[8 + j] = _mm512_shuffle_f32x4(x, y, 0xdd);
    t[4 + j] = _mm512_shuffle_f32x4(z, w, 0x88), t[12 + j] = _mm512_shuffle_f32x4(z, w, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < TILE; i++) v[i] = t[i];
}

// 16 x 16 numbers. Neighbours in a line are `across` elements apart (1: contiguous), lines are `down` apart. Only
// `lines` lines with `length` numbers exist; the other numbers are 0.
struct square {
  const float *const *rows; // where each line begins; NULL: `down` and `across` say it
  const float *data;
  int64_t down, across, lines, length;
};

static inline __attribute__((always_inline)) __m512 line_of(const struct square *q, int64_t i) {
  if (i >= q->lines || q->length <= 0) return _mm512_setzero_ps();
  if (q->rows) return _mm512_maskz_loadu_ps(some(q->length), q->rows[i]);
  if (q->across == 1) return _mm512_maskz_loadu_ps(some(q->length), q->data + i * q->down);
  float line[TILE] = {0};
  for (int64_t j = 0; j < q->length && j < TILE; j++) line[j] = q->data[i * q->down + j * q->across];
  return _mm512_loadu_ps(line);
}

static inline __attribute__((always_inline)) void load_square(const struct square *q, bool transposed, __m512 v[TILE]) {
#pragma GCC unroll 16
  for (int i = 0; i < TILE; i++) v[i] = line_of(q, i);
  if (transposed) transpose(v);
}

// Packs one tile of each piece, for 16 rows of A or 16 columns of B, of which `n` exist, and for k from `at` to `k`, if
// the numbers of a tile's row are not contiguous.
static void pack_transposed(bool of_a, struct tfc_matrix x, int64_t first, int64_t n, int64_t at, int64_t k, char *out,
                            __m512i *top) {
  __m512 low[TILE], high[TILE];
  int64_t along_k = of_a ? x.column : x.row, along_n = of_a ? x.row : x.column;
  bool transposed = !of_a || along_n == 1, lines_along_k = of_a != transposed;
  for (int half = 0; half < 2; half++) {
    int64_t from = at + half * TILE, left = k - from;
    struct square q = {.data = x.data + first * along_n + from * along_k};
    q.down = lines_along_k ? along_n : along_k, q.across = lines_along_k ? along_k : along_n;
    q.lines = lines_along_k ? n : left, q.length = lines_along_k ? left : n;
    load_square(&q, transposed, half ? high : low);
  }
  for (int i = 0; i < TILE; i++) split(low[i], high[i], out + i * 64, top);
}

// Packs 16 rows of A whose k are contiguous.
static void pack_lines(const float *const *lines, int64_t count, int64_t at, int64_t k, char *out, __m512i *top) {
  __m512i most = *top;
  for (int64_t i = 0; i < TILE; i++) {
    char *to = out + i * 64;
    const float *from = lines[i < count ? i : 0];
    for (int64_t z = at; z < k; z += TFC_SPLIT_K, to += TFC_SPLIT_BLOCK) {
      __m512 low, high;
      if (i >= count) {
        low = high = _mm512_setzero_ps();
      } else if (k - z >= TFC_SPLIT_K) {
        low = _mm512_loadu_ps(from + z), high = _mm512_loadu_ps(from + z + TILE);
      } else {
        low = _mm512_maskz_loadu_ps(some(k - z), from + z);
        high = k - z > TILE ? _mm512_maskz_loadu_ps(some(k - z - TILE), from + z + TILE) : _mm512_setzero_ps();
      }
      split(low, high, to, &most);
    }
  }
  *top = most;
}

// Packs k [from, to) of a stripe of A with `rows` rows, each of which is contiguous; `from` is a multiple of 32.
static void pack_stripe(const struct tfc_split_matrix *a, int64_t row, int64_t rows, int64_t from, int64_t to,
                        char *out, __m512i *top) {
  for (int64_t t = 0; t < 2 && rows > t * TILE; t++) {
    int64_t first = row + t * TILE, n = rows - t * TILE < TILE ? rows - t * TILE : TILE;
    const float *lines[TILE];
    if (a->rows)
      a->rows(a->arg, first, n, lines);
    else
      for (int64_t i = 0; i < n; i++) lines[i] = a->matrix.data + (first + i) * a->matrix.row;
    pack_lines(lines, n, from, to, out + t * TILE_BYTES, top);
  }
}

// Packs k [from, to) of rows [row, row_end) of A; stripes are `step` bytes apart.
static void pack_stripes(const struct tfc_split_matrix *a, int64_t row, int64_t row_end, int64_t from, int64_t to,
                         char *out, int64_t step, __m512i *top) {
  if (a->rows && a->transposed) {
    for (int64_t z = from; z < to; z += TFC_SPLIT_K, out += TFC_SPLIT_BLOCK) {
      const float *lines[TFC_SPLIT_K];
      int64_t there = to - z < TFC_SPLIT_K ? to - z : TFC_SPLIT_K;
      a->rows(a->arg, z, there, lines);
      for (int64_t i = 0; i < there; i++) lines[i] += row;
      for (int64_t r = row; r < row_end; r += TILE) {
        int64_t s = (r - row) / TFC_SPLIT_SIDE, t = (r - row) / TILE % 2, n = row_end - r < TILE ? row_end - r : TILE;
        __m512 low[TILE], high[TILE];
        load_square(&(struct square){.rows = lines, .lines = there, .length = n}, true, low);
        load_square(&(struct square){.rows = lines + TILE, .lines = there - TILE, .length = n}, true, high);
        for (int i = 0; i < TILE; i++) split(low[i], high[i], out + s * step + t * TILE_BYTES + i * 64, top);
        for (int64_t i = 0; i < there; i++) lines[i] += TILE;
      }
    }
    return;
  }
  if (a->rows || a->matrix.column == 1) {
    for (int64_t r = row; r < row_end; r += TFC_SPLIT_SIDE, out += step)
      pack_stripe(a, r, row_end - r < TFC_SPLIT_SIDE ? row_end - r : TFC_SPLIT_SIDE, from, to, out, top);
    return;
  }
  for (int64_t z = from; z < to; z += TFC_SPLIT_K, out += TFC_SPLIT_BLOCK) // goes along the lines in memory
    for (int64_t r = row; r < row_end; r += TILE) {
      int64_t s = (r - row) / TFC_SPLIT_SIDE, t = (r - row) / TILE % 2;
      pack_transposed(true, a->matrix, r, row_end - r < TILE ? row_end - r : TILE, z, to,
                      out + s * step + t * TILE_BYTES, top);
    }
}

// Packs one block, k [from, to) with at most 32 of them, of each of panels [first, last). Panels are `step` bytes
// apart.
static void pack_block(const struct tfc_split_matrix *b, int64_t from, int64_t to, int64_t n, int64_t first,
                       int64_t last, char *out, int64_t step, __m512i *top) {
  const float *lines[TFC_SPLIT_K];
  __m512i most = *top;
  bool straight = b->rows || b->matrix.column == 1;
  if (b->rows)
    b->rows(b->arg, from, to - from, lines);
  else
    for (int64_t i = 0; i < to - from && straight; i++) lines[i] = b->matrix.data + (from + i) * b->matrix.row;
  for (int64_t panel = first; panel < last; panel++, out += step)
    for (int64_t t = 0; t < 2; t++) {
      int64_t column = panel * TFC_SPLIT_SIDE + t * TILE, left = n - column;
      if (left <= 0) break;
      char *tile = out + t * TILE_BYTES;
      if (!straight) {
        pack_transposed(false, b->matrix, column, left < TILE ? left : TILE, from, to, tile, &most);
        continue;
      }
      __mmask16 mask = some(left);
      for (int64_t i = 0; i < TILE; i++) {
        __m512 low = from + i < to ? _mm512_maskz_loadu_ps(mask, lines[i] + column) : _mm512_setzero_ps();
        __m512 high =
            from + i + TILE < to ? _mm512_maskz_loadu_ps(mask, lines[i + TILE] + column) : _mm512_setzero_ps();
        split(low, high, tile + i * 64, &most);
      }
    }
  *top = most;
}

static bool fits(__m512i top) {
  return _mm512_reduce_max_epu32(top) < 0x7f000000u;
}

bool tfc_split_pack_b(const struct tfc_split_matrix *b, int64_t k, int64_t n, int64_t first, int64_t last,
                      void *packed) {
  __m512i top = _mm512_setzero_si512();
  int64_t step = tfc_split_blocks(k) * TFC_SPLIT_BLOCK;
  char *out = (char *)packed + first * step;
  for (int64_t z = 0; z < k; z += TFC_SPLIT_K, out += TFC_SPLIT_BLOCK)
    pack_block(b, z, z + TFC_SPLIT_K < k ? z + TFC_SPLIT_K : k, n, first, last, out, step, &top);
  return fits(top);
}

// --- Multiplying -------------------------------------------------------------------------------------------------
void tfc_split_configure(void) {
  // Kept in memory of its own, because the compiler assumes that the instruction reads only eight bytes.
  static const struct {
    uint8_t palette, start, unused[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } settings = {.palette = 1, .bytes = {[0 ... 7] = 64}, .rows = {[0 ... 7] = TILE}};
  _tile_loadconfig(&settings);
}

// What is prefetched meanwhile, a few pairs of cache lines for each block: the next square of C into the first-level
// cache, the next panel into the second-level cache.
struct near {
  const char *c, *b;
  int64_t c_step, b_step, c_left, b_left; // left: in pairs of lines
  int64_t c_each, b_each;
};
static inline __attribute__((always_inline)) void bring(struct near *n) {
  for (int64_t i = n->c_each; i > 0 && n->c_left > 0; i--, n->c_left--, n->c += n->c_step) {
    __builtin_prefetch(n->c, 1, 3);
    __builtin_prefetch(n->c + 64, 1, 3);
  }
  for (int64_t i = n->b_each; i > 0 && n->b_left > 0; i--, n->b_left--, n->b += n->b_step) {
    __builtin_prefetch(n->b, 0, 2);
    __builtin_prefetch(n->b + 64, 0, 2);
  }
}

// Adds `blocks` blocks of a times b to C in tiles 0 to 3 (row by row of tiles); there are R x S tiles.
#define ROWS_OF_A(piece)                                                                                               \
  do {                                                                                                                 \
    _tile_loadd(4, a + (piece)*PIECE_BYTES, 64);                                                                       \
    if (R == 2) _tile_loadd(5, a + (piece)*PIECE_BYTES + TILE_BYTES, 64);                                              \
  } while (0)
#define COLUMNS_OF_B(piece)                                                                                            \
  do {                                                                                                                 \
    _tile_loadd(6, b + (piece)*PIECE_BYTES, 64);                                                                       \
    if (S == 2) _tile_loadd(7, b + (piece)*PIECE_BYTES + TILE_BYTES, 64);                                              \
  } while (0)
#define MULTIPLY()                                                                                                     \
  do {                                                                                                                 \
    _tile_dpbf16ps(0, 4, 6);                                                                                           \
    if (S == 2) _tile_dpbf16ps(1, 4, 7);                                                                               \
    if (R == 2) _tile_dpbf16ps(2, 5, 6);                                                                               \
    if (R == 2 && S == 2) _tile_dpbf16ps(3, 5, 7);                                                                     \
  } while (0)
static inline __attribute__((always_inline)) void multiply(const int R, const int S, const char *a, const char *b,
                                                           int64_t blocks, struct near *near) {
  for (int64_t i = 0; i < blocks; i++, a += TFC_SPLIT_BLOCK, b += TFC_SPLIT_BLOCK) {
    bring(near);
    ROWS_OF_A(0);
    COLUMNS_OF_B(2);
    MULTIPLY();
    COLUMNS_OF_B(1);
    MULTIPLY();
    ROWS_OF_A(1);
    MULTIPLY();
    COLUMNS_OF_B(0);
    MULTIPLY();
    ROWS_OF_A(2);
    MULTIPLY();
    ROWS_OF_A(0);
    MULTIPLY();
  }
}

struct stretch { // some blocks of one product
  int64_t product, block, blocks;
  int64_t step;      // bytes from stripe to stripe of A
  const char *a, *b; // of the current stripe and panel
};

static inline __attribute__((always_inline)) void tile(const int R, const int S, const struct stretch *stretches,
                                                       int64_t count, int64_t stripe, float *c, int64_t ldc,
                                                       bool goes_on, struct near *near) {
  const int64_t step = ldc * (int64_t)sizeof *c;
  if (goes_on) {
    _tile_loadd(0, c, step);
    if (S == 2) _tile_loadd(1, c + TILE, step);
    if (R == 2) _tile_loadd(2, c + TILE * ldc, step);
    if (R == 2 && S == 2) _tile_loadd(3, c + TILE * ldc + TILE, step);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t i = 0; i < count; i++)
    multiply(R, S, stretches[i].a + stripe * stretches[i].step, stretches[i].b, stretches[i].blocks, near);
  _tile_stored(0, c, step);
  if (S == 2) _tile_stored(1, c + TILE, step);
  if (R == 2) _tile_stored(2, c + TILE * ldc, step);
  if (R == 2 && S == 2) _tile_stored(3, c + TILE * ldc + TILE, step);
}

// Computes a square of C with rows <= 32 and columns <= 32.
static void square_of_c(const struct stretch *stretches, int64_t count, int64_t stripe, float *c, int64_t ldc,
                        int64_t rows, int64_t columns, bool goes_on, float *edge, struct near *near) {
  bool whole = rows % TILE == 0 && columns % TILE == 0;
  float *to = whole ? c : edge;
  int64_t step = whole ? ldc : EDGE;
  for (int64_t r = 0; !whole && goes_on && r < rows; r++) {
    memset(edge + r * EDGE, 0, EDGE * sizeof *edge);
    memcpy(edge + r * EDGE, c + r * ldc, (size_t)columns * sizeof *edge);
  }
  if (rows > TILE && columns > TILE)
    tile(2, 2, stretches, count, stripe, to, step, goes_on, near);
  else if (rows > TILE)
    tile(2, 1, stretches, count, stripe, to, step, goes_on, near);
  else if (columns > TILE)
    tile(1, 2, stretches, count, stripe, to, step, goes_on, near);
  else
    tile(1, 1, stretches, count, stripe, to, step, goes_on, near);
  for (int64_t r = 0; !whole && r < rows; r++) memcpy(c + r * ldc, edge + r * EDGE, (size_t)columns * sizeof *edge);
}

// Finds the next blocks of the products, at most GROUP_BLOCKS of them, so that groups have about the same size; 0:
// there are no more.
static int64_t next_group(const struct tfc_split_product *products, int64_t product_count, int64_t *product,
                          int64_t *block, struct stretch out[GROUP_BLOCKS]) {
  int64_t count = 0, left = -*block;
  for (int64_t i = *product; i < product_count; i++) left += tfc_split_blocks(products[i].k);
  int64_t groups = (left + GROUP_BLOCKS - 1) / GROUP_BLOCKS, room = groups > 0 ? (left + groups - 1) / groups : 0;
  while (room && *product < product_count) {
    int64_t all = tfc_split_blocks(products[*product].k), blocks = all - *block < room ? all - *block : room;
    if (blocks) out[count++] = (struct stretch){.product = *product, .block = *block, .blocks = blocks};
    room -= blocks;
    *block += blocks;
    if (*block == all) *block = 0, ++*product;
  }
  return count;
}

struct work {
  const struct tfc_split_product *products;
  int64_t n, ldc;
  float *c;
  char *packed_a, *packed_b;
  float *edge;
  __m512i top;
};

// Packs rows [row, row_end) of A for a group.
static void ready_a(struct work *w, struct stretch *group, int64_t count, int64_t row, int64_t row_end) {
  int64_t step = 0;
  for (int64_t i = 0; i < count; i++) step += group[i].blocks * TFC_SPLIT_BLOCK;
  char *to = w->packed_a;
  for (int64_t i = 0; i < count; i++) {
    struct stretch *g = &group[i];
    const struct tfc_split_product *p = &w->products[g->product];
    int64_t from = g->block * TFC_SPLIT_K, end = from + g->blocks * TFC_SPLIT_K;
    if (end > p->k) end = p->k;
    pack_stripes(&p->a, row, row_end, from, end, to, step, &w->top);
    g->a = to, g->step = step;
    to += g->blocks * TFC_SPLIT_BLOCK;
  }
}

static void ready_b(struct work *w, struct stretch *group, int64_t count, int64_t panel) {
  char *to = w->packed_b;
  for (int64_t i = 0; i < count; i++) {
    struct stretch *g = &group[i];
    const struct tfc_split_product *p = &w->products[g->product];
    if (p->packed_b) {
      g->b = (const char *)p->packed_b + (panel * tfc_split_blocks(p->k) + g->block) * TFC_SPLIT_BLOCK;
      continue;
    }
    g->b = to;
    for (int64_t z = 0; z < g->blocks; z++, to += TFC_SPLIT_BLOCK) {
      int64_t from = (g->block + z) * TFC_SPLIT_K, end = from + TFC_SPLIT_K < p->k ? from + TFC_SPLIT_K : p->k;
      pack_block(&p->b, from, end, w->n, panel, panel + 1, to, 0, &w->top);
    }
  }
}

// Sets what is prefetched of the only product's next panel: its packed blocks, or the rows that will be packed.
static void next_panel(const struct tfc_split_product *products, const struct stretch *g, int64_t panel,
                       int64_t stripes, struct near *near) {
  const struct tfc_split_product *p = &products[g->product];
  if (p->packed_b) {
    near->b = (const char *)p->packed_b + (panel * tfc_split_blocks(p->k) + g->block) * TFC_SPLIT_BLOCK;
    near->b_step = 128, near->b_left = g->blocks * TFC_SPLIT_BLOCK / 128;
  } else if (!p->b.rows && p->b.matrix.column == 1) {
    int64_t from = g->block * TFC_SPLIT_K, left = p->k - from, here = g->blocks * TFC_SPLIT_K;
    near->b = (const char *)(p->b.matrix.data + from * p->b.matrix.row + panel * TFC_SPLIT_SIDE);
    near->b_step = p->b.matrix.row * (int64_t)sizeof(float), near->b_left = here < left ? here : left;
  }
  int64_t turns = stripes * g->blocks;
  near->b_each = (near->b_left + turns - 1) / turns;
}

bool tfc_split_run(const struct tfc_split_product *products, int64_t product_count, int64_t n, float *c, int64_t ldc,
                   bool accumulate, int64_t row_first, int64_t row_last, int64_t first, int64_t last, void *scratch) {
  struct work w = {.products = products, .n = n, .ldc = ldc, .c = c, .packed_a = scratch};
  w.packed_b = w.packed_a + STRIPES * GROUP_BLOCKS * TFC_SPLIT_BLOCK;
  w.edge = (float *)(void *)(w.packed_b + GROUP_BLOCKS * TFC_SPLIT_BLOCK);
  w.top = _mm512_setzero_si512();
  tfc_split_configure();
  for (int64_t row = row_first; row < row_last; row += TFC_SPLIT_ROWS) {
    int64_t row_end = row + TFC_SPLIT_ROWS < row_last ? row + TFC_SPLIT_ROWS : row_last, product = 0, block = 0, count;
    struct stretch group[GROUP_BLOCKS];
    bool goes_on = accumulate;
    while ((count = next_group(products, product_count, &product, &block, group))) {
      ready_a(&w, group, count, row, row_end);
      struct near near = {.c_step = ldc * (int64_t)sizeof *c};
      int64_t blocks = 0, stripes = (row_end - row + TFC_SPLIT_SIDE - 1) / TFC_SPLIT_SIDE;
      for (int64_t i = 0; i < count; i++) blocks += group[i].blocks;
      near.c_each = (TFC_SPLIT_SIDE + blocks - 1) / blocks;
      for (int64_t panel = first; panel < last; panel++) {
        int64_t column = panel * TFC_SPLIT_SIDE, columns = n - column < TFC_SPLIT_SIDE ? n - column : TFC_SPLIT_SIDE;
        ready_b(&w, group, count, panel);
        near.b_left = 0;
        if (count == 1 && panel + 1 < last) next_panel(products, group, panel + 1, stripes, &near);
        for (int64_t r = row, t = 0; r < row_end; r += TFC_SPLIT_SIDE, t++) {
          float *here = c + r * ldc + column;
          // The next square of C is below this one, or at the top of the next panel.
          bool down = r + TFC_SPLIT_SIDE < row_end;
          near.c = (const char *)(down ? here + TFC_SPLIT_SIDE * ldc : c + row * ldc + column + TFC_SPLIT_SIDE);
          near.c_left = down || panel + 1 < last ? TFC_SPLIT_SIDE : 0;
          square_of_c(group, count, t, here, ldc, row_end - r < TFC_SPLIT_SIDE ? row_end - r : TFC_SPLIT_SIDE, columns,
                      goes_on, w.edge, &near);
        }
      }
      goes_on = true;
    }
    for (int64_t r = row; r < row_end && !goes_on; r++) { // if k is 0 for all products, C becomes 0
      int64_t column = first * TFC_SPLIT_SIDE, end = last * TFC_SPLIT_SIDE < n ? last * TFC_SPLIT_SIDE : n;
      memset(c + r * ldc + column, 0, (size_t)(end - column) * sizeof *c);
    }
  }
  _tile_release();
  return fits(w.top);
}

bool tfc_split_pays(int64_t m, int64_t n, int64_t k, int64_t blocks, bool ready) {
  // With few rows, a slow unit loses more before that is noticed than a fast unit gains.
  if (m < LEAST_ROWS || n < TILE || k < TILE) return false;
  // The same for a short k: most of the time is for reading and writing C, and much of the rest for packing.
  if (!ready && k < LEAST_K) return false;
  // Estimates cycles. The tile unit does 60 multiply-adds per cycle, 16 x 16 x 32 at a time, and packing takes about a
  // cycle for a number; otherwise it is 28 multiply-adds, 8 x 16 at a time, and a fifth of a cycle.
  double rows = (double)((m + 15) / 16 * 16), columns = (double)((n + 15) / 16 * 16);
  double split = rows * columns * (double)(blocks * TFC_SPLIT_K) / 60 + 0.9 * (double)(m * k);
  double plain = (double)((m + 7) / 8 * 8) * columns * (double)k / 28 + 0.2 * (double)(m * k);
  if (!ready) split += 0.9 * (double)(k * n), plain += 0.2 * (double)(k * n);
  return split < plain;
}

#else
bool tfc_split_available(void) {
  return false;
}
void tfc_split_configure(void) {}
bool tfc_split_pays(int64_t m, int64_t n, int64_t k, int64_t blocks, bool ready) {
  (void)m, (void)n, (void)k, (void)blocks, (void)ready;
  return false;
}
bool tfc_split_pack_b(const struct tfc_split_matrix *b, int64_t k, int64_t n, int64_t first, int64_t last,
                      void *packed) {
  (void)b, (void)k, (void)n, (void)first, (void)last, (void)packed;
  return false;
}
bool tfc_split_run(const struct tfc_split_product *products, int64_t product_count, int64_t n, float *c, int64_t ldc,
                   bool accumulate, int64_t row_first, int64_t row_last, int64_t first, int64_t last, void *scratch) {
  (void)products, (void)product_count, (void)n, (void)c, (void)ldc, (void)accumulate, (void)row_first, (void)row_last;
  (void)first, (void)last, (void)scratch;
  return false;
}
#endif
