// How a search under a time limit divides its time: the rounds fill it, no job is too short, and the last one cools
// down.
#include "tests/common/test.h"

#include <math.h>

#include "placer/search/pace.h"

// Goes through all rounds of a search; returns their number, and the seconds of the last one.
static uint32_t walk(double seconds, uint32_t threads, bool cooling, double *out_last) {
  double slice = 0, left = seconds;
  uint32_t rounds = 0;
  for (bool cools = false; left > 1e-9 * seconds; rounds++) {
    const struct tfc_pace pace = tfc_pace_step(&slice, left, threads, 8, cooling);
    const double span = pace.jobs > threads ? pace.seconds * pace.jobs / threads : pace.seconds;
    assert_false(cools); // nothing follows
    assert_true(pace.jobs >= threads && pace.jobs <= (threads > 8 ? threads : 8));
    assert_true(span > 0 && span <= left * (1 + 1e-12));
    if (pace.jobs > threads) assert_true(pace.seconds >= 0.15 - 1e-12);
    if (pace.cools) assert_int_equal(pace.jobs, threads);
    assert_true(cooling || !pace.cools);
    cools = pace.cools, *out_last = span, left -= span;
    assert_true(rounds < 100);
  }
  return rounds;
}

static void rounds_fill_the_time(void **state) {
  (void)state;
  double last;
  // A minute on two threads: thirteen rounds of eight jobs, and a last one that cools down.
  double slice = 0;
  struct tfc_pace pace = tfc_pace_step(&slice, 60, 2, 8, true);
  assert_int_equal(pace.jobs, 8);
  assert_true(fabs(slice - 4.2) < 1e-12 && fabs(pace.seconds - 1.05) < 1e-12 && !pace.cools);
  assert_int_equal(walk(60, 2, true, &last), 15);
  assert_true(last > 2 && last < 4.2);
  assert_int_equal(walk(60, 2, false, &last), 14);
  for (double seconds = 0.01; seconds < 1000; seconds *= 1.3)
    for (uint32_t threads = 1; threads < 40; threads += 7) {
      walk(seconds, threads, true, &last);
      walk(seconds, threads, false, &last);
    }
}

// Where eight jobs would be shorter than is of use, there are fewer, but one for each thread.
static void short_searches_have_few_jobs(void **state) {
  (void)state;
  double slice = 0;
  assert_int_equal(tfc_pace_step(&slice, 1, 1, 8, true).jobs, 1);
  assert_true(fabs(slice - 0.15) < 1e-12);
  slice = 0;
  assert_int_equal(tfc_pace_step(&slice, 10, 1, 8, true).jobs, 4); // the round gets 0.7 s
  slice = 0;
  assert_int_equal(tfc_pace_step(&slice, 1, 16, 8, true).jobs, 16);
}

// A search whose time is over, or nearly so, plans no further round, or only the one that cools down.
static void nothing_left(void **state) {
  (void)state;
  double slice = 4.2;
  assert_true(tfc_pace_step(&slice, 0, 2, 8, true).cools);
  assert_true(tfc_pace_step(&slice, -1, 2, 8, true).seconds <= 0);
  assert_true(tfc_pace_step(&slice, -1, 2, 8, false).seconds <= 0);
}

static void rounds_for_throughput_grow(void **state) {
  (void)state;
  double slice = 0, left = 30, before = 0;
  uint32_t rounds = 0;
  for (; left > 1e-9; rounds++) {
    const struct tfc_pace pace = tfc_pace_throughput(&slice, left, 3);
    assert_int_equal(pace.jobs, 3);
    assert_true(!pace.cools && pace.seconds <= left);
    if (rounds && pace.seconds < left) assert_true(fabs(pace.seconds / before - 1.35) < 1e-9);
    before = pace.seconds, left -= pace.seconds;
  }
  assert_int_equal(rounds, 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rounds_fill_the_time),
                                     cmocka_unit_test(short_searches_have_few_jobs), cmocka_unit_test(nothing_left),
                                     cmocka_unit_test(rounds_for_throughput_grow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
