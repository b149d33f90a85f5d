// Every element of a product is one chain of fused multiply-adds, so the test is exact.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "runtime/device/cpu/gemm/kernel.h"
#include "runtime/device/cpu/gemm/products.h"

static float *random_floats(struct tfc_random *r, int64_t count) {
  float *p = malloc((size_t)(count ? count : 1) * sizeof *p);
  for (int64_t i = 0; i < count; i++) p[i] = (float)(2 * tfc_random_unit(r) - 1);
  return p;
}

static float chain(struct tfc_matrix a, struct tfc_matrix b, int64_t i, int64_t j, int64_t k) {
  float c = 0;
  for (int64_t z = 0; z < k; z++) {
    float x = a.data[i * a.row + z * a.column], y = b.data[z * b.row + j * b.column];
    c = strcmp(tfc_gemm_name(), "generic") == 0 ? c + x * y : fmaf(x, y, c);
  }
  return c;
}

// Random sizes, transposes, sums of up to 4 products, split over rows and panels in random places.
static void products_are_chains(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 7);
  for (int round = 0; round < 60; round++) {
    int64_t m = 1 + (int64_t)tfc_random_below(&r, 70), n = 1 + (int64_t)tfc_random_below(&r, 200);
    int64_t count = 1 + (int64_t)tfc_random_below(&r, 4), total_k = 0;
    bool accumulate = tfc_random_below(&r, 2);
    struct tfc_gemm_product products[4];
    struct tfc_matrix a[4], b[4];
    float *memory[12];
    for (int64_t i = 0; i < count; i++) {
      int64_t k = (int64_t)tfc_random_below(&r, 90);
      bool ta = tfc_random_below(&r, 2), tb = tfc_random_below(&r, 2);
      a[i] = (struct tfc_matrix){memory[3 * i] = random_floats(&r, m * k), ta ? 1 : k, ta ? m : 1};
      b[i] = (struct tfc_matrix){memory[3 * i + 1] = random_floats(&r, k * n), tb ? 1 : n, tb ? k : 1};
      size_t bytes = (tfc_gemm_packed_bytes(k, n) + 63) / 64 * 64;
      float *packed = memory[3 * i + 2] = aligned_alloc(64, bytes);
      tfc_gemm_pack(b[i], k, n, 0, tfc_gemm_panels(n), packed);
      products[i] = (struct tfc_gemm_product){.a = a[i], .packed_b = packed, .k = k};
      if (!tb && tfc_random_below(&r, 2)) { // read where it is; the last panel packed
        const float *tail = packed + n / tfc_gemm_panel() * tfc_gemm_panel() * k;
        products[i] = (struct tfc_gemm_product){.a = a[i], .b = b[i].data, .b_row = n, .tail = tail, .k = k};
      }
      total_k += k;
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
    free(c), free(before), free(scratch);
  }
}

// Whole products, nothing packed before: whatever is packed or turned on the way, the chains are the same.
static void operands_may_lie_as_they_like(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 11);
  for (int round = 0; round < 80; round++) {
    int64_t m = 1 + (int64_t)tfc_random_below(&r, 120), n = 1 + (int64_t)tfc_random_below(&r, 300);
    int64_t k = 1 + (int64_t)tfc_random_below(&r, 260);
    if (round % 8 == 0) n = m;
    if (round % 8 == 1) k += 2000 + (int64_t)tfc_random_below(&r, 1500), n = n % 60 + 1;
    if (round % 16 == 1) m = 129 + m % 9;
    bool ta = tfc_random_below(&r, 2), tb = tfc_random_below(&r, 2);
    float *x = random_floats(&r, m * k), *y = random_floats(&r, k * n), *c = random_floats(&r, m * n);
    struct tfc_product p = {.a = {x, ta ? 1 : k, ta ? m : 1}, .b = {y, tb ? 1 : n, tb ? k : 1}, .k = k};
    assert_null(tfc_products_run_serial(&p, 1, m, n, c));
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) assert_true(chain(p.a, p.b, i, j, k) == c[i * n + j]);
    free(x), free(y), free(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_chains),
                                     cmocka_unit_test(operands_may_lie_as_they_like)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
