// Tests reductions of sizes that cross the borders of groups, blocks and pieces, and the number of threads that share
// them.
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/device/cuda/kernels/reduce.h"
#include "runtime/ops/kernel.h"
#include "tests/cuda_kernels/host.h"

static void *room(size_t bytes) {
  void *p = aligned_alloc(64, (bytes / 64 + 1) * 64);
  assert_non_null(p);
  return p;
}

// Plans the reduction of x [outputs, count] along its rows, or of x [count, outputs] down its columns.
static struct tfc_cuda_reduction plan(int64_t outputs, int64_t count, bool along) {
  struct tfc_cuda_reduction r = {.outputs = outputs, .count = count, .kept_rank = 1, .reduced_rank = 1, .along = along};
  r.kept_dims[0] = outputs;
  r.kept_strides[0] = along ? count : 1;
  r.reduced_dims[0] = count;
  r.reduced_strides[0] = along ? 1 : outputs;
  tfc_cuda_reduction_split(&r);
  return r;
}
static void reduce(int kind, int type, const struct tfc_cuda_reduction *r, const void *x, void *y) {
  void *scratch = room(tfc_cuda_reduction_scratch(r));
  assert_int_equal(tfc_cuda_reduce(kind, type, r, x, y, scratch, NULL), 0);
  free(scratch);
}

static void check(int64_t outputs, int64_t count, bool along) {
  const struct tfc_cuda_reduction r = plan(outputs, count, along);
  const int64_t n = outputs * count;
  int32_t *x = room((size_t)n * 4), *sums = room((size_t)outputs * 4), *most = room((size_t)outputs * 4);
  int64_t *places = room((size_t)outputs * 8);
  void *scratch = room(tfc_cuda_arg_scratch(along ? outputs : 1, count, along ? 1 : outputs));
  struct tfc_random random;
  tfc_random_init(&random, 21);
  for (int64_t i = 0; i < n; i++) x[i] = (int32_t)tfc_random_below(&random, 100000) - 50000;
  reduce(TFC_CUDA_REDUCE_SUM, OPS_DT_i32, &r, x, sums);
  reduce(TFC_CUDA_REDUCE_MAX, OPS_DT_i32, &r, x, most);
  assert_int_equal(tfc_cuda_arg(OPS_DT_i32, OPS_DT_i64, false, along ? outputs : 1, count, along ? 1 : outputs, x,
                                places, scratch, NULL),
                   0);
  for (int64_t o = 0; o < outputs; o++) {
    int64_t at = 0;
    uint32_t sum = 0;
#define AT(i) x[along ? o * count + (i) : (i)*outputs + o]
    for (int64_t i = 0; i < count; i++) {
      sum += (uint32_t)AT(i);
      if (AT(i) > AT(at)) at = i;
    }
    assert_int_equal(sums[o], (int32_t)sum);
    assert_int_equal(most[o], AT(at));
    assert_int_equal(places[o], at);
#undef AT
  }
  free(x);
  free(sums);
  free(most);
  free(places);
  free(scratch);
}
static void test_all_sizes(void **state) {
  (void)state;
  static const int64_t outputs[] = {1, 2, 3, 17, 32, 33}, counts[] = {1, 3, 4, 31, 33, 129, 4096, 9001};
  for (size_t o = 0; o < sizeof outputs / sizeof *outputs; o++)
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
      for (int along = 0; along < 2; along++) check(outputs[o], counts[c], along);
  check(3000, 5, true);
  check(3000, 5, false);
  check(1, 100000, true);
}

// A sum has the same bits at any address of its tensor, although a kernel reads fewer elements at once at addresses
// that are not aligned.
static void test_order_does_not_depend_on_addresses(void **state) {
  (void)state;
  for (int half = 0; half < 2; half++) {
    const int64_t count = 20007, outputs = 3, n = count * outputs;
    const size_t size = half ? 2 : 4;
    const struct tfc_cuda_reduction r = plan(outputs, count, true);
    char *x = room((size_t)(n + 8) * size), want[12], got[12];
    struct tfc_random random;
    for (int64_t shift = 0; shift < 4; shift++) {
      tfc_random_init(&random, 4);
      for (int64_t i = 0; i < n; i++) {
        float v = (float)tfc_random_unit(&random);
        uint16_t bits = tfc_float_to_half(v);
        memcpy(x + (size_t)(i + shift) * size, half ? (void *)&bits : (void *)&v, size);
      }
      reduce(TFC_CUDA_REDUCE_SUM, half ? OPS_DT_f16 : OPS_DT_f32, &r, x + (size_t)shift * size, shift ? got : want);
      if (shift) assert_memory_equal(got, want, (size_t)outputs * size);
    }
    free(x);
  }
}

static void test_few_outputs_keep_all_threads(void **state) {
  (void)state;
  struct tfc_cuda_reduction r = plan(3, 100000000, false);
  assert_true(r.lanes * 4 >= 256 && r.pieces > 250);
  r = plan(1, 100000000, true);
  assert_true(r.lanes == 256 && r.pieces > 250);
  r = plan(1000000, 8, false);
  assert_int_equal(r.lanes, 8);
  const struct { int64_t outer, n, inner; } long_ones[] = {{1, 100000000, 1}, {1, 100000000, 2}, {7, 1000000, 1}};
  for (int i = 0; i < 3; i++)
    assert_true(tfc_cuda_arg_scratch(long_ones[i].outer, long_ones[i].n, long_ones[i].inner) > 4000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_sizes),
      cmocka_unit_test(test_order_does_not_depend_on_addresses),
      cmocka_unit_test(test_few_outputs_keep_all_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
