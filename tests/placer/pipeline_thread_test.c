// Tests the time between the ends of steps that are in flight at the same time, with a clock and steps that are played
// here: whatever the threads do, the n-th end is at a known time.
#include "tests/common/test.h"

#include <stdatomic.h>

#include "placer/measure/pipeline.h"
#include "runtime/base/clock.h"

enum { MOST = 8 };
static atomic_int ends, busy[MOST], runs[MOST];
static int fails_at; // the run that fails; 0: none
static struct tfc_plan *const plans[MOST] = {(void *)1, (void *)2, (void *)3, (void *)4,
                                             (void *)5, (void *)6, (void *)7, (void *)8};

// The n-th end is at n * n microseconds. Only ends are timed, one after the other.
static int64_t played_now(void) {
  const int64_t n = atomic_fetch_add(&ends, 1) + 1;
  return 1000 * n * n;
}
static tfc_status played_run(struct tfc_plan *plan, const struct tfc_tensor *values, struct tfc_tensor *results,
                             const struct tfc_run_options *options) {
  (void)values, (void)results;
  static atomic_int all;
  int which = 0;
  if (options) return tfc_status_make(TFC_INTERNAL, "steps in flight are not traced");
  while (which < MOST && plans[which] != plan) which++;
  if (which == MOST) return tfc_status_make(TFC_INTERNAL, "an unknown plan");
  if (atomic_fetch_add(&busy[which], 1)) return tfc_status_make(TFC_INTERNAL, "two steps in one plan's memory");
  atomic_fetch_add(&runs[which], 1);
  atomic_fetch_sub(&busy[which], 1);
  if (fails_at && atomic_fetch_add(&all, 1) + 1 == fails_at) return tfc_status_make(TFC_ABORTED, "it broke");
  return NULL;
}
static tfc_status played_beat(struct tfc_worker *w, uint32_t entry) {
  (void)w;
  assert_int_equal(entry, 3);
  return NULL;
}
#define tfc_now_ns played_now
#define tfc_plan_run played_run
#define tfc_worker_beat played_beat
#define tfc_worker_pipeline played_pipeline
#include "placer/measure/pipeline.c"

static void test_times(void **state) {
  (void)state;
  for (uint32_t in_flight = 1; in_flight <= MOST; in_flight += in_flight < 3 ? 1 : 5)
    for (uint32_t windows = 1; windows <= 5; windows += 2) {
      struct tfc_worker w = {0};
      int64_t ns[5];
      atomic_store(&ends, 0);
      for (int k = 0; k < MOST; k++) atomic_store(&runs[k], 0);
      assert_ok(played_pipeline(&w, plans[0], in_flight > 1 ? (struct tfc_plan **)(uintptr_t)&plans[1] : NULL, 3,
                                in_flight, windows, ns));
      const int64_t f = in_flight;
      int all = 0;
      for (int64_t i = 0; i < windows; i++) // one window is f ends; the first f ends only fill the pipeline
        assert_int_equal(ns[i], 1000 * (f * (i + 2) * f * (i + 2) - f * (i + 1) * f * (i + 1)) / f);
      for (int k = 0; k < MOST; k++) {
        assert_true(k < (int)in_flight || atomic_load(&runs[k]) == 0);
        all += atomic_load(&runs[k]);
      }
      assert_true(all >= (int)(in_flight * (windows + 1)));
    }
}

// The first error ends all, and is the answer.
static void test_errors(void **state) {
  (void)state;
  struct tfc_worker w = {0};
  int64_t ns[5];
  fails_at = 7;
  assert_fails(played_pipeline(&w, plans[0], (struct tfc_plan **)(uintptr_t)&plans[1], 3, 4, 5, ns), TFC_ABORTED,
               "it broke");
  fails_at = 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_times), cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
