// Runs every algorithm on random problems with every kind of constraint. A proposal must respect groups and pins, must
// be legal if the algorithm says so, and must fit in memory if the algorithm says so.
#include "tests/common/test.h"

#include <unistd.h>

#include "placer/search/local.h"
#include "tests/placer/instances.h"

// Whether some placement is legal and fits (by trying all of a small problem).
static bool can_be_placed(const struct tfc_problem *p, struct tfc_simulator *sim, bool *legal_only) {
  tfc_device_id device[64] = {0};
  *legal_only = false;
  for (;;) {
    struct tfc_verdict v = {0};
    tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
    *legal_only |= v.legal;
    if (v.legal && v.feasible) return true;
    uint32_t u = 0;
    while (u < p->unit_count && ++device[u] == p->device_count) device[u++] = 0;
    if (u == p->unit_count) return false;
  }
}

static void check_algo(const struct tfc_algo *algo) {
  uint32_t proposed = 0, missed = 0, fits = 0, possible = 0;
  for (uint64_t number = 0; number < 60; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 77000 + number);
    uint32_t rich = number % 4 == 0 ? 0 : (uint32_t)pick(&r, RICH_ALL + 1);
    tfc_objective objective = number % 2 ? TFC_OBJECTIVE_THROUGHPUT : TFC_OBJECTIVE_STEP;
    if (number % 3) rich &= ~RICH_MISSING;
    bool small = number % 5 < 2;
    struct instance i = random_instance(&r, small ? 2 + (uint32_t)pick(&r, 6) : 2 + (uint32_t)pick(&r, 60),
                                        1 + (uint32_t)pick(&r, small ? 3 : 5), rich, objective);
    const struct tfc_problem *p = i.problem;
    struct tfc_evaluator *evaluator = NULL;
    struct tfc_simulator *sim = NULL;
    struct tfc_solution solution = {0};
    uint64_t evaluations = 0;
    assert_ok(tfc_evaluator_simulated(p, 1, &evaluator));
    assert_ok(tfc_simulator_create(p, &sim));
    assert_ok(tfc_solution_init(&solution, p));
    struct tfc_budget budget = {.evaluations = 300, .seed = number, .threads = 1};
    // Integer programs get a limit of time, because a solver's work is not counted in evaluations.
    if (algo->needs & TFC_NEEDS_SMALL) budget.deadline = tfc_now_s() + 0.3;
    tfc_status s = algo->propose(p, evaluator, &budget, &solution, &evaluations);
    if (s) {
      tfc_code code = tfc_status_code(s);
      if (code != TFC_FAILED_PRECONDITION && code != TFC_DEADLINE_EXCEEDED)
        fail_msg("%s, case %llu: %s", algo->name, (unsigned long long)number, tfc_status_message(s));
      tfc_status_free(s);
    } else {
      proposed++;
      for (uint32_t u = 0; u < p->unit_count; u++) {
        assert_true(solution.device[u] < p->device_count);
        if (!tfc_problem_allows(p, u, solution.device[u]))
          fail_msg("%s, case %llu: unit %u may not be on device %u", algo->name, (unsigned long long)number, u,
                   solution.device[u]);
      }
      if (solution.rank) { // the ranks must be a permutation
        bool *seen = calloc(p->node_count, sizeof *seen);
        for (uint32_t n = 0; n < p->node_count; n++) {
          assert_true(solution.rank[n] < p->node_count && !seen[solution.rank[n]]);
          seen[solution.rank[n]] = true;
        }
        free(seen);
      }
      struct tfc_verdict v = {0};
      tfc_simulate(sim, solution.device, solution.rank, TFC_TIME_MAX, &v);
      bool links = !p->has_missing_links;
      if (links) assert_true(v.legal);
      bool legal_only, all = p->unit_count <= 7 && !p->has_live && can_be_placed(p, sim, &legal_only);
      if (all) {
        possible++;
        if (v.legal && v.feasible)
          fits++;
        else
          missed++;
      }
      assert_true(!(algo->needs & TFC_NEEDS_BUDGET) || evaluations <= budget.evaluations + 60);
      // The same budget and seed give the same answer.
      if (!(algo->needs & TFC_NEEDS_SMALL)) {
        struct tfc_solution again = {0};
        uint64_t more = 0;
        assert_ok(tfc_solution_init(&again, p));
        assert_ok(algo->propose(p, evaluator, &budget, &again, &more));
        assert_memory_equal(again.device, solution.device, sizeof *again.device * p->unit_count);
        assert_int_equal(more, evaluations);
        tfc_solution_deinit(&again);
      }
    }
    tfc_solution_deinit(&solution);
    tfc_simulator_free(sim);
    tfc_evaluator_free(evaluator);
    instance_free(&i);
  }
  print_message("%-12s proposed %u of 60; fits %u of %u small ones that can be placed\n", algo->name, proposed, fits,
                possible);
  assert_true(proposed >= 30);
  // repair is a local search: it may fail on some problems with little free memory
  assert_true(missed * 8 <= possible);
}

