// Every element of a product is one chain of fused multiply-adds, so the test is exact.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/host/gemm/gemm.h"
#include "runtime/host/gemm/kernel.h"
#include "runtime/host/gemm/products.h"

static float *random_floats(struct tfc_random *r, int64_t count) {
  float *p = malloc((size_t)(count ? count : 1) * sizeof *p);
  for (int64_t i = 0; i < count; i++) p[i] = (float)(2 * tfc_random_unit(r) - 1);
  return p;
}

#ifdef TFC_SANITIZED
enum { CHAINS = 12, WHOLE = 16, SPLIT = 14 }; // how many rounds each test has
#else
enum { CHAINS = 60, WHOLE = 104, SPLIT = 90 };
#endif

static bool fused;

static float chain(struct tfc_matrix a, struct tfc_matrix b, int64_t i, int64_t j, int64_t k) {
  float c = 0;
  for (int64_t z = 0; z < k; z++) {
    float x = a.data[i * a.row + z * a.column], y = b.data[z * b.row + j * b.column];
    c = fused ? fmaf(x, y, c) : c + x * y;
  }
  return c;
}

// Tests random sizes and transposes, and sums of up to 4 products. The right sides are packed one by one, packed as
// one, or not packed. The work is divided over rows and panels at random places.
static void products_are_chains(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 7);
  for (int round = 0; round < CHAINS; round++) {
    int64_t m = 1 + (int64_t)tfc_random_below(&r, 70), n = 1 + (int64_t)tfc_random_below(&r, 200);
    int64_t count = 1 + (int64_t)tfc_random_below(&r, 4), total_k = 0;
    bool accumulate = tfc_random_below(&r, 2);
    if (round % 5 == 0) { // a whole panel or more, and one vector of columns behind them
      count = 1, accumulate = false;
      n = (1 + round % 3) * tfc_gemm_panel() + 16;
    }
    struct tfc_gemm_product products[4];
    struct tfc_matrix a[4], b[4];
    int64_t k[4];
    float *memory[12];
    const bool as_one = tfc_random_below(&r, 2), alike = tfc_random_below(&r, 2);
    for (int64_t i = 0; i < count; i++) {
      k[i] = alike && i > 0 ? k[i - 1] : (int64_t)tfc_random_below(&r, 90);
      total_k += k[i];
    }
    float *all = aligned_alloc(64, (tfc_gemm_packed_bytes(total_k, n) + 63) / 64 * 64), *at = all;
    for (int64_t i = 0; i < count; i++) {
      bool ta = tfc_random_below(&r, 2), tb = tfc_random_below(&r, 2);
      a[i] = (struct tfc_matrix){memory[3 * i] = random_floats(&r, m * k[i]), ta ? 1 : k[i], ta ? m : 1};
      b[i] = (struct tfc_matrix){memory[3 * i + 1] = random_floats(&r, k[i] * n), tb ? 1 : n, tb ? k[i] : 1};
      size_t bytes = (tfc_gemm_packed_bytes(k[i], n) + 63) / 64 * 64;
      float *packed = memory[3 * i + 2] = aligned_alloc(64, bytes);
      tfc_gemm_pack(b[i], k[i], n, 0, tfc_gemm_panels(n), packed);
      tfc_gemm_pack_part(b[i], total_k, n, 0, k[i], 0, tfc_gemm_panels(n), at);
      products[i] = (struct tfc_gemm_product){.a = a[i], .packed_b = packed, .k = k[i]};
      if (as_one) {
        products[i].packed_b = at, products[i].panel_rows = total_k;
      } else if (!tb && tfc_random_below(&r, 2)) { // not packed, except the last panel
        const float *tail = packed + n / tfc_gemm_panel() * tfc_gemm_panel() * k[i];
        products[i] = (struct tfc_gemm_product){.a = a[i], .b = b[i].data, .b_row = n, .tail = tail, .k = k[i]};
      }
      at += k[i] * tfc_gemm_panel();
    }
    float *c = random_floats(&r, m * n), *before = malloc((size_t)(m * n) * sizeof *before);
    memcpy(before, c, (size_t)(m * n) * sizeof *c);
    float *scratch = malloc(tfc_gemm_scratch_bytes(m, total_k) + 64);
    int64_t row = (int64_t)tfc_random_below(&r, (uint64_t)(m + 7) / 8) * 8;
    int64_t panel = (int64_t)tfc_random_below(&r, (uint64_t)tfc_gemm_panels(n));
    for (int part = 0; part < 4; part++)
      tfc_gemm_run(products, count, n, c, n, accumulate, part & 1 ? row : 0, part & 1 ? m : row, part & 2 ? panel : 0,
                   part & 2 ? tfc_gemm_panels(n) : panel, scratch);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        float expected = accumulate ? before[i * n + j] : 0;
        for (int64_t p = 0; p < count; p++) {
          float v = chain(a[p], b[p], i, j, products[p].k);
          expected = p || accumulate ? expected + v : v;
        }
        assert_true(expected == c[i * n + j]);
      }
    for (int64_t i = 0; i < 3 * count; i++) free(memory[i]);
    free(all), free(c), free(before), free(scratch);
  }
}

