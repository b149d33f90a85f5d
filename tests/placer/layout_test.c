// Tests `layout` on grids whose best placement is known by construction, in files with a random order of nodes: it must
// find the rows of the grid.
#include "tests/common/test.h"

#include "placer/search/local.h"
#include "tests/placer/instances.h"

#define OPERATION_US 3
#define LATENCY_US 5

// Operation (row, time) reads the results of (row - 1, time) and (row, time - 1). Node numbers are random.
static struct instance grid(uint32_t rows, uint32_t times, uint32_t devices, uint64_t seed) {
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  struct tfc_random r;
  uint32_t acc, node, *number = malloc(sizeof *number * rows * times);
  char name[32];
  tfc_random_init(&r, seed);
  for (uint32_t n = 0; n < rows * times; n++) number[n] = n;
  for (uint32_t n = rows * times; n > 1; n--) {
    const uint32_t m = (uint32_t)pick(&r, n), x = number[n - 1];
    number[n - 1] = number[m], number[m] = x;
  }
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t n = 0; n < rows * times; n++) {
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, OPERATION_US));
  }
  for (uint32_t row = 0; row < rows; row++)
    for (uint32_t t = 0; t < times; t++) {
      const uint32_t *at = &number[row * times + t];
      if (t + 1 < times) MUST(tfc_cost_builder_edge(b, at[0], 0, at[1], 0, TFC_LIVE_ABSENT));
      if (row + 1 < rows) MUST(tfc_cost_builder_edge(b, at[0], 0, at[times], 0, TFC_LIVE_ABSENT));
    }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  struct tfc_link l = tfc_link_default();
  l.latency_us = LATENCY_US, l.bandwidth = 12e9;
  i.machine = even_machine(devices, NULL, &l);
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  free(number);
  return i;
}

static void test_grids(void **state) {
  (void)state;
  static const uint32_t sizes[][3] = {{16, 60, 8}, {16, 150, 8}, {8, 150, 4}, {12, 100, 4}, {24, 40, 8}};
  for (uint32_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    for (uint64_t seed = 1; seed <= 3; seed++) {
      const uint32_t rows = sizes[k][0], times = sizes[k][1], devices = sizes[k][2], own = rows / devices;
      struct instance i = grid(rows, times, devices, seed);
      struct tfc_simulator *sim = NULL;
      struct tfc_solution solution = {0};
      struct tfc_verdict v = {0};
      struct tfc_budget budget = {.seed = seed, .threads = 1};
      uint64_t evaluations = 0;
      assert_ok(tfc_simulator_create(i.problem, &sim));
      assert_ok(tfc_solution_init(&solution, i.problem));
      assert_ok(tfc_algo_find(TFC_STR("layout"))->propose(i.problem, NULL, &budget, &solution, &evaluations));
      tfc_simulate(sim, solution.device, solution.rank, TFC_TIME_MAX, &v);
      // Each device has `own` rows. It starts when the first column has passed through the rows of the devices before
      // it.
      const double best_us = (devices - 1) * (own * OPERATION_US + LATENCY_US) + (double)(own * times * OPERATION_US);
      if (!v.legal || 1e-6 * (double)v.value > 1.02 * best_us)
        fail_msg("%u x %u, seed %llu: %g us, the rows take %g us", rows, times, (unsigned long long)seed,
                 1e-6 * (double)v.value, best_us);
      tfc_solution_deinit(&solution);
      tfc_simulator_free(sim);
      instance_free(&i);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_grids)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