static void test_algorithms(void **state) {
  (void)state;
  for (const struct tfc_algo *const *a = tfc_algos(); *a; a++) check_algo(*a);
}

// `auto` with a number of evaluations gives the same answer with any number of threads, and the answer is legal.
static void test_auto(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 16; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 88000 + number);
    uint32_t rich = number % 3 ? (uint32_t)pick(&r, RICH_ALL + 1) & ~RICH_MISSING : 0;
    struct instance i = random_instance(&r, 2 + (uint32_t)pick(&r, 80), 1 + (uint32_t)pick(&r, 5), rich,
                                        number % 2 ? TFC_OBJECTIVE_THROUGHPUT : TFC_OBJECTIVE_STEP);
    struct tfc_search_outcome one = {0}, four = {0};
    struct tfc_search_options options = {.evaluations = 1000 + 200 * number, .seed = number, .threads = 1};
    assert_ok(tfc_search(i.problem, &options, &one));
    options.threads = 4;
    assert_ok(tfc_search(i.problem, &options, &four));
    assert_int_equal(one.value, four.value);
    assert_int_equal(one.evaluations, four.evaluations);
    assert_memory_equal(one.best.device, four.best.device, sizeof *one.best.device * i.problem->unit_count);
    assert_ok(tfc_solution_check(i.problem, one.best.device));
    for (uint32_t k = 0; k < one.entry_count; k++)
      if (one.entries[k].value != TFC_TIME_MAX && one.entries[k].excess == one.excess)
        assert_true(one.value <= one.entries[k].value);
    assert_true(one.value >= one.bound.value);
    tfc_search_outcome_deinit(&one);
    tfc_search_outcome_deinit(&four);
    instance_free(&i);
  }
}

// Solvers and partitioners must not write to the program's output.
static void test_silent(void **state) {
  (void)state;
  int saved = dup(1), ends[2];
  assert_int_equal(pipe(ends), 0);
  fflush(stdout);
  dup2(ends[1], 1);
  struct tfc_random r;
  tfc_random_init(&r, 5);
  struct instance i = random_instance(&r, 8, 3, 0, TFC_OBJECTIVE_THROUGHPUT);
  struct tfc_search_outcome out = {0};
  struct tfc_search_options options = {.settings.algorithms = "ilp,m-sct,metis,scotch", .seconds = 2, .threads = 2};
  tfc_status s = tfc_search(i.problem, &options, &out);
  fflush(stdout);
  dup2(saved, 1);
  close(ends[1]);
  char text[256];
  ssize_t size = read(ends[0], text, sizeof text - 1);
  close(ends[0]), close(saved);
  assert_ok(s);
  text[size > 0 ? size : 0] = 0;
  if (size > 0) fail_msg("something was printed: %s", text);
  tfc_search_outcome_deinit(&out);
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_algorithms), cmocka_unit_test(test_auto),
                                     cmocka_unit_test(test_silent)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