// Products whose operands are not packed: whichever of them the product packs or transposes itself, the chains are the
// same.
static void operands_may_lie_as_they_like(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 11);
  for (int round = 0; round < WHOLE; round++) {
    int64_t m = 1 + (int64_t)tfc_random_below(&r, 120), n = 1 + (int64_t)tfc_random_below(&r, 300);
    int64_t k = 1 + (int64_t)tfc_random_below(&r, 260);
    if (round % 8 == 0) n = m;
    if (round % 8 == 1) k += 2000 + (int64_t)tfc_random_below(&r, 1500), n = n % 60 + 1;
    if (round % 16 == 1) m = 129 + m % 9;
    if (round % 8 == 2) m = 1;
    if (round % 8 == 3) n = 1;
    const bool few = round % 8 == 4; // few rows times a right side of a megabyte
    if (few) m = 1 + m % 12, n += m % 2 ? 768 : 256 - n % 16, k += (1 << 18) / n;
    bool ta = tfc_random_below(&r, 2), tb = !few && tfc_random_below(&r, 2);
    float *x = random_floats(&r, m * k), *y = random_floats(&r, k * n), *c = random_floats(&r, m * n);
    struct tfc_product p = {.a = {x, ta ? 1 : k, ta ? m : 1}, .b = {y, tb ? 1 : n, tb ? k : 1}, .k = k};
    assert_null(tfc_products_run_serial(&p, 1, m, n, false, c));
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) assert_true(chain(p.a, p.b, i, j, k) == c[i * n + j]);
    free(x), free(y), free(c);
  }
}

// --- The tile unit -----------------------------------------------------------------------------------------------
// Returns element (i, j) of the product in double; adds the magnitudes of its terms to `size`.
static double in_double(struct tfc_matrix a, struct tfc_matrix b, int64_t i, int64_t j, int64_t k, double *size) {
  double c = 0;
  for (int64_t z = 0; z < k; z++) {
    double term = (double)a.data[i * a.row + z * a.column] * (double)b.data[z * b.row + j * b.column];
    c += term;
    *size += fabs(term);
  }
  return c;
}

static void rows_anywhere(const void *arg, int64_t first, int64_t count, const float **out) {
  const struct tfc_matrix *m = arg;
  for (int64_t i = 0; i < count; i++) out[i] = m->data + (first + i) * m->row;
}

static void columns_anywhere(const void *arg, int64_t first, int64_t count, const float **out) {
  const struct tfc_matrix *m = arg;
  for (int64_t i = 0; i < count; i++) out[i] = m->data + (first + i) * m->column;
}

