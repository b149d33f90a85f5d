// Tests which proposers get measurements: those that have won; and the learned policy, which gets at most a quarter
// until it has won.
#include "tests/common/test.h"

#include <math.h>

#include "placer/job/proposers.h"

static void test_a_policy_earns_its_measurements(void **state) {
  (void)state;
  struct tfc_job_proposers p = {0};
  struct tfc_random r;
  tfc_random_init(&r, 1);
  uint32_t given = 0;
  for (; given < 100 && tfc_job_proposers_draw(&p, given % 2 ? "rl" : "policy", true, 40, &r) >= 0; given++)
    assert_ok(tfc_job_proposers_measured(&p, given % 2 ? "rl" : "policy", true, 10, 12));
  assert_int_equal(given, 10); // both proposers together
  assert_int_equal(tfc_job_proposers_unearned_left(&p, 40), 0);
  assert_int_equal(tfc_job_proposers_unearned_left(&p, 20), 0); // fewer measurements than were thought
  assert_int_equal(tfc_job_proposers_unearned_left(&p, 60), 5);
  assert_true(tfc_job_proposers_draw(&p, "lns", false, 40, &r) >= 0);
  tfc_job_proposers_won(&p, "rl");
  assert_true(tfc_job_proposers_draw(&p, "rl", true, 40, &r) >= 0);
  assert_int_equal(tfc_job_proposers_find(&p, "rl")->won, 1);
  // "rl" has won, so of the 10 measurements only the 5 of "policy" itself count
  assert_true(tfc_job_proposers_draw(&p, "policy", true, 40, &r) >= 0);
  tfc_job_proposers_deinit(&p);
}

static void test_the_winner_is_drawn_more_often(void **state) {
  (void)state;
  struct tfc_job_proposers p = {0};
  struct tfc_random r;
  uint32_t first = 0;
  tfc_random_init(&r, 2);
  for (int i = 0; i < 20; i++) {
    assert_ok(tfc_job_proposers_measured(&p, "wins", false, 10 - i, NAN));
    assert_ok(tfc_job_proposers_measured(&p, "loses", false, NAN, 20 - i));
    if (i % 2) tfc_job_proposers_won(&p, "wins");
  }
  assert_true(tfc_job_proposers_find(&p, "wins")->best_simulated == -9.0);
  assert_true(isinf(tfc_job_proposers_find(&p, "wins")->best_measured));
  for (int i = 0; i < 1000; i++)
    first += tfc_job_proposers_draw(&p, "wins", false, 100, &r) > tfc_job_proposers_draw(&p, "loses", false, 100, &r);
  assert_true(first > 950);
  for (int i = first = 0; i < 1000; i++) // a proposer without results still gets a turn now and then
    first += tfc_job_proposers_draw(&p, "new", false, 100, &r) > tfc_job_proposers_draw(&p, "wins", false, 100, &r);
  assert_true(first > 200);
  tfc_job_proposers_deinit(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_policy_earns_its_measurements),
      cmocka_unit_test(test_the_winner_is_drawn_more_often),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
