// B is packed first: in panels of 48 columns, for each pair of k a row of 48 pairs. Then pieces of C run on any free
// core. Rows of A are read where they lie if pairs of k are neighbours there; else 64 rows are packed, 8 at a time.
#include "runtime/host/gemm/bfloat.h"

#include <string.h>

#include "runtime/base/instructions.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#include <immintrin.h>
#include <pthread.h>

#include "runtime/host/gemm/products.h"
#include "runtime/host/gemm/scratch.h"
#include "runtime/ops/math_narrow.h"

enum { LANES = 16, VECTORS = 3, WIDTH = LANES * VECTORS, STRIPE = 8, BLOCK = 64, LEAST_PIECE = 24 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool available;

static void ask(void) {
  __builtin_cpu_init();
  available = tfc_instructions_allowed(TFC_INSTRUCTIONS_NATIVE) && tfc_instructions_allowed(TFC_INSTRUCTIONS_AVX512) &&
              __builtin_cpu_supports("avx512bf16");
}

bool tfc_bfloat_available(void) {
  pthread_once(&once, ask);
  return available;
}

struct job {
  const struct tfc_bfloat_product *p;
  int64_t pairs, panels, row_part, panel_part, panel_parts;
  uint32_t *b; // [panels, pairs, WIDTH]
  _Atomic bool failed;
};

// --- Packing -----------------------------------------------------------------------------------------------------
// Pair i of row or column `at`, whose elements are `step` apart; what is beyond k is 0.
static uint32_t pair_of(const uint16_t *at, int64_t step, int64_t i, int64_t k) {
  return at[2 * i * step] | (2 * i + 1 < k ? (uint32_t)at[(2 * i + 1) * step] << 16 : 0);
}

// Packs `columns` neighbours of a row of B, and of the row behind it (NULL: there is none).
static void pack_row(const uint16_t *low, const uint16_t *high, int64_t columns, uint32_t *out) {
  for (int64_t j = 0; j < WIDTH; j += LANES) {
    const int64_t left = columns - j;
    const __mmask16 some = (__mmask16)(left >= LANES ? 0xffff : left > 0 ? (1u << left) - 1 : 0);
    __m512i pairs = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, low + j));
    if (high)
      pairs = _mm512_or_si512(pairs,
                              _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, high + j)), 16));
    _mm512_storeu_si512(out + j, pairs);
  }
}

// Packs panels [begin, end) of B.
static void pack_panels(void *arg, int64_t begin, int64_t end) {
  const struct job *j = arg;
  const struct tfc_bfloat_product *p = j->p;
  const struct tfc_bfloat_matrix *b = &p->b;
  if (b->row == 1 && b->column % 2 == 0 && p->k % 2 == 0 && (uintptr_t)b->data % sizeof(float) == 0) {
    // Pairs are neighbours: a pair is moved like one number of twice the size.
    const struct tfc_matrix pairs = {(const float *)(const void *)b->data, 1, b->column / 2};
    tfc_gemm_pack(pairs, j->pairs, p->n, begin, end, (float *)(void *)j->b);
    return;
  }
  for (int64_t panel = begin; panel < end; panel++) {
    const uint16_t *from = b->data + panel * WIDTH * b->column;
    const int64_t columns = p->n - panel * WIDTH < WIDTH ? p->n - panel * WIDTH : WIDTH;
    uint32_t *out = j->b + panel * j->pairs * WIDTH;
    for (int64_t i = 0; i < j->pairs; i++, out += WIDTH) {
      const uint16_t *low = from + 2 * i * b->row;
      if (b->column == 1)
        pack_row(low, 2 * i + 1 < p->k ? low + b->row : NULL, columns, out);
      else
        for (int64_t c = 0; c < WIDTH; c++) out[c] = c < columns ? pair_of(from + c * b->column, b->row, i, p->k) : 0;
    }
  }
}

// Packs 8 rows of A, of which `rows` are there: out [pairs, 8].
static void pack_stripe(const struct job *j, int64_t row, int64_t rows, uint32_t *out) {
  const struct tfc_bfloat_product *p = j->p;
  const struct tfc_bfloat_matrix *a = &p->a;
  const uint16_t *from = a->data + row * a->row;
  const __mmask8 some = (__mmask8)((1u << rows) - 1);
  for (int64_t i = 0; i < j->pairs; i++, out += STRIPE) {
    if (a->row == 1) {
      const __m128i low = _mm_maskz_loadu_epi16(some, from + 2 * i * a->column);
      const __m128i high = _mm_maskz_loadu_epi16(2 * i + 1 < p->k ? some : 0, from + (2 * i + 1) * a->column);
      _mm_storeu_si128((__m128i *)(void *)out, _mm_unpacklo_epi16(low, high));
      _mm_storeu_si128((__m128i *)(void *)(out + 4), _mm_unpackhi_epi16(low, high));
      continue;
    }
    for (int64_t r = 0; r < STRIPE; r++)
      out[r] = pair_of(from + (r < rows ? r : rows - 1) * a->row, a->column, i, p->k);
  }
}