// Tests sums of up to 5 products of any layout, packed before or during the product, computed in four parts. The mean
// error of all elements is at most one and a half times that of chains of multiply-adds, and no error is above 1e-6 of
// the sum of its terms' magnitudes.
static void split_products_are_as_accurate(void **state) {
  (void)state;
  if (!tfc_split_available()) skip();
  struct tfc_random r;
  tfc_random_init(&r, 5);
  double split_error = 0, chain_error = 0;
  void *scratch = aligned_alloc(64, TFC_SPLIT_SCRATCH);
  for (int round = 0; round < SPLIT; round++) {
    int64_t m = 1 + (int64_t)tfc_random_below(&r, round % 9 ? 90 : 600), n = 1 + (int64_t)tfc_random_below(&r, 150);
    int64_t count = 1 + (int64_t)tfc_random_below(&r, 5);
    bool accumulate = tfc_random_below(&r, 2);
    struct tfc_split_product products[5];
    float *memory[10];
    void *packed[10] = {0};
    for (int64_t i = 0; i < count; i++) {
      int64_t k = (int64_t)tfc_random_below(&r, round % 7 ? 120 : 1400);
      int ta = (int)tfc_random_below(&r, 3), tb = (int)tfc_random_below(&r, 3);
      struct tfc_split_product *p = &products[i];
      *p = (struct tfc_split_product){.k = k};
      p->a.matrix = (struct tfc_matrix){memory[2 * i] = random_floats(&r, m * k * (1 + (ta == 2))), k, 1};
      p->b.matrix = (struct tfc_matrix){memory[2 * i + 1] = random_floats(&r, k * n * (1 + (tb == 2))), n, 1};
      if (ta) p->a.matrix.row = ta, p->a.matrix.column = ta * m;
      if (tb) p->b.matrix.row = tb, p->b.matrix.column = tb * k;
      if (!ta && tfc_random_below(&r, 2)) p->a.rows = rows_anywhere, p->a.arg = &p->a.matrix;
      if (ta == 1 && tfc_random_below(&r, 2))
        p->a.rows = columns_anywhere, p->a.arg = &p->a.matrix, p->a.transposed = true;
      if (!tb && tfc_random_below(&r, 2)) p->b.rows = rows_anywhere, p->b.arg = &p->b.matrix;
      if (tfc_random_below(&r, 2)) {
        p->packed_b = packed[2 * i + 1] = aligned_alloc(64, tfc_split_packed_bytes(k, n) + 64);
        assert_true(tfc_split_pack_b(&p->b, k, n, 0, tfc_split_sides(n), packed[2 * i + 1]));
      }
    }
    float *c = random_floats(&r, m * n), *before = malloc((size_t)(m * n) * sizeof *before);
    memcpy(before, c, (size_t)(m * n) * sizeof *c);
    int64_t row = (int64_t)tfc_random_below(&r, (uint64_t)tfc_split_sides(m)) * TFC_SPLIT_SIDE;
    int64_t panel = (int64_t)tfc_random_below(&r, (uint64_t)tfc_split_sides(n)), panels = tfc_split_sides(n);
    for (int part = 0; part < 4; part++)
      assert_true(tfc_split_run(products, count, n, c, n, accumulate, part & 1 ? row : 0, part & 1 ? m : row,
                                part & 2 ? panel : 0, part & 2 ? panels : panel, scratch));
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        double size = accumulate ? fabs((double)before[i * n + j]) : 0;
        double expected = accumulate ? (double)before[i * n + j] : 0;
        float chained = accumulate ? before[i * n + j] : 0;
        for (int64_t p = 0; p < count; p++) {
          const struct tfc_matrix a = products[p].a.matrix, b = products[p].b.matrix;
          expected += in_double(a, b, i, j, products[p].k, &size);
          chained += chain(a, b, i, j, products[p].k);
        }
        double off = fabs((double)c[i * n + j] - expected);
        assert_true(off <= 1e-6 * size);
        split_error += off, chain_error += fabs((double)chained - expected);
      }
    for (int64_t i = 0; i < 2 * count; i++) free(memory[i]), free(packed[i]);
    free(c), free(before);
  }
  free(scratch);
  assert_true(split_error <= 1.5 * chain_error);
}

// Elements of very different magnitudes each keep their relative accuracy; numbers that are too large are detected and
// computed in another way.
static void split_products_know_their_range(void **state) {
  (void)state;
  if (!tfc_split_available()) skip();
  enum { size = 128 };
  tfc_split_suppose_fast(true);
  struct tfc_random r;
  tfc_random_init(&r, 9);
  float *x = random_floats(&r, size * size), *y = random_floats(&r, size * size), c[size * size];
  for (int64_t i = 0; i < size * size; i++)
    x[i] = ldexpf(x[i], (int)(i / size) - 76), y[i] = ldexpf(y[i], (int)(i % size / 2) - 20);
  struct tfc_product p = {.a = {x, size, 1}, .b = {y, size, 1}, .k = size};
  assert_null(tfc_products_run_serial(&p, 1, size, size, true, c));
  for (int64_t i = 0; i < size; i++)
    for (int64_t j = 0; j < size; j++) {
      double all = 0, expected = in_double(p.a, p.b, i, j, size, &all);
      assert_true(fabs((double)c[i * size + j] - expected) <= 1e-6 * all);
    }
  const float large[] = {INFINITY, -INFINITY, NAN, 0x1.8p127f};
  for (int v = 0; v < 8; v++) {
    float *at = v < 4 ? &x[size * 5 + 7] : &y[size * 7 + 5], kept = *at;
    *at = large[v % 4];
    assert_null(tfc_products_run_serial(&p, 1, size, size, true, c));
    for (int64_t i = 0; i < size; i++)
      for (int64_t j = 0; j < size; j++) {
        float expected = chain(p.a, p.b, i, j, size);
        assert_true(expected == c[i * size + j] || (isnan(expected) && isnan(c[i * size + j])));
      }
    *at = kept;
  }
  free(x), free(y);
}

