// Tests what a search for throughput does with its time: how long each job is, when it leaves a valley, what it does in
// the last fifth, and when it ends early; and when a search runs the integer program. Jobs, the clock and the integer
// program are stand-ins, so the figures do not depend on the machine's speed.
#include "tests/common/test.h"

#include <stdio.h>

#include "tests/placer/played_rounds.h"

// Each call of the clock takes two milliseconds, and each job just its time limit.
static _Atomic int64_t played_ns = INT64_C(5000000000);
int64_t tfc_now_ns(void) {
  return atomic_fetch_add(&played_ns, 2000000);
}
static void takes(double seconds) {
  atomic_fetch_add(&played_ns, (int64_t)(1e9 * seconds));
}

static void timed_search(const struct tfc_problem *p, double seconds, uint64_t each, struct tfc_search_outcome *out) {
  const struct tfc_search_options options = {.seconds = seconds, .seed = 4, .threads = 1};
  played_count = 0, improves = 0, best_found = TFC_SCORE_NONE, took = takes, counts = each;
  assert_ok(tfc_search(p, &options, out));
}

// The search leaves a valley after three rounds without an improvement. Each round in a valley is 1.35 times as long as
// the one before. The search leaves the first valley only after a round of at least four times the base; the first
// round of each later valley takes 1.35 times the base.
static void test_valleys_of_a_search(void **state) {
  (void)state;
  struct instance i = medium(5, 3, TFC_OBJECTIVE_THROUGHPUT);
  uint32_t last = 0, best = 0; // the jobs in the last fifth of each search; those that begin at the best placement
  for (int k = 0; k < 3; k++) {
    const double seconds = k == 0 ? 20 : k == 1 ? 40 : 400;
    struct tfc_search_outcome out = {0};
    const double begin = 1e-9 * (double)atomic_load(&played_ns);
    timed_search(i.problem, seconds, 10, &out);
    const double end = 1e-9 * (double)atomic_load(&played_ns);
    assert_true(end - begin >= seconds && end - begin < seconds + 1);
    best_found = (struct tfc_score){0, out.value};
    assert_true(played_count > 8 && out.excess == 0);
    // The first valley: each job is longer than the last one.
    uint32_t n = 1;
    while (n < played_count && plans[n].seconds > plans[n - 1].seconds) {
      assert_true(fabs(plans[n].seconds - 1.35 * plans[n - 1].seconds) < 1e-6);
      n++;
    }
    const uint32_t first = n;
    const double base = plans[first].seconds / 1.35;
    assert_true(first >= 3 && first + 3 < played_count);
    assert_true(plans[first - 1].seconds >= 4 * base);
    if (first > 3) assert_true(plans[first - 2].seconds < 4 * base);
    // Later valleys: three rounds each, all from one placement, until a fifth of the time is left. After that, the
    // search goes on with the best placements of all valleys.
    uint32_t valleys = 0, later = 0;
    for (uint32_t m = first; m < played_count; m++) {
      const double over = (plans[m].begin - begin) / seconds; // the share of the time that was over
      const uint32_t round = (m - first) % 3;
      if (over < 0.8) {
        assert_true(fabs(plans[m].seconds - base * pow(1.35, round + 1)) < 1e-6);
        assert_int_equal(plans[m].score.value, plans[m - round].score.value);
        assert_true(plans[m].score.value > best_found.value);
        valleys += round == 2;
      } else {
        later++, last++, best += plans[m].score.value == best_found.value;
      }
    }
    assert_true(valleys > 0 && later > 0);
    tfc_search_outcome_deinit(&out);
  }
  assert_true(3 * best > last); // three of five jobs begin at the best, and some of the others
  instance_free(&i);
}

// A search ends early when all ten methods had a turn and 1,000,000 evaluations, plus 50,000 for each pair of a unit
// and a device, brought no improvement.
static void test_early_end(void **state) {
  (void)state;
  // too large for the integer program, which would have half of the time to prove something
  struct instance i = of_size(TFC_ILP_UNITS + 60, 5, 3, TFC_OBJECTIVE_THROUGHPUT);
  assert_true(i.problem->unit_count > TFC_ILP_UNITS);
  const uint64_t thorough = 50000 * (uint64_t)i.problem->unit_count * 3 + 1000000;
  for (int k = 0; k < 4; k++) {
    struct tfc_search_outcome out = {0};
    const uint64_t each = k == 0 ? thorough : k == 1 ? thorough / 10 : k == 2 ? thorough / 15 : 1;
    timed_search(i.problem, 400, each, &out);
    assert_false(out.optimal);
    if (k < 2)
      assert_int_equal(played_count, 10);
    else if (k == 2) // the heuristics' evaluations count, too
      assert_in_range(played_count, 14, 15);
    else
      assert_true(played_count > 40);
    tfc_search_outcome_deinit(&out);
  }
  instance_free(&i);
}

// If four seconds or more are left, the integer program runs on another thread for half of that time, and begins at the
// best placement on one device.
static void test_program_is_asked(void **state) {
  (void)state;
  played_count = 0, improves = 0, best_found = TFC_SCORE_NONE, took = takes, counts = 10;
  struct instance i = three_devices(false);
  struct tfc_search_outcome out = {0};
  for (int k = 0; k < 4; k++) {
    const bool one_device = k == 3;
    const struct tfc_search_options options = {.seconds = k == 0 ? 3.9 : k == 1 ? 4.1 : 20, .seed = 1, .threads = 1};
    struct tfc_problem *alone = NULL;
    struct tfc_machine *machine = NULL;
    struct tfc_link l = tfc_link_default();
    memset(&solver, 0, sizeof solver);
    solver.answers.bound = 40000000;
    if (one_device) {
      machine = even_machine(1, NULL, &l);
      machine->devices[0].kind = TFC_STR("a");
      MUST(tfc_problem_create(i.graph, machine, TFC_OBJECTIVE_STEP, &alone));
    }
    assert_ok(tfc_search(one_device ? alone : i.problem, &options, &out));
    assert_int_equal(solver.asked, k == 1 || k == 2);
    if (solver.asked) {
      assert_true(solver.count == 3 && solver.alone && solver.cancels);
      assert_true(solver.seconds > 0.4 * options.seconds && solver.seconds <= 0.5 * options.seconds);
      assert_true(solver.begins && solver.begins_at == 0); // 60 us: a:0 is the fastest
      // The search finds the best of all placements (40 us), and the program's bound proves that none is better.
      assert_true(out.value == 40000000 && out.optimal && out.bound.each[TFC_BOUND_ILP] == 40000000);
    }
    tfc_search_outcome_deinit(&out);
    tfc_problem_free(alone);
    tfc_machine_free(machine);
  }
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_valleys_of_a_search), cmocka_unit_test(test_early_end),
                                     cmocka_unit_test(test_program_is_asked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
