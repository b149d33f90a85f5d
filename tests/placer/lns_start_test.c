// Tests where large-neighbourhood search begins as a rival, and what it is given.
#include "tests/placer/methods.h"

#include "placer/search/lns.h"

static tfc_status noted_lns(const struct tfc_problem *p, const struct tfc_budget *budget, struct tfc_solution *solution,
                            struct tfc_score *score, uint64_t *evaluations) {
  (void)p, (void)solution, (void)evaluations;
  asked[asked_count++] = (struct asked){.budget = *budget, .before = *score};
  return NULL;
}

#define tfc_local_lns noted_lns
#define tfc_algo_lns own_lns // the library has it, too
#include "placer/algo/lns.c"

static void test_large_neighbourhoods(void **state) {
  (void)state;
  static const char *const first[] = {"single", "split", "m-etf", "heft"};
  for (uint64_t number = 0; number < 12; number++) {
    struct instance i = drawn(100 + number, 30, number % 3 ? RICH_GROUPS | RICH_KINDS | RICH_LIMITS : 0,
                              number % 2 ? TFC_OBJECTIVE_STEP : TFC_OBJECTIVE_THROUGHPUT);
    for (int kind = 0; kind < 3; kind++) {
      struct tfc_solution s = {0};
      uint64_t used = 0;
      asked_count = 0;
      assert_ok(tfc_solution_init(&s, i.problem));
      assert_ok(own_lns.propose(i.problem, NULL,
                                &(struct tfc_budget){.seed = 3,
                                                     .threads = 1,
                                                     .evaluations = kind == 0   ? 500
                                                                    : kind == 1 ? 0
                                                                                : 2},
                                &s, &used));
      if (kind == 2 && used == 2) { // an order took the second evaluation: nothing is left
        assert_int_equal(asked_count, 0);
        tfc_solution_deinit(&s);
        continue;
      }
      assert_int_equal(asked_count, 1);
      if (kind < 2) assert_true(equal(asked[0].before, best_of(i.problem, first, 4, 3)));
      assert_true(equal(asked[0].before, score_of(i.problem, &s)));
      // What is left of the budget.
      assert_int_equal(asked[0].budget.evaluations, kind == 0 ? 500 - used : kind == 1 ? 20000 - used : 2 - used);
      tfc_solution_deinit(&s);
    }
    instance_free(&i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_large_neighbourhoods)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