// A source whose rows are runs in memory; every third run is written to `edge`, as one that contains padding is.
struct runs {
  struct tfc_gemm_source source;
  struct tfc_matrix a;
};
static void find_runs(const struct tfc_gemm_source *source, int64_t row, const float **out, float *edge) {
  const struct tfc_matrix a = ((const struct runs *)(const void *)source)->a;
  for (int64_t p = 0; p < source->pieces; p++)
    for (int64_t r = 0; r < 8; r++, out++, edge += source->length) {
      *out = a.data + (row + r) * a.row + p * source->length;
      if ((row + r + p) % 3 == 0) *out = memcpy(edge, *out, (size_t)source->length * sizeof *edge);
    }
}
static void pack_runs(const struct tfc_gemm_source *source, int64_t row, int64_t rows, float *out) {
  const struct tfc_matrix a = ((const struct runs *)(const void *)source)->a;
  for (int64_t i = 0; i < source->pieces * source->length; i++)
    for (int64_t r = 0; r < 8; r++) out[i * 8 + r] = r < rows ? a.data[(row + r) * a.row + i] : 0;
}

// Rows that are read in place give the same bits as packed ones, whether B stays in the cache or is read in pieces.
static void rows_in_place_are_chains(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 17);
  for (int round = 0; round < SPLIT / 6; round++) {
    const bool large = round % 2;
    const int64_t m = 1 + (int64_t)tfc_random_below(&r, 290), pieces = 1 + (int64_t)tfc_random_below(&r, 5);
    const int64_t length = large ? 100 + (int64_t)tfc_random_below(&r, 900) : 8 + (int64_t)tfc_random_below(&r, 80);
    const int64_t k = pieces * length;
    int64_t n = (large ? 250000 / k : 0) + 1 + (int64_t)tfc_random_below(&r, 150);
    // whole panels, and one vector of columns behind them, which is computed with the last panel
    if (round % 4 == 1) n = n / tfc_gemm_panel() * tfc_gemm_panel() + 16;
    const struct tfc_matrix a = {random_floats(&r, m * k), k, 1}, b = {random_floats(&r, k * n), n, 1};
    float *packed = aligned_alloc(64, (tfc_gemm_packed_bytes(k, n) + 63) / 64 * 64);
    float *scratch = aligned_alloc(64, (tfc_gemm_scratch_bytes(m, k) + 127) / 64 * 64);
    float *want = random_floats(&r, m * n), *got = random_floats(&r, m * n);
    tfc_gemm_pack(b, k, n, 0, tfc_gemm_panels(n), packed);
    const struct runs runs = {{.pack = pack_runs, .find = find_runs, .pieces = pieces, .length = length}, a};
    struct tfc_gemm_product p = {.source = &runs.source, .packed_b = packed, .k = k};
    tfc_gemm_run(&p, 1, n, got, n, false, 0, m, 0, tfc_gemm_panels(n), scratch);
    for (int64_t i = 0; i < m; i += 1 + m / 40)
      for (int64_t j = 0; j < n; j += j + 17 < n ? 1 + n / 40 : 1) want[i * n + j] = chain(a, b, i, j, k);
    for (int64_t i = 0; i < m; i += 1 + m / 40)
      for (int64_t j = 0; j < n; j += j + 17 < n ? 1 + n / 40 : 1)
        if (memcmp(&want[i * n + j], &got[i * n + j], sizeof *got))
          fail_msg("round %d: %lld x %lld x %lld in %lld pieces: element %lld, %lld", round, (long long)m, (long long)k,
                   (long long)n, (long long)pieces, (long long)i, (long long)j);
    free((void *)a.data), free((void *)b.data), free(packed), free(scratch), free(want), free(got);
  }
}

