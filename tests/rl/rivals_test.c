// The rivals of the literature: what they propose is legal on problems with every field of the formats, follows from
// the seed, keeps to the evaluations, and is better than random placements at equal evaluations where a policy can
// learn.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "rl/rival.h"
#include "tests/placer/instances.h"

static const struct tfc_algo *const rivals[] = {&tfc_algo_doppler};
enum { rival_count = sizeof rivals / sizeof *rivals };

static int64_t run(const struct tfc_problem *p, const struct tfc_algo *algo, uint64_t evaluations, uint64_t seed,
                   struct tfc_solution *out, uint64_t *out_used) {
  struct tfc_evaluator *evaluator = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_verdict v = {0};
  assert_ok(tfc_evaluator_simulated(p, 1, &evaluator));
  assert_ok(tfc_simulator_create(p, &sim));
  assert_ok(tfc_solution_init(out, p));
  struct tfc_budget budget = {.evaluations = evaluations, .seed = seed, .threads = 1};
  *out_used = 0;
  tfc_status s = algo->propose(p, evaluator, &budget, out, out_used);
  if (s) { // nothing that could run was found: said, with its name
    assert_int_equal(tfc_status_code(s), TFC_FAILED_PRECONDITION);
    assert_non_null(strstr(tfc_status_message(s), algo->name));
    tfc_status_free(s);
    v.value = TFC_TIME_MAX;
  } else {
    assert_ok(tfc_solution_check(p, out->device));
    tfc_simulate(sim, out->device, out->rank, TFC_TIME_MAX, &v);
  }
  tfc_simulator_free(sim);
  tfc_evaluator_free(evaluator);
  return v.value;
}

static void legal_and_repeatable(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 12; number++) {
    struct tfc_random random;
    tfc_random_init(&random, 100 + number);
    const uint32_t rich = number % 3 == 0 ? 0 : RICH_ALL;
    struct instance i = random_instance(&random, 1 + (uint32_t)pick(&random, 40), 1 + (uint32_t)pick(&random, 5), rich,
                                        number % 4 == 3 ? TFC_OBJECTIVE_THROUGHPUT : TFC_OBJECTIVE_STEP);
    for (int k = 0; k < rival_count; k++) {
      struct tfc_solution one = {0}, two = {0};
      uint64_t used = 0, again = 0;
      int64_t value = run(i.problem, rivals[k], 25, number, &one, &used);
      assert_true(used <= 25 && used >= 1);
      assert_int_equal(value, run(i.problem, rivals[k], 25, number, &two, &again));
      assert_int_equal(used, again);
      if (value != TFC_TIME_MAX)
        assert_memory_equal(one.device, two.device, i.problem->unit_count * sizeof *one.device);
      tfc_solution_deinit(&one);
      tfc_solution_deinit(&two);
    }
    instance_free(&i);
  }
}

// Layers of cells over time, a heavy hand-over between neighbours.
static void make_grid(struct instance *out) {
  enum { layers = 4, steps = 12 };
  static const char text[] = "format: tfc-machine\nversion: 1\ndevices:\n"
                             "  - {name: \"cpu:0\", kind: cpu, count: 4}\n"
                             "links:\n  - {from: \"*\", to: \"*\", latency: 20us, bandwidth: 4GB/s}\n";
  struct tfc_cost_builder *b = NULL;
  uint32_t kind, ids[layers][steps];
  assert_ok(tfc_cost_builder_create(&b));
  assert_ok(tfc_cost_builder_kind(b, TFC_STR("cpu"), &kind));
  for (int l = 0; l < layers; l++)
    for (int t = 0; t < steps; t++) {
      char name[32];
      snprintf(name, sizeof name, "cell%d/%d", l, t);
      assert_ok(tfc_cost_builder_node(b, tfc_str_from(name), &ids[l][t]));
      assert_ok(tfc_cost_builder_time(b, ids[l][t], kind, 1000));
      if (t) assert_ok(tfc_cost_builder_edge(b, ids[l][t - 1], 0, ids[l][t], 4000000, TFC_LIVE_ABSENT));
      if (l) assert_ok(tfc_cost_builder_edge(b, ids[l - 1][t], 0, ids[l][t], 4000000, TFC_LIVE_ABSENT));
    }
  assert_ok(tfc_cost_builder_finish(b, &out->graph));
  tfc_cost_builder_free(b);
  assert_ok(tfc_machine_parse(tfc_str_from(text), "grid.yaml", &out->machine));
  assert_ok(tfc_problem_create(out->graph, out->machine, TFC_OBJECTIVE_STEP, &out->problem));
}

static void better_than_random(void **state) {
  (void)state;
  struct instance i = {0};
  make_grid(&i);
  for (int k = 0; k < rival_count; k++) {
    if (strstr(rivals[k]->name, "-random")) continue;
    double own = 0, control = 0;
    for (uint64_t seed = 1; seed <= 3; seed++) {
      struct tfc_solution solution = {0};
      uint64_t used = 0;
      own += (double)run(i.problem, rivals[k], 200, seed, &solution, &used) / 3e9;
      tfc_solution_deinit(&solution);
      control += (double)run(i.problem, tfc_algo_find(TFC_STR("random")), 200, seed, &solution, &used) / 3e9;
      tfc_solution_deinit(&solution);
    }
    print_message("%s: %.2f ms, random %.2f ms\n", rivals[k]->name, own, control);
    assert_true(own < 0.97 * control);
  }
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(legal_and_repeatable), cmocka_unit_test(better_than_random)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
