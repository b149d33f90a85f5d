// The passes of a softmax over one row, beside the C library in float64.
#include "tests/common/test.h"

#include <math.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/ops/math_softmax.h"

enum { MOST = 300, ROUNDS = 200 };

static void terms_and_sums_are_those_of_float64(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 3);
  for (int round = 0; round < ROUNDS; round++) {
    const int64_t n = 1 + (int64_t)tfc_random_below(&r, MOST);
    const double range = round % 3 * 60 + 1; // with the widest one some terms are below the normal numbers
    float x[MOST], y[MOST], most = -INFINITY;
    for (int64_t i = 0; i < n; i++) x[i] = (float)(range * (tfc_random_unit(&r) - 0.5));
    if (round % 7 == 0) x[tfc_random_below(&r, (uint64_t)n)] = -INFINITY;
    for (int64_t i = 0; i < n; i++) most = fmaxf(most, x[i]);
    const float max = ops_softmax_max(x, n);
    assert_true(max == most);
    if (max == -INFINITY) continue;
    const double sum = ops_softmax_sum(x, max, y, n);
    double expected = 0;
    for (int64_t i = 0; i < n; i++) {
      const double term = exp((double)(x[i] - max));
      expected += term;
      assert_true(fabs((double)y[i] - term) <= 2e-7 * term + 0x1p-126);
    }
    assert_true(fabs(sum - expected) <= 2e-7 * expected);
    assert_true(ops_softmax_sum(x, max, NULL, n) == sum);
  }
}

// A sum has 16 lanes, to which the terms go in turn, on every processor: so its bits are the same everywhere.
static void sums_have_sixteen_lanes(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 4);
  for (int64_t n = 1; n < MOST; n += 7) {
    float x[MOST], y[MOST];
    double lanes[16] = {0}, sum = 0;
    for (int64_t i = 0; i < n; i++) x[i] = (float)(-20 * tfc_random_unit(&r));
    const double found = ops_softmax_sum(x, 0, y, n);
    for (int64_t i = 0; i < n; i++) lanes[i % 16] += (double)y[i];
    for (int l = 0; l < 16; l++) sum += lanes[l];
    assert_true(found == sum);
  }
}

static void borders_of_the_exponential(void **state) {
  (void)state;
  const float x[] = {0, -87, -88, -104, -1e30f, -INFINITY};
  float y[6];
  const double sum = ops_softmax_sum(x, 0, y, 6);
  assert_true(y[0] == 1 && y[1] > 0 && sum == 1);
  for (int i = 2; i < 6; i++) assert_true(y[i] == 0); // whether or not the thread flushes subnormal numbers
  float with_nan[20] = {0};
  with_nan[17] = NAN;
  assert_true(isnan(ops_softmax_max(with_nan, 20)));
  assert_true(isnan(ops_softmax_sum(with_nan, NAN, NULL, 20)));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(terms_and_sums_are_those_of_float64),
                                     cmocka_unit_test(sums_have_sixteen_lanes),
                                     cmocka_unit_test(borders_of_the_exponential)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
