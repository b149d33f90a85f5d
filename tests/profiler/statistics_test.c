// Compares quartiles, bootstrap and Kendall's tau with values worked out by hand, and tests their properties.
#include "tests/common/test.h"

#include <math.h>

#include "profiler/statistics.h"
#include "runtime/base/random.h"

static void test_quartiles(void **state) {
  (void)state;
  double x[] = {4, 1, 3, 2};
  struct tfc_quartiles q = tfc_quartiles_of(x, 4);
  assert_true(q.median == 2.5 && q.q1 == 1.75 && q.q3 == 3.25 && q.least == 1);
  assert_true(isnan(tfc_quartiles_of(x, 0).median));
  double odd[] = {9, 2, 4, 30, 1};
  q = tfc_quartiles_of(odd, 5);
  assert_true(q.median == 4 && q.q1 == 2 && q.q3 == 9 && q.least == 1);
  double six[] = {6, 1, 5, 2, 4, 3};
  q = tfc_quartiles_of(six, 6);
  assert_true(q.median == 3.5 && q.q1 == 2.25 && q.q3 == 4.75);
  double one[] = {7};
  assert_true(tfc_quartiles_of(one, 1).q3 == 7);
}

static void test_tau(void **state) {
  (void)state;
  double x[] = {1, 2, 3, 4}, up[] = {10, 20, 30, 40}, down[] = {4, 3, 2, 1}, mixed[] = {1, 3, 2, 4};
  size_t pairs = 0;
  assert_true(tfc_kendall_tau(x, up, NULL, 4, &pairs) == 1 && pairs == 6);
  assert_true(tfc_kendall_tau(x, down, NULL, 4, NULL) == -1);
  assert_true(fabs(tfc_kendall_tau(x, mixed, NULL, 4, NULL) - 4.0 / 6) < 1e-15);
  // Pairs within their joint spread do not count: only (1, 4) is further apart than 2 here.
  double spread[] = {1, 1, 1, 1};
  assert_true(tfc_kendall_tau(x, mixed, spread, 4, &pairs) == 1 && pairs == 1);
  double flat[] = {5, 5, 5, 5};
  assert_true(isnan(tfc_kendall_tau(x, flat, NULL, 4, &pairs)) && pairs == 0);
  assert_true(tfc_kendall_tau(flat, x, NULL, 4, NULL) == 0); // equal predictions give no order
}

// The interval holds the true ratio in at least 95 of 100 experiments, also when blocks drift together (drawing blocks
// and steps errs on the safe side), and is still narrow enough to distinguish 1.2 from 1.
static void test_bootstrap_covers(void **state) {
  (void)state;
  struct tfc_random random;
  tfc_random_init(&random, 5);
  int held = 0, told = 0;
  enum { EXPERIMENTS = 200, BLOCKS = 6, STEPS = 5 };
  for (int e = 0; e < EXPERIMENTS; e++) {
    double a[BLOCKS][STEPS], b[BLOCKS][STEPS];
    struct tfc_block_pair pairs[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
      double drift = exp(0.05 * tfc_random_normal(&random));
      for (int k = 0; k < STEPS; k++) {
        a[i][k] = 120 * drift * (1 + 0.03 * tfc_random_normal(&random));
        b[i][k] = 100 * drift * (1 + 0.03 * tfc_random_normal(&random));
      }
      pairs[i] = (struct tfc_block_pair){a[i], b[i], STEPS, STEPS};
    }
    struct tfc_interval r;
    assert_ok(tfc_bootstrap_ratio(pairs, BLOCKS, 200, (uint64_t)e, &r));
    assert_true(r.low <= r.value && r.value <= r.high);
    held += r.low <= 1.2 && 1.2 <= r.high;
    told += r.low > 1;
  }
  if (held < 190) fail_msg("%d of %d intervals hold the true ratio", held, EXPERIMENTS);
  if (told < 190) fail_msg("%d of %d intervals exclude 1", told, EXPERIMENTS);
  struct tfc_interval none;
  assert_ok(tfc_bootstrap_ratio(NULL, 0, 10, 1, &none));
  assert_true(isnan(none.value));
}

// The ratio of a block of 1, 2, ..., 9 to a block of ones, with steps drawn with replacement: the median of nine draws
// is at most k with the probability that five of nine or more are, a sum of binomial terms. The ends of the interval
// are where that passes 2.5 % and 97.5 %.
static void test_interval_by_hand(void **state) {
  (void)state;
  enum { N = 9 };
  double a[N], b[N], low = 0, high = 0;
  for (int i = 0; i < N; i++) a[i] = i + 1, b[i] = 1;
  for (int k = 1; k <= N; k++) {
    double most = 0, p = (double)k / N; // the probability that the median is at most k
    for (int m = N / 2 + 1; m <= N; m++) {
      double ways = 1;
      for (int i = 0; i < m; i++) ways *= (double)(N - i) / (i + 1);
      most += ways * pow(p, m) * pow(1 - p, N - m);
    }
    assert_true(fabs(most - 0.025) > 0.005 &&
                fabs(most - 0.975) > 0.005); // far enough from the ends for 20,000 rounds to decide
    if (low == 0 && most > 0.025) low = k;
    if (high == 0 && most > 0.975) high = k;
  }
  struct tfc_block_pair pair = {a, b, N, N}, other = {b, a, N, N};
  struct tfc_interval r;
  assert_ok(tfc_bootstrap_ratio(&pair, 1, 20000, 3, &r));
  assert_true(r.value == 5 && r.low == low && r.high == high);
  assert_ok(tfc_bootstrap_ratio(&other, 1, 20000, 4, &r));
  assert_true(r.value == 0.2 && r.low == 1 / high && r.high == 1 / low);
  // Blocks are drawn too: of two blocks, of ones and of threes, a quarter of the rounds has only the first, a quarter
  // only the second.
  double one[] = {1, 1, 1}, three[] = {3, 3, 3}, unit[] = {1, 1, 1};
  struct tfc_block_pair blocks[] = {{one, unit, 3, 3}, {three, unit, 3, 3}};
  assert_ok(tfc_bootstrap_ratio(blocks, 2, 2000, 5, &r));
  assert_true(r.value == 2 && r.low == 1 && r.high == 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_quartiles), cmocka_unit_test(test_tau),
                                     cmocka_unit_test(test_bootstrap_covers), cmocka_unit_test(test_interval_by_hand)};
  return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
