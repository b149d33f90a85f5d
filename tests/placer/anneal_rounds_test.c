// Tests the rounds of annealing as a rival: where they begin, their temperatures, and how they share the budget.
#include "tests/placer/methods.h"

static double asked_chance;
static tfc_status noted_temperature(const struct tfc_problem *p, const struct tfc_budget *budget,
                                    const struct tfc_solution *from, double chance, struct tfc_random *random,
                                    double *out, uint64_t *evaluations) {
  (void)p, (void)budget, (void)from, (void)random;
  asked_chance = chance, *out = 0.25, *evaluations += 50;
  return NULL;
}

// HEFT, which may fail.
static bool heft_fails;
static tfc_status propose_heft(const struct tfc_problem *p, struct tfc_evaluator *evaluator,
                               const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *evaluations) {
  if (heft_fails) return tfc_status_make(TFC_FAILED_PRECONDITION, "not for this problem");
  return tfc_algo_find(TFC_STR("heft"))->propose(p, evaluator, budget, out, evaluations);
}
extern const struct tfc_algo fallible_heft;
const struct tfc_algo fallible_heft = {.name = "heft", .propose = propose_heft};

#define tfc_algo_heft fallible_heft
#define tfc_local_anneal noted_anneal
#define tfc_local_temperature noted_temperature
#define tfc_algo_anneal own_anneal // the library has it, too
#include "placer/algo/anneal.c"
#include "placer/search/anneal.h"

// Annealing: six rounds, each from half the temperature of the one before and with an equal share of what is left.
static void test_anneal(void **state) {
  (void)state;
  static const char *const first[] = {"single", "split", "pack", "metis", "scotch", "m-topo", "m-etf", "heft"};
  for (uint64_t number = 0; number < 12; number++) {
    const bool step = number % 2;
    struct instance i = drawn(number, 30, (uint32_t)(number % 3 ? RICH_GROUPS | RICH_KINDS : 0),
                              step ? TFC_OBJECTIVE_STEP : TFC_OBJECTIVE_THROUGHPUT);
    struct tfc_solution s = {0};
    const double begin = tfc_now_s();
    for (int kind = 0; kind < 4; kind++) { // a number of evaluations, none, a time, more used than allowed
      struct tfc_budget budget = {.seed = 70, .threads = 1, .evaluations = kind == 0 || kind == 3 ? 20000 : 0};
      uint64_t used = 5, left = kind == 1 ? 100000 : 20000;
      if (kind == 2) budget.deadline = begin + 600000;
      asked_count = 0, asked_chance = 0, too_much = kind == 3 ? 18000 : 0;
      assert_ok(tfc_solution_init(&s, i.problem));
      assert_ok(own_anneal.propose(i.problem, NULL, &budget, &s, &used));
      assert_int_equal(asked_count, kind == 3 ? 1 : 6);
      assert_true(asked_chance == (step ? 0.01 : 0));
      assert_true(equal(asked[0].before, best_of(i.problem, first, 8, 70)));
      for (uint32_t k = 0; k < asked_count; k++) {
        const struct asked *a = &asked[k];
        is_near(a->o.hot, (step ? 0.25 : 0.01 / log(100)) / (double)(1 << k));
        is_near(a->o.cold, a->o.hot / 100);
        assert_int_equal(a->o.orders, step);
        assert_int_equal(a->budget.seed, 70 + k);
        if (kind == 2) {
          assert_true(!a->budget.evaluations && fabs(a->budget.deadline - a->now - 600000.0 / (6 - k)) < 500);
          continue;
        }
        if (!k) { // annealing has all but what the heuristics used: a few evaluations for each
          assert_true(a->budget.evaluations <= left / 6 && a->budget.evaluations >= left / 6 - 50);
          left = a->budget.evaluations * 6;
        }
        // An equal share of what is left, rounded down.
        assert_true(a->budget.evaluations >= left / (6 - k) && a->budget.evaluations <= (left + 6) / (6 - k));
        left -= a->budget.evaluations;
      }
      if (kind == 0) assert_true(used <= 20000 + 5 && used > 20000 - 6);
      tfc_solution_deinit(&s);
    }
    too_much = 0;
    // A heuristic that is not for the problem is left out.
    struct tfc_solution without = {0};
    uint64_t spent = 0;
    asked_count = 0, heft_fails = true;
    MUST(tfc_solution_init(&without, i.problem));
    assert_ok(own_anneal.propose(i.problem, NULL, &(struct tfc_budget){.seed = 70, .threads = 1, .evaluations = 20000},
                                 &without, &spent));
    assert_true(equal(asked[0].before, best_of(i.problem, first, 7, 70)));
    heft_fails = false;
    tfc_solution_deinit(&without);
    // Cancelled before it begins: a placement, legal all the same.
    const atomic_bool cancelled = true;
    uint64_t used = 0;
    asked_count = 0;
    assert_ok(tfc_solution_init(&s, i.problem));
    memset(s.device, 0xff, sizeof *s.device * i.problem->unit_count);
    assert_ok(own_anneal.propose(
        i.problem, NULL, &(struct tfc_budget){.threads = 1, .evaluations = 100, .cancel = &cancelled}, &s, &used));
    assert_int_equal(asked_count, 0);
    assert_ok(tfc_solution_check(i.problem, s.device));
    tfc_solution_deinit(&s);
    instance_free(&i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_anneal)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
