// Tests running sums and products of sizes that cross the borders of tiles, groups and chunks. Integers must be exact,
// scans that the kernel computes element by element must have the same bits, and other floats are compared with sums in
// a wider type.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/device/cuda/kernels/scan.h"
#include "runtime/ops/kernel.h"
#include "tests/cuda_kernels/host.h"

static void *room(size_t bytes) {
  void *p = calloc(bytes + 1, 1);
  assert_non_null(p);
  return p;
}
static size_t size_of(int type) {
  return type == OPS_DT_f64 || type == OPS_DT_i64 ? 8 : type == OPS_DT_f16 ? 2 : 4;
}
static void put(int type, void *data, int64_t i, double v) {
  switch (type) {
  case OPS_DT_f32: ((float *)data)[i] = (float)v; break;
  case OPS_DT_f64: ((double *)data)[i] = v; break;
  case OPS_DT_f16: ((uint16_t *)data)[i] = tfc_float_to_half((float)v); break;
  case OPS_DT_i32: ((int32_t *)data)[i] = (int32_t)v; break;
  default: ((int64_t *)data)[i] = (int64_t)v;
  }
}
static double get(int type, const void *data, int64_t i) {
  switch (type) {
  case OPS_DT_f32: return ((const float *)data)[i];
  case OPS_DT_f64: return ((const double *)data)[i];
  case OPS_DT_f16: return tfc_half_to_float(((const uint16_t *)data)[i]);
  case OPS_DT_i32: return ((const int32_t *)data)[i];
  default: return (double)((const int64_t *)data)[i];
  }
}
static bool exact(int type, bool product) {
  return type == OPS_DT_f16 || type == OPS_DT_i32 || type == OPS_DT_i64 || product;
}
// Adds or multiplies once, and rounds as the type does; sums of float32 and float64 are not rounded.
static long double step(int type, bool product, long double a, long double b) {
  switch (type) {
  case OPS_DT_i32:
    return (int32_t)(product ? (uint32_t)(int32_t)a * (uint32_t)(int32_t)b
                             : (uint32_t)(int32_t)a + (uint32_t)(int32_t)b);
  case OPS_DT_i64:
    return (int64_t)(product ? (uint64_t)(int64_t)a * (uint64_t)(int64_t)b
                             : (uint64_t)(int64_t)a + (uint64_t)(int64_t)b);
  case OPS_DT_f16: return tfc_half_to_float(tfc_float_to_half(product ? (float)a * (float)b : (float)a + (float)b));
  case OPS_DT_f32: return product ? (float)a * (float)b : a + b;
  default: return product ? (double)a * (double)b : a + b;
  }
}

static void check(int type, struct tfc_cuda_scan s) {
  const int64_t total = s.outer * s.n * s.inner;
  char *x = room((size_t)total * size_of(type)), *y[2];
  struct tfc_random random;
  tfc_random_init(&random, 9);
  for (int64_t i = 0; i < total; i++)
    put(type, x, i,
        type == OPS_DT_i32 || type == OPS_DT_i64 ? (double)(int64_t)(tfc_random_u64(&random) & 0xffffff) - 3e6
        : s.product                              ? 0.5 + tfc_random_unit(&random)
                                                 : tfc_random_normal(&random));
  tfc_cuda_scan_split(type, &s);
  for (int run = 0; run < 2; run++) {
    void *scratch = room(tfc_cuda_scan_scratch(&s));
    y[run] = room((size_t)total * size_of(type));
    assert_int_equal(tfc_cuda_run_scan(type, &s, x, y[run], scratch, NULL), 0);
    free(scratch);
  }
  assert_memory_equal(y[0], y[1], (size_t)total * size_of(type));
  for (int64_t line = 0; line < s.outer * s.inner; line++) {
    long double sum = s.product, most = 0;
    for (int64_t p = 0; p < s.n; p++) {
      const int64_t at = (line / s.inner * s.n + (s.reverse ? s.n - 1 - p : p)) * s.inner + line % s.inner;
      const long double next = step(type, s.product, sum, get(type, x, at)), want = s.exclusive ? sum : next;
      const double got = get(type, y[0], at);
      most = fmaxl(most, fabsl(want));
      if (exact(type, s.product) ? (double)want != got
                                 : fabsl(want - got) > most * (type == OPS_DT_f32 ? 1e-6L : 1e-14L)) {
        print_message("type %d [%lld, %lld, %lld] product %d exclusive %d reverse %d: line %lld, place %lld: %.17g "
                      "instead of %.17g\n",
                      type, (long long)s.outer, (long long)s.n, (long long)s.inner, s.product, s.exclusive, s.reverse,
                      (long long)line, (long long)p, got, (double)want);
        fail();
      }
      sum = next;
    }
  }
  free(x);
  free(y[0]);
  free(y[1]);
}

