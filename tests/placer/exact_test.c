// Compares the exact methods with enumeration: the integer program for throughput with the best of all placements, and
// dynamic programming on pinned chains with the best of all contiguous splits. Also tests what a search reports if
// nothing fits.
#include "tests/common/test.h"

#include "placer/search/local.h"
#include "tests/placer/instances.h"

// Under sanitizers, which are several times slower, fewer cases are drawn: memory errors would show in the first ones.
#ifdef TFC_SANITIZED
enum { SHARE = 5 };
#else
enum { SHARE = 1 };
#endif

static struct tfc_verdict verdict_of(const struct tfc_problem *p, struct tfc_simulator *sim,
                                     const tfc_device_id *device) {
  struct tfc_verdict v = {0};
  tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
  (void)p;
  return v;
}

// Returns the value of the best of all placements; TFC_TIME_MAX: no placement is legal and fits.
static int64_t best_of_all(const struct tfc_problem *p, struct tfc_simulator *sim) {
  tfc_device_id device[16] = {0};
  int64_t best = TFC_TIME_MAX;
  for (;;) {
    bool may = true;
    for (uint32_t u = 0; u < p->unit_count; u++) may &= tfc_problem_allows(p, u, device[u]);
    if (may) {
      const struct tfc_verdict v = verdict_of(p, sim, device);
      if (v.legal && v.feasible && v.value < best) best = v.value;
    }
    uint32_t u = 0;
    while (u < p->unit_count && ++device[u] == p->device_count) device[u++] = 0;
    if (u == p->unit_count) return best;
  }
}

// Random problems: links differ by pair, occupy the sender or the receiver, or are missing; there are kinds, pins,
// groups and limits.
static void test_program(void **state) {
  (void)state;
  uint32_t solved = 0, uneven = 0;
  for (uint64_t number = 0; number < 400 / SHARE; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 41000 + number);
    const uint32_t rich = ((uint32_t)pick(&r, RICH_ALL + 1) | RICH_OCCUPIES) & ~RICH_LIVE;
    struct instance i =
        random_instance(&r, 2 + (uint32_t)pick(&r, 5), 2 + (uint32_t)pick(&r, 2), rich, TFC_OBJECTIVE_THROUGHPUT);
    const struct tfc_problem *p = i.problem;
    struct tfc_simulator *sim = NULL;
    struct tfc_solution solution = {0};
    uint64_t evaluations = 0;
    assert_ok(tfc_simulator_create(p, &sim));
    assert_ok(tfc_solution_init(&solution, p));
    const int64_t best = best_of_all(p, sim);
    struct tfc_budget budget = {.deadline = tfc_now_s() + 600, .seed = number, .threads = 1};
    tfc_status s = tfc_algo_find(TFC_STR("ilp"))->propose(p, NULL, &budget, &solution, &evaluations);
    if (best == TFC_TIME_MAX) {
      if (!s) {
        const struct tfc_verdict v = verdict_of(p, sim, solution.device);
        assert_false(v.legal && v.feasible);
      }
      tfc_status_free(s);
    } else {
      assert_ok(s);
      const struct tfc_verdict v = verdict_of(p, sim, solution.device);
      assert_true(v.legal && v.feasible);
      if (v.value != best)
        fail_msg("case %llu: %lld, the best of all is %lld", (unsigned long long)number, (long long)v.value,
                 (long long)best);
      solved++, uneven += p->speed_count > 1;
    }
    tfc_solution_deinit(&solution);
    tfc_simulator_free(sim);
    instance_free(&i);
  }
  assert_true(solved >= 200 / SHARE && uneven >= 60 / SHARE);
}

