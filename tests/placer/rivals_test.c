// Tests rivals: under both objectives, the answer of `auto` is never worse than a placement that existed before the
// search; algorithms that are given by name ignore rivals.
#include "tests/common/test.h"

#include "placer/search/rivals.h"
#include "tests/placer/instances.h"

static void value_of(const struct tfc_problem *p, const struct tfc_solution *solution, struct tfc_verdict *v) {
  struct tfc_simulator *sim = NULL;
  MUST(tfc_simulator_create(p, &sim));
  *v = (struct tfc_verdict){0};
  tfc_simulate(sim, solution->device, solution->rank, TFC_TIME_MAX, v);
  tfc_simulator_free(sim);
}

// The result of a long search is the rival of a search with almost no budget.
static void test_never_worse(void **state) {
  (void)state;
  uint32_t kept = 0;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    struct tfc_random r;
    tfc_random_init(&r, seed);
    struct instance i = random_instance(&r, 60, 4, RICH_WIRES | RICH_OCCUPIES, TFC_OBJECTIVE_STEP);
    tfc_problem_free(i.problem), i.problem = NULL;
    MUST(tfc_problem_create(i.graph, i.machine, seed % 2 ? TFC_OBJECTIVE_STEP : TFC_OBJECTIVE_THROUGHPUT, &i.problem));
    struct tfc_search_outcome good = {0}, got = {0}, named = {0};
    struct tfc_search_options options = {.evaluations = 20000, .seed = seed, .threads = 1};
    assert_ok(tfc_search(i.problem, &options, &good));
    assert_non_null(good.best.device);
    struct tfc_rival rivals[2] = {{"single", {0}}, {"expert", good.best}};
    MUST(tfc_solution_init(&rivals[0].solution, i.problem));
    options.evaluations = 1;
    assert_ok(tfc_search_beside(i.problem, &options, rivals, 2, &got));
    assert_true(got.value <= good.value);
    struct tfc_verdict v;
    value_of(i.problem, &got.best, &v);
    assert_int_equal(v.value, got.value);
    options.settings.algorithms = "heft";
    assert_ok(tfc_search_beside(i.problem, &options, rivals, 2, &named));
    kept += named.value > good.value;
    assert_string_equal(named.algorithm, "heft");
    tfc_solution_deinit(&rivals[0].solution);
    tfc_search_outcome_deinit(&good);
    tfc_search_outcome_deinit(&got);
    tfc_search_outcome_deinit(&named);
    instance_free(&i);
  }
  assert_true(kept > 0); // in some cases the rival was the answer, so the test compares something
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_worse)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