// As find_runs; whole stripes of some runs are padding.
static const float no_pixels[1024];
static bool is_padded(int64_t row, int64_t piece) {
  return (row / 8 * 7 + piece * 5) % 4 < 2 || row / 8 % 5 == 4;
}
static void find_padded(const struct tfc_gemm_source *source, int64_t row, const float **out, float *edge) {
  find_runs(source, row, out, edge);
  for (int64_t p = 0; p < source->pieces; p++)
    for (int64_t r = 0; r < 8 && is_padded(row, p); r++) out[p * 8 + r] = no_pixels;
}

// Leaving out runs of padding changes no bit, also where they meet infinite weights and NaN: zeros times these are NaN.
static void padding_left_out_changes_no_bit(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 23);
  for (int round = 0; round < SPLIT / 6; round++) {
    const bool large = round % 2;
    const int64_t m = 8 * (1 + (int64_t)tfc_random_below(&r, 36)), pieces = 1 + (int64_t)tfc_random_below(&r, 9);
    const int64_t length = large ? 100 + (int64_t)tfc_random_below(&r, 900) : 8 + (int64_t)tfc_random_below(&r, 80);
    const int64_t k = pieces * length;
    int64_t n = (large ? 250000 / k : 0) + 1 + (int64_t)tfc_random_below(&r, 150);
    if (round % 4 == 1) n = n / tfc_gemm_panel() * tfc_gemm_panel() + 16;
    float *b_data = random_floats(&r, k * n);
    const struct tfc_matrix a = {random_floats(&r, m * k), k, 1}, b = {b_data, n, 1};
    float *packed = aligned_alloc(64, (tfc_gemm_packed_bytes(k, n) + 63) / 64 * 64);
    float *scratch = aligned_alloc(64, (tfc_gemm_scratch_bytes(m, k) + 127) / 64 * 64);
    float *got = random_floats(&r, m * n), *shift = random_floats(&r, n);
    const float infinite[] = {INFINITY, -INFINITY, NAN};
    if (round % 3)
      b_data[(int64_t)tfc_random_below(&r, (uint64_t)k) * n + (round / 3 % 2 ? n - 1 : 0)] = infinite[round / 6 % 3];
    tfc_gemm_pack(b, k, n, 0, tfc_gemm_panels(n), packed);
    const struct runs runs = {
        {.pack = pack_runs, .find = find_padded, .pieces = pieces, .length = length, .zeros = no_pixels}, a};
    const struct tfc_last_pass last = {.shift = shift};
    struct tfc_gemm_product p = {
        .source = &runs.source, .packed_b = packed, .k = k, .last = round % 3 == 0 ? &last : NULL};
    tfc_gemm_run(&p, 1, n, got, n, false, 0, m, 0, tfc_gemm_panels(n), scratch);
    for (int64_t i = 0; i < m; i += 1 + m / 40)
      for (int64_t j = 0; j < n; j += j + 17 < n ? 1 + n / 40 : 1) {
        float want = 0;
        for (int64_t q = 0; q < k; q++) {
          const float x = is_padded(i, q / length) ? 0 : a.data[i * k + q];
          want = fused ? fmaf(x, b_data[q * n + j], want) : want + x * b_data[q * n + j];
        }
        if (p.last) want += shift[j];
        if (memcmp(&want, &got[i * n + j], sizeof *got) && !(isnan(want) && isnan(got[i * n + j])))
          fail_msg("round %d: %lld x %lld x %lld in %lld pieces: element %lld, %lld is %g, not %g", round, (long long)m,
                   (long long)k, (long long)n, (long long)pieces, (long long)i, (long long)j, (double)got[i * n + j],
                   (double)want);
      }
    free((void *)a.data), free(b_data), free(packed), free(scratch), free(got), free(shift);
  }
}