// Makes a chain in which some runs of nodes are pinned, on devices that differ only in pins and limits.
static struct instance pinned_chain(struct tfc_random *r, uint32_t nodes, uint32_t devices) {
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  uint32_t acc, node, turn[8];
  char name[32];
  const bool limits = pick(r, 2);
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t d = 0; d < devices; d++) turn[d] = d;
  for (uint32_t d = devices; d > 1; d--) {
    const uint32_t e = (uint32_t)pick(r, d), x = turn[d - 1];
    turn[d - 1] = turn[e], turn[e] = x;
  }
  for (uint32_t n = 0; n < nodes; n++) {
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, (double)(1 + pick(r, 9))));
    tfc_cost_builder_memory(b, node, 1);
    snprintf(name, sizeof name, "acc:%u", turn[n * devices / nodes]);
    if (pick(r, 3) == 0) MUST(tfc_cost_builder_pin(b, node, tfc_str_from(name)));
    if (n) MUST(tfc_cost_builder_edge(b, n - 1, 0, n, 1 + pick(r, 5000), TFC_LIVE_ABSENT));
  }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  MUST(tfc_machine_create(&i.machine));
  for (uint32_t d = 0; d < devices; d++) {
    snprintf(name, sizeof name, "acc:%u", d);
    MUST(tfc_machine_add_device(
        i.machine, &(struct tfc_machine_device){.name = tfc_str_from(name),
                                                .kind = TFC_STR("acc"),
                                                .memory = limits ? nodes / devices + 1 + pick(r, 2) : TFC_NO_LIMIT,
                                                .label = TFC_LABEL_MODELLED}));
  }
  struct tfc_link l = tfc_link_default();
  l.bandwidth = 1e9, l.occupies = TFC_OCCUPIES_BOTH;
  MUST(tfc_machine_add_link(i.machine, &l));
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_THROUGHPUT, &i.problem));
  return i;
}

// Tries all placements of the nodes in order: each is on the device of the node before it, or on a device that is not
// used yet.
static void best_split(const struct tfc_problem *p, struct tfc_simulator *sim, tfc_device_id *device, uint32_t placed,
                       uint32_t used, int64_t *best) {
  if (placed == p->node_count) {
    const struct tfc_verdict v = verdict_of(p, sim, device);
    if (v.legal && v.feasible && v.value < *best) *best = v.value;
    return;
  }
  for (uint32_t d = 0; d < p->device_count; d++) {
    if (!tfc_problem_allows(p, placed, d) || ((used >> d & 1) && !(placed && device[placed - 1] == d))) continue;
    device[placed] = (tfc_device_id)d;
    best_split(p, sim, device, placed + 1, used | 1u << d, best);
  }
}

static void test_pins(void **state) {
  (void)state;
  uint32_t possible = 0;
  for (uint64_t number = 0; number < 200 / SHARE; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 52000 + number);
    const uint32_t devices = 2 + (uint32_t)pick(&r, 3), nodes = devices + (uint32_t)pick(&r, 8);
    struct instance i = pinned_chain(&r, nodes, devices);
    const struct tfc_problem *p = i.problem;
    struct tfc_simulator *sim = NULL;
    struct tfc_solution solution = {0};
    tfc_device_id device[16];
    uint64_t evaluations = 0;
    int64_t best = TFC_TIME_MAX;
    assert_ok(tfc_simulator_create(p, &sim));
    assert_ok(tfc_solution_init(&solution, p));
    best_split(p, sim, device, 0, 0, &best);
    tfc_status s =
        tfc_algo_find(TFC_STR("dp"))->propose(p, NULL, &(struct tfc_budget){.threads = 1}, &solution, &evaluations);
    if (best == TFC_TIME_MAX) {
      assert_non_null(s);
      assert_int_equal(tfc_status_code(s), TFC_FAILED_PRECONDITION);
      tfc_status_free(s);
    } else {
      possible++;
      if (s) fail_msg("case %llu: %s", (unsigned long long)number, tfc_status_message(s));
      const struct tfc_verdict v = verdict_of(p, sim, solution.device);
      assert_true(v.legal && v.feasible);
      assert_int_equal(v.value, best);
    }
    tfc_solution_deinit(&solution);
    tfc_simulator_free(sim);
    instance_free(&i);
  }
  assert_true(possible > 100 / SHARE);
}

