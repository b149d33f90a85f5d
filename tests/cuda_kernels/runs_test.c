// Tests kernels that add or otherwise combine rows by index. They sort the positions by row, then combine each row's
// positions; the result has the same bits as a loop over the positions.
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/device/cuda/kernels/update.h"
#include "runtime/ops/kernel.h"
#include "tests/cuda_kernels/host.h"

enum pattern { DISTINCT, EQUAL, MIXED, WILD, PATTERNS };
static int64_t index_of(enum pattern p, int64_t i, int64_t rows, struct tfc_random *random) {
  static const int64_t wild[] = {-1, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, 1ll << 32, (1ll << 32) + 1};
  switch (p) {
  case DISTINCT: return rows - 1 - i;
  case EQUAL: return 3 % rows;
  case MIXED: return tfc_random_below(random, 3) ? tfc_random_below(random, (uint32_t)rows) : 2 % rows;
  default: return tfc_random_below(random, 2) ? i % rows : i % 9 == 8 ? rows : wild[i % 9 % 7];
  }
}
static void make_indices(int64_t n, int64_t rows, enum pattern pattern, bool wide, int64_t *plain, void *indices) {
  struct tfc_random random;
  tfc_random_init(&random, 5);
  for (int64_t i = 0; i < n; i++) {
    plain[i] = index_of(pattern, i, rows, &random);
    if (wide)
      ((int64_t *)indices)[i] = plain[i];
    else
      plain[i] = ((int32_t *)indices)[i] = (int32_t)plain[i];
  }
}
static void *room(size_t bytes) {
  void *p = calloc(bytes + 1, 1);
  assert_non_null(p);
  return p;
}

static struct tfc_cuda_runs make_runs(int64_t n, int64_t rows, bool wide, const void *indices, void **memory) {
  struct tfc_cuda_runs runs = {0};
  size_t bytes = 0;
  assert_int_equal(tfc_cuda_runs_bytes(n, &bytes), 0);
  *memory = room(bytes);
  assert_int_equal(tfc_cuda_make_runs(wide ? OPS_DT_i64 : OPS_DT_i32, indices, n, rows, *memory, &runs, NULL), 0);
  return runs;
}

static const int64_t sizes[] = {1, 2, 4, 5, 255, 256, 257, 5000};

static void test_positions_are_sorted(void **state) {
  (void)state;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int how = 0; how < 2 * PATTERNS; how++) {
      const int64_t n = sizes[s], rows = how / 2 == MIXED ? n / 2 + 1 : n;
      int64_t *plain = room((size_t)n * 8), known = 0;
      void *indices = room((size_t)n * 8), *memory;
      make_indices(n, rows, how / 2, how & 1, plain, indices);
      struct tfc_cuda_runs runs = make_runs(n, rows, how & 1, indices, &memory);
      for (int64_t i = 0; i < n; i++) known += plain[i] >= 0 && plain[i] < rows;
      for (int64_t k = 0; k < n; k++) {
        const int64_t index = plain[runs.position[k]];
        assert_int_equal(runs.row[k], k < known ? index : runs.none);
        assert_true(k >= known || (index >= 0 && index < rows));
        assert_true(!k || runs.row[k - 1] < runs.row[k] ||
                    (runs.row[k - 1] == runs.row[k] && runs.position[k - 1] < runs.position[k]));
      }
      free(plain);
      free(indices);
      free(memory);
    }
}

static float joined(int how, float a, float b) {
  switch (how) {
  case TFC_CUDA_COMBINE_ADD: return a + b;
  case TFC_CUDA_COMBINE_SUB: return a - b;
  case TFC_CUDA_COMBINE_MUL: return a * b;
  case TFC_CUDA_COMBINE_DIV: return a / b;
  case TFC_CUDA_COMBINE_MIN: return a < b ? a : b;
  case TFC_CUDA_COMBINE_MAX: return a > b ? a : b;
  default: return b;
  }
}
static void scatter(int64_t n, int64_t rows, int64_t width, enum pattern pattern, int how, bool half, bool scalar) {
  const size_t size = half ? 2 : 4;
  int64_t *plain = room((size_t)n * 8);
  void *indices = room((size_t)n * 8), *memory;
  float *updates = room((size_t)(n * width) * 4), *want = room((size_t)(rows * width) * 4);
  char *stored = room((size_t)(n * width) * size), *var = room((size_t)(rows * width) * size);
  struct tfc_random random;
  tfc_random_init(&random, 3);
  for (int64_t i = 0; i < (n + rows) * width; i++) { // numbers whose sums are rounded, so that a different order shows
    float v = (float)(0.5 + tfc_random_unit(&random)) * (i % 3 ? 1 : -1), *at = i < n * width ? updates + i : want;
    if (at == want) at += i - n * width;
    char *to = i < n * width ? stored + (size_t)i * size : var + (size_t)(i - n * width) * size;
    if (half) {
      uint16_t bits = tfc_float_to_half(v);
      v = tfc_half_to_float(bits);
      memcpy(to, &bits, sizeof bits);
    } else {
      memcpy(to, &v, sizeof v);
    }
    *at = v;
  }
  make_indices(n, rows, pattern, true, plain, indices);
  struct tfc_cuda_scatter s = {.var = var, .updates = stored, .width = width, .scalar = scalar};
  s.runs = make_runs(n, rows, true, indices, &memory);
  assert_int_equal(tfc_cuda_scatter_rows(how, half ? OPS_DT_f16 : OPS_DT_f32, &s, NULL), 0);
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < width && plain[i] >= 0 && plain[i] < rows; c++) {
      float *to = &want[plain[i] * width + c];
      *to = joined(how, *to, updates[scalar ? 0 : i * width + c]);
      if (half) *to = tfc_half_to_float(tfc_float_to_half(*to));
    }
  for (int64_t i = 0; i < rows * width; i++) {
    const float got = half ? tfc_half_to_float(((uint16_t *)var)[i]) : ((float *)var)[i];
    assert_memory_equal(&got, &want[i], sizeof got);
  }
  free(plain);
  free(indices);
  free(memory);
  free(updates);
  free(want);
  free(stored);
  free(var);
}
static void test_sums_keep_the_order_of_positions(void **state) {
  (void)state;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int p = 0; p < PATTERNS; p++)
      for (int how = TFC_CUDA_COMBINE_UPDATE; how <= TFC_CUDA_COMBINE_MAX; how++) {
        scatter(sizes[s], p == MIXED ? 3 : sizes[s], 3, p, how, false, false);
        scatter(sizes[s], sizes[s], 1, p, how, true, false);
        scatter(sizes[s], sizes[s], 2, p, how, false, true);
      }
}

// There are so many indices that a kernel which compares each with all others would take an hour.
static void test_many_indices(void **state) {
  (void)state;
  scatter(1 << 21, 1 << 21, 1, DISTINCT, TFC_CUDA_COMBINE_ADD, false, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_positions_are_sorted),
      cmocka_unit_test(test_sums_keep_the_order_of_positions),
      cmocka_unit_test(test_many_indices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