// What follows on a product gives the bits of separate operations: on whole tiles and at the edges, for rows in place,
// packed rows, windows and long chains.
static void last_passes_are_separate_operations(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 19);
  for (int round = 0; round < WHOLE; round++) {
    const bool large = round % 4 == 1, source = round % 2;
    const int64_t m = 1 + (int64_t)tfc_random_below(&r, large ? 190 : 70),
                  pieces = 1 + (int64_t)tfc_random_below(&r, 5);
    const int64_t length = large ? 100 + (int64_t)tfc_random_below(&r, 900) : 8 + (int64_t)tfc_random_below(&r, 80);
    const int64_t k = pieces * length, n = (large ? 200000 / k : 0) + 1 + (int64_t)tfc_random_below(&r, 130);
    const struct tfc_matrix a = {random_floats(&r, m * k), k, 1}, b = {random_floats(&r, k * n), n, 1};
    float *packed = aligned_alloc(64, (tfc_gemm_packed_bytes(k, n) + 63) / 64 * 64);
    float *scratch = aligned_alloc(64, (tfc_gemm_scratch_bytes(m, k) + 127) / 64 * 64);
    float *want = random_floats(&r, m * n), *got = random_floats(&r, m * n), *rows[3],
          *tensor = random_floats(&r, m * n);
    for (int i = 0; i < 3; i++) rows[i] = random_floats(&r, n);
    tensor[0] = (float)NAN, rows[2][n - 1] = -INFINITY, rows[1][n / 2] = -0.0f;
    tfc_gemm_pack(b, k, n, 0, tfc_gemm_panels(n), packed);
    const struct runs runs = {{.pack = pack_runs, .find = find_runs, .pieces = pieces, .length = length}, a};
    struct tfc_gemm_product p = {.a = a, .source = source ? &runs.source : NULL, .packed_b = packed, .k = k};
    tfc_gemm_run(&p, 1, n, want, n, false, 0, m, 0, tfc_gemm_panels(n), scratch);
    const uint64_t parts = tfc_random_below(&r, 128);
    const struct tfc_last_pass last = {.center = parts & 1 ? rows[0] : NULL,
                                       .factor = parts & 2 ? rows[1] : NULL,
                                       .shift = parts & 4 ? rows[2] : NULL,
                                       .tensor = parts & 8 ? tensor : NULL,
                                       .relu = (parts & 80) == 16,
                                       .six = (parts & 112) == 48,
                                       .leaky = (parts & 80) == 80,
                                       .slope = parts & 32 ? -0.3f : 0.1f};
    for (int64_t i = 0; i < m * n; i++) {
      volatile float v = want[i]; // each operation is rounded
      if (last.center) v = v - rows[0][i % n];
      if (last.factor) v = v * rows[1][i % n];
      if (last.shift) v = v + rows[2][i % n];
      if (last.tensor) v = v + tensor[i];
      if (last.relu && v <= 0) v = 0;
      if (last.six && v > 6) v = 6;
      if (last.leaky && !(v > 0)) v = v * last.slope;
      want[i] = v;
    }
    p.last = &last;
    const int64_t row = (int64_t)tfc_random_below(&r, (uint64_t)(m + 7) / 8) * 8;
    const int64_t panel = (int64_t)tfc_random_below(&r, (uint64_t)tfc_gemm_panels(n));
    for (int part = 0; part < 4; part++)
      tfc_gemm_run(&p, 1, n, got, n, false, part & 1 ? row : 0, part & 1 ? m : row, part & 2 ? panel : 0,
                   part & 2 ? tfc_gemm_panels(n) : panel, scratch);
    if (memcmp(want, got, (size_t)(m * n) * sizeof *got))
      fail_msg("round %d: %lld x %lld x %lld in %lld pieces, parts %d", round, (long long)m, (long long)k, (long long)n,
               (long long)pieces, (int)parts);
    free((void *)a.data), free((void *)b.data), free(packed), free(scratch), free(want), free(got), free(tensor);
    for (int i = 0; i < 3; i++) free(rows[i]);
  }
}

int main(void) {
  fused = strcmp(tfc_gemm_name(), "generic") != 0;
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_chains),
                                     cmocka_unit_test(operands_may_lie_as_they_like),
                                     cmocka_unit_test(rows_in_place_are_chains),
                                     cmocka_unit_test(padding_left_out_changes_no_bit),
                                     cmocka_unit_test(last_passes_are_separate_operations),
                                     cmocka_unit_test(split_products_are_as_accurate),
                                     cmocka_unit_test(split_products_know_their_range)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