// Two nodes of 100 bytes and two devices of 50: every algorithm reports that 100 bytes are missing.
static void test_nothing_fits(void **state) {
  (void)state;
  for (int objective = 0; objective < 2; objective++) {
    struct instance i = {0};
    struct tfc_cost_builder *b = NULL;
    uint32_t acc, node;
    MUST(tfc_cost_builder_create(&b));
    MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
    for (uint32_t n = 0; n < 2; n++) {
      MUST(tfc_cost_builder_node(b, n ? TFC_STR("b") : TFC_STR("a"), &node));
      MUST(tfc_cost_builder_time(b, node, acc, 1));
      tfc_cost_builder_memory(b, node, 100);
    }
    MUST(tfc_cost_builder_edge(b, 0, 0, 1, 1, TFC_LIVE_ABSENT));
    MUST(tfc_cost_builder_finish(b, &i.graph));
    tfc_cost_builder_free(b);
    MUST(tfc_machine_create(&i.machine));
    for (uint32_t d = 0; d < 2; d++)
      MUST(tfc_machine_add_device(i.machine, &(struct tfc_machine_device){.name = d ? TFC_STR("x:1") : TFC_STR("x:0"),
                                                                          .kind = TFC_STR("acc"),
                                                                          .memory = 50,
                                                                          .label = TFC_LABEL_MODELLED}));
    struct tfc_link l = tfc_link_default();
    MUST(tfc_machine_add_link(i.machine, &l));
    MUST(tfc_problem_create(i.graph, i.machine, (tfc_objective)objective, &i.problem));
    for (const struct tfc_algo *const *a = tfc_algos(); *a; a++) {
      struct tfc_search_outcome out = {0};
      struct tfc_search_options options = {
          .settings.algorithms = (*a)->name, .evaluations = 50, .seed = 1, .threads = 1};
      assert_ok(tfc_search(i.problem, &options, &out));
      if (!out.best.device) fail_msg("%s: no placement at all", (*a)->name);
      const bool exact = strcmp((*a)->name, "dp") == 0 || strcmp((*a)->name, "ilp") == 0;
      if (out.excess < 100 || (exact && out.excess != 100))
        fail_msg("%s: %llu bytes are missing, not 100", (*a)->name, (unsigned long long)out.excess);
      tfc_search_outcome_deinit(&out);
    }
    instance_free(&i);
  }
}

// 64 bits of picoseconds hold 106 days: a transfer of 58 days is counted exactly, one of 108 days is an error that
// names its tensor.
static void test_long_times(void **state) {
  (void)state;
  for (int objective = 0; objective < 2; objective++)
    for (uint64_t bytes = 5000000; bytes < 10000000; bytes += 4400000) {
      struct instance i = {0};
      struct tfc_cost_builder *b = NULL;
      struct tfc_simulator *sim = NULL;
      uint32_t acc, node;
      MUST(tfc_cost_builder_create(&b));
      MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
      for (uint32_t n = 0; n < 2; n++) {
        MUST(tfc_cost_builder_node(b, n ? TFC_STR("b") : TFC_STR("a"), &node));
        MUST(tfc_cost_builder_time(b, node, acc, 1));
      }
      MUST(tfc_cost_builder_edge(b, 0, 0, 1, bytes, TFC_LIVE_ABSENT));
      MUST(tfc_cost_builder_finish(b, &i.graph));
      tfc_cost_builder_free(b);
      MUST(tfc_machine_create(&i.machine));
      for (uint32_t d = 0; d < 2; d++)
        MUST(tfc_machine_add_device(i.machine, &(struct tfc_machine_device){.name = d ? TFC_STR("x:1") : TFC_STR("x:0"),
                                                                            .kind = TFC_STR("acc"),
                                                                            .memory = TFC_NO_LIMIT,
                                                                            .label = TFC_LABEL_MODELLED}));
      struct tfc_link l = tfc_link_default();
      l.bandwidth = 1, l.occupies = TFC_OCCUPIES_RECEIVER;
      MUST(tfc_machine_add_link(i.machine, &l));
      tfc_status s = tfc_problem_create(i.graph, i.machine, (tfc_objective)objective, &i.problem);
      if (bytes > 9000000) {
        assert_non_null(s);
        assert_non_null(strstr(tfc_status_message(s), "'a'"));
        tfc_status_free(s);
        instance_free(&i);
        continue;
      }
      assert_ok(s);
      assert_ok(tfc_simulator_create(i.problem, &sim));
      const tfc_device_id apart[2] = {0, 1}, together[2] = {0, 0};
      const int64_t transfer = (int64_t)bytes * INT64_C(1000000000000);
      assert_int_equal(verdict_of(i.problem, sim, apart).value, transfer + (objective ? 1000000 : 2000000));
      assert_int_equal(verdict_of(i.problem, sim, together).value, 2000000);
      struct tfc_search_outcome out = {0};
      struct tfc_search_options options = {.evaluations = 2000, .seed = 1, .threads = 2};
      assert_ok(tfc_search(i.problem, &options, &out));
      assert_int_equal(out.value, 2000000);
      tfc_search_outcome_deinit(&out);
      tfc_simulator_free(sim);
      instance_free(&i);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_program), cmocka_unit_test(test_pins),
                                     cmocka_unit_test(test_nothing_fits), cmocka_unit_test(test_long_times)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