// --- Multiplying -------------------------------------------------------------------------------------------------
static inline __attribute__((always_inline)) uint32_t load_pair(const void *from) {
  uint32_t pair;
  memcpy(&pair, from, sizeof pair);
  return pair;
}

// out [8, WIDTH] = 8 rows of A times a panel of B. Pair i of row r is at rows[r] + i * step bytes.
static inline __attribute__((always_inline)) void tile(int vectors, int64_t step, int64_t pairs,
                                                       const char *const rows[STRIPE], const uint32_t *b, float *out) {
  __m512 acc[STRIPE][VECTORS];
#pragma GCC unroll 8
  for (int r = 0; r < STRIPE; r++)
#pragma GCC unroll 3
    for (int q = 0; q < vectors; q++) acc[r][q] = _mm512_setzero_ps();
  for (int64_t i = 0; i < pairs; i++, b += WIDTH) {
    __m512i bv[VECTORS];
#pragma GCC unroll 3
    for (int q = 0; q < vectors; q++) bv[q] = _mm512_loadu_si512(b + q * LANES);
#pragma GCC unroll 8
    for (int r = 0; r < STRIPE; r++) {
      const __m512i av = _mm512_set1_epi32((int)load_pair(rows[r] + i * step));
#pragma GCC unroll 3
      for (int q = 0; q < vectors; q++) acc[r][q] = _mm512_dpbf16_ps(acc[r][q], (__m512bh)av, (__m512bh)bv[q]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < STRIPE; r++)
#pragma GCC unroll 3
    for (int q = 0; q < vectors; q++) _mm512_store_ps(out + r * WIDTH + q * LANES, acc[r][q]);
}

static void tile_of(int64_t columns, bool packed, int64_t pairs, const char *const rows[STRIPE], const uint32_t *b,
                    float *out) {
  enum { PAIR = sizeof(uint32_t), PACKED = STRIPE * PAIR };
  if (columns > 2 * LANES && packed)
    tile(3, PACKED, pairs, rows, b, out);
  else if (columns > 2 * LANES)
    tile(3, PAIR, pairs, rows, b, out);
  else if (columns > LANES && packed)
    tile(2, PACKED, pairs, rows, b, out);
  else if (columns > LANES)
    tile(2, PAIR, pairs, rows, b, out);
  else if (packed)
    tile(1, PACKED, pairs, rows, b, out);
  else
    tile(1, PAIR, pairs, rows, b, out);
}

// Computes rows [row, row_end), at most BLOCK, of panels [first, last). `a`: memory for packed rows; NULL: they are
// read where they lie.
static void run_block(const struct job *j, int64_t row, int64_t row_end, int64_t first, int64_t last, uint32_t *a) {
  const struct tfc_bfloat_product *p = j->p;
  _Alignas(64) float out[STRIPE * WIDTH];
  for (int64_t r = row; a && r < row_end; r += STRIPE)
    pack_stripe(j, r, row_end - r < STRIPE ? row_end - r : STRIPE, a + (r - row) * j->pairs);
  for (int64_t panel = first; panel < last; panel++) {
    const int64_t columns = p->n - panel * WIDTH < WIDTH ? p->n - panel * WIDTH : WIDTH;
    for (int64_t r = row; r < row_end; r += STRIPE) {
      const int64_t height = row_end - r < STRIPE ? row_end - r : STRIPE;
      const char *rows[STRIPE];
      for (int64_t s = 0; s < STRIPE; s++)
        rows[s] = a ? (const char *)(a + (r - row) * j->pairs + s)
                    : (const char *)(p->a.data + (r + (s < height ? s : height - 1)) * p->a.row);
      tile_of(columns, a != NULL, j->pairs, rows, j->b + panel * j->pairs * WIDTH, out);
      for (int64_t s = 0; s < height; s++)
        ops_narrow_from_float(TFC_BFLOAT16, out + s * WIDTH, p->c + (r + s) * p->c_row + panel * WIDTH, columns);
    }
  }
}

static void run_pieces(void *arg, int64_t begin, int64_t end) {
  struct job *j = arg;
  const struct tfc_bfloat_product *p = j->p;
  const bool in_place = p->a.column == 1 && p->k % 2 == 0;
  uint32_t *a = NULL;
  if (!in_place && !(a = tfc_thread_scratch(TFC_SCRATCH_A, (size_t)(BLOCK * j->pairs) * sizeof *a + 64))) {
    j->failed = true;
    return;
  }
  for (int64_t piece = begin; piece < end; piece++) {
    const int64_t row = piece / j->panel_parts * j->row_part, first = piece % j->panel_parts * j->panel_part;
    const int64_t row_end = row + j->row_part < p->m ? row + j->row_part : p->m;
    const int64_t last = first + j->panel_part < j->panels ? first + j->panel_part : j->panels;
    for (int64_t r = row; r < row_end; r += BLOCK)
      run_block(j, r, r + BLOCK < row_end ? r + BLOCK : row_end, first, last, a);
  }
}

tfc_status tfc_bfloat_run(struct tfc_kernel_ctx *ctx, const struct tfc_bfloat_product *p) {
  enum { SMALL = 1000000, PACKED_AT_ONCE = 16384 }; // FLOP; pairs
  struct job j = {.p = p, .pairs = (p->k + 1) / 2, .panels = (p->n + WIDTH - 1) / WIDTH};
  if (!p->m || !p->n) return NULL;
  j.b = tfc_thread_scratch(TFC_SCRATCH_B, tfc_gemm_packed_bytes(j.pairs, p->n) + 64);
  if (!j.b) return tfc_status_no_memory(NULL);
  if (ctx && 2.0 * (double)p->m * (double)p->n * (double)p->k < SMALL) ctx = NULL;
  tfc_products_split(p->m, j.panels, ctx ? ctx->env->threads : 1, LEAST_PIECE, &j.row_part, &j.panel_part);
  j.panel_parts = (j.panels + j.panel_part - 1) / j.panel_part;
  const int64_t pieces = j.panel_parts * ((p->m + j.row_part - 1) / j.row_part);
  if (ctx) {
    tfc_kernel_parallel_for(ctx, j.panels, PACKED_AT_ONCE / (j.pairs * WIDTH + 1) + 1, pack_panels, &j);
    tfc_kernel_parallel_for(ctx, pieces, 1, run_pieces, &j);
  } else {
    pack_panels(&j, 0, j.panels);
    run_pieces(&j, 0, pieces);
  }
  return j.failed ? tfc_status_no_memory(NULL) : NULL;
}
#else
bool tfc_bfloat_available(void) {
  return false;
}

tfc_status tfc_bfloat_run(struct tfc_kernel_ctx *ctx, const struct tfc_bfloat_product *product) {
  (void)ctx, (void)product;
  return tfc_status_make(TFC_UNIMPLEMENTED, "this processor has no dot products of bfloat16");
}
#endif

struct batch {
  struct tfc_bfloat_product (*at)(const void *batch, int64_t i);
  const void *batch;
  _Atomic bool failed;
};
static void run_batch(void *arg, int64_t begin, int64_t end) {
  struct batch *b = arg;
  for (int64_t i = begin; i < end; i++) {
    const struct tfc_bfloat_product p = b->at(b->batch, i);
    tfc_status s = tfc_bfloat_run(NULL, &p);
    if (s) b->failed = true;
    tfc_status_free(s);
  }
}

tfc_status tfc_bfloat_run_all(struct tfc_kernel_ctx *ctx, int64_t count,
                              struct tfc_bfloat_product (*at)(const void *batch, int64_t i), const void *batch) {
  static const double worth = 1e6; // FLOP for which another core is woken
  struct batch b = {at, batch, false};
  for (int64_t i = 0; i < count && count < ctx->env->threads; i++) {
    const struct tfc_bfloat_product p = at(batch, i);
    TFC_RETURN_IF_ERROR(tfc_bfloat_run(ctx, &p));
  }
  if (count < ctx->env->threads) return NULL;
  const struct tfc_bfloat_product p = at(batch, 0);
  const double flop = 2.0 * (double)p.m * (double)p.n * (double)p.k;
  tfc_kernel_parallel_for(ctx, count, flop < worth ? (int64_t)(worth / (flop + 1)) + 1 : 1, run_batch, &b);
  return b.failed ? tfc_status_no_memory(NULL) : NULL;
}