static void test_all_sizes(void **state) {
  (void)state;
  static const int types[] = {OPS_DT_f32, OPS_DT_f64, OPS_DT_f16, OPS_DT_i32, OPS_DT_i64};
  static const int64_t shapes[][3] = {
      {1, 1, 1},    {3, 5, 1},    {2, 6, 1},    {40, 40, 1},   {41, 41, 1},   {9, 160, 1},  {9, 161, 1},
      {3, 1280, 1}, {2, 1281, 1}, {1, 5119, 1}, {1, 10240, 1}, {1, 20011, 1}, {9, 1300, 1}, {1030, 9, 1},
      {1, 1, 3},    {2, 63, 2},   {2, 64, 2},   {3, 127, 3},   {1, 128, 700}, {2, 1000, 5}, {1, 20000, 3}};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
      for (int how = 0; how<8; how += shapes[k][0] * shapes[k][1]> 8000 ? 5 : 1) // two of 8 ways for large shapes
        check(types[t], (struct tfc_cuda_scan){.outer = shapes[k][0],
                                               .n = shapes[k][1],
                                               .inner = shapes[k][2],
                                               .product = how & 1,
                                               .exclusive = how & 2,
                                               .reverse = how & 4});
}

// A long line is divided among many threads and blocks.
static void test_long_lines_have_many_threads(void **state) {
  (void)state;
  for (int64_t inner = 1; inner <= 3; inner += 2) {
    check(OPS_DT_f32, (struct tfc_cuda_scan){.outer = 1, .n = 1 << 17, .inner = inner});
    assert_true(gridDim.x * blockDim.x >= 1500);
    print_message("%u blocks of %u threads\n", gridDim.x, blockDim.x);
  }
}

// Once a running product is 0 it stays 0, although the product of the later factors alone would be infinite. Once a
// running sum is infinite or NaN it stays so.
static void test_products_keep_their_order(void **state) {
  (void)state;
  enum { N = 3000 };
  float x[N], y[N];
  struct tfc_cuda_scan s = {.outer = 1, .n = N, .inner = 1, .product = true};
  for (int i = 0; i < N; i++) x[i] = i ? 1e30f : 0;
  tfc_cuda_scan_split(OPS_DT_f32, &s);
  assert_int_equal(s.chunks, 1);
  assert_int_equal(tfc_cuda_run_scan(OPS_DT_f32, &s, x, y, NULL, NULL), 0);
  for (int i = 0; i < N; i++) assert_true(y[i] == 0);
  for (int i = 0; i < N; i++) x[i] = i % 2 ? INFINITY : 1;
  s.product = false;
  tfc_cuda_scan_split(OPS_DT_f32, &s);
  x[2000] = -INFINITY;
  assert_int_equal(tfc_cuda_run_scan(OPS_DT_f32, &s, x, y, NULL, NULL), 0);
  for (int i = 0; i < N; i++) assert_true(i == 0 ? y[i] == 1 : i < 2000 ? y[i] == INFINITY : isnan(y[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_sizes),
      cmocka_unit_test(test_long_lines_have_many_threads),
      cmocka_unit_test(test_products_keep_their_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
