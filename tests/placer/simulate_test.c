// Compares the simulator with the second one (reference.h): they agree exactly on thousands of random cases.
#include "tests/common/test.h"

#include "tests/placer/instances.h"
#include "tests/placer/reference.h"

// Under sanitizers, which are several times slower, fewer cases are drawn: memory errors would show in the first ones.
#ifdef TFC_SANITIZED
enum { SHARE = 5 };
#else
enum { SHARE = 1 };
#endif

static void compare(struct tfc_random *r, const struct instance *i, uint32_t rich, uint64_t number, uint32_t *legal) {
  const struct tfc_problem *p = i->problem;
  const uint32_t nodes = p->node_count, devices = p->device_count;
  tfc_device_id *unit_device = calloc(p->unit_count, sizeof *unit_device);
  uint32_t *device = calloc(nodes, sizeof *device), *rank = calloc(nodes, sizeof *rank);
  double *order = calloc(nodes, sizeof *order);
  int64_t busy[64];
  uint64_t memory[64];
  struct tfc_simulator *sim = NULL;
  assert_ok(tfc_simulator_create(p, &sim));
  for (int repeat = 0; repeat < 3; repeat++) {
    random_devices(r, p, unit_device);
    bool use_rank = (rich & RICH_ORDER) && repeat;
    for (uint32_t n = 0; n < nodes; n++) {
      device[n] = unit_device[p->unit[n]];
      order[n] = i->graph->order[n];
      if (use_rank && pick(r, 2)) order[n] = (double)pick(r, 10);
    }
    assert_ok(tfc_rank_from_order(p, order, rank));
    struct tfc_verdict v = {.busy = busy, .memory = memory};
    struct reference_result ref;
    reference_simulate(i->graph, i->machine, p->objective, device, order, &ref);
    tfc_simulate(sim, unit_device, use_rank ? rank : NULL, TFC_TIME_MAX, &v);
    if (v.legal != ref.legal)
      fail_msg("case %llu: legal %d, expected %d", (unsigned long long)number, v.legal, ref.legal);
    if (!ref.legal) {
      assert_int_equal(v.value, TFC_TIME_MAX);
      tfc_status s = tfc_solution_check(p, unit_device);
      assert_non_null(s);
      tfc_status_free(s);
      continue;
    }
    ++*legal;
    if (v.value != ref.value)
      fail_msg("case %llu, repeat %d: %lld ps, expected %lld", (unsigned long long)number, repeat, (long long)v.value,
               (long long)ref.value);
    assert_int_equal(v.transfers, ref.transfers);
    assert_int_equal(v.transfer_bytes, ref.transfer_bytes);
    assert_int_equal(v.excess, ref.excess);
    assert_int_equal(v.feasible, ref.excess == 0);
    for (uint32_t d = 0; d < devices; d++) {
      if (busy[d] != ref.busy[d])
        fail_msg("case %llu: device %u busy %lld, expected %lld", (unsigned long long)number, d, (long long)busy[d],
                 (long long)ref.busy[d]);
      if (memory[d] != ref.memory[d])
        fail_msg("case %llu: device %u memory %llu, expected %llu", (unsigned long long)number, d,
                 (unsigned long long)memory[d], (unsigned long long)ref.memory[d]);
    }
    // With a cutoff the result is exact if it is below the cutoff; otherwise it only says "not below".
    int64_t cutoff = ref.value - 2 + (int64_t)pick(r, 5);
    struct tfc_verdict cut = {0};
    tfc_simulate(sim, unit_device, use_rank ? rank : NULL, cutoff, &cut);
    assert_int_equal(cut.cut, ref.value >= cutoff);
    assert_int_equal(cut.value, ref.value >= cutoff ? TFC_TIME_MAX : ref.value);
    if (p->objective != TFC_OBJECTIVE_STEP) continue;
    // The timeline agrees with the value, its critical path is a chain from 0 to the end, and a simulation with its
    // order as priorities gives the same timeline.
    struct tfc_timeline t = {0};
    assert_ok(tfc_simulate_timeline(sim, unit_device, use_rank ? rank : NULL, &t));
    int64_t last = 0;
    for (uint32_t n = 0; n < nodes; n++)
      if (t.end[n] > last) last = t.end[n];
    assert_int_equal(last, ref.value);
    assert_int_equal(t.transfer_count, ref.transfers);
    int64_t at = 0;
    for (uint32_t k = 0; k < t.path_count; k++) {
      bool is_node = t.path[k] < nodes;
      int64_t begin = is_node ? t.start[t.path[k]] : t.transfers[t.path[k] - nodes].start;
      int64_t end = is_node ? t.end[t.path[k]] : t.transfers[t.path[k] - nodes].end;
      if (begin != at) fail_msg("case %llu: a gap on the critical path", (unsigned long long)number);
      at = end;
    }
    assert_int_equal(at, ref.value);
    for (uint32_t n = 0; n < nodes; n++) order[n] = t.sequence[n];
    assert_ok(tfc_rank_from_order(p, order, rank));
    struct tfc_verdict again = {0};
    tfc_simulate(sim, unit_device, rank, TFC_TIME_MAX, &again);
    assert_int_equal(again.value, ref.value);
    tfc_timeline_deinit(&t);
  }
  tfc_simulator_free(sim);
  free(unit_device), free(device), free(rank), free(order);
}

static void run_sizes(uint32_t count, uint32_t least_nodes, uint32_t most_nodes, uint32_t rich, tfc_objective objective,
                      uint64_t seed) {
  uint32_t legal = 0;
  count /= SHARE;
  for (uint64_t number = 0; number < count; number++) {
    struct tfc_random r;
    tfc_random_init(&r, seed * 1000003 + number);
    uint32_t devices = number % 50 == 7 ? 64 : 1 + (uint32_t)pick(&r, 5);
    uint32_t mask = rich == RICH_ALL && pick(&r, 3) ? (uint32_t)pick(&r, RICH_ALL + 1) : rich;
    if (objective == TFC_OBJECTIVE_THROUGHPUT) mask &= ~RICH_CALIBRATION | (uint32_t)pick(&r, 2) * RICH_CALIBRATION;
    struct instance i =
        random_instance(&r, least_nodes + (uint32_t)pick(&r, most_nodes - least_nodes + 1), devices, mask, objective);
    compare(&r, &i, mask, number, &legal);
    instance_free(&i);
  }
  assert_true(legal > count); // more than a third of all placements, three for each case, were legal
}

static void run_cases(uint32_t count, uint32_t rich, tfc_objective objective, uint64_t seed) {
  run_sizes(count, 1, 28, rich, objective, seed);
}

// Sets of ready operations have one level of words up to 64 operations, then two (three: delta_test).
static void test_step_large(void **state) {
  (void)state;
  run_sizes(60, 29, 160, 0, TFC_OBJECTIVE_STEP, 8);
  run_sizes(30, 29, 160, RICH_WIRES | RICH_GROUPS, TFC_OBJECTIVE_STEP, 9);
}
// Three levels, which the second simulator would need too long for: the value is the end of the timeline, which another
// way through the code records, and a simulation in the order of the timeline has the same value.
static void test_step_huge(void **state) {
  (void)state;
  static const uint32_t kinds[] = {0, RICH_WIRES, RICH_INBOX | RICH_CALIBRATION, RICH_INBOX};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    struct tfc_random r;
    tfc_random_init(&r, 77 + k);
    struct instance i = random_instance(&r, 4100, 4, kinds[k], TFC_OBJECTIVE_STEP);
    struct tfc_simulator *sim = NULL;
    tfc_device_id *device = calloc(i.problem->unit_count, sizeof *device);
    double *order = calloc(i.problem->node_count, sizeof *order);
    uint32_t *rank = calloc(i.problem->node_count, sizeof *rank);
    struct tfc_verdict v = {0}, again = {0};
    struct tfc_timeline t = {0};
    int64_t last = 0;
    random_devices(&r, i.problem, device);
    assert_ok(tfc_simulator_create(i.problem, &sim));
    tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
    assert_true(v.legal);
    assert_ok(tfc_simulate_timeline(sim, device, NULL, &t));
    for (uint32_t n = 0; n < i.problem->node_count; n++) {
      if (t.end[n] > last) last = t.end[n];
      order[n] = t.sequence[n];
    }
    assert_int_equal(v.value, last);
    assert_ok(tfc_rank_from_order(i.problem, order, rank));
    tfc_simulate(sim, device, rank, TFC_TIME_MAX, &again);
    assert_int_equal(again.value, last);
    tfc_timeline_deinit(&t);
    tfc_simulator_free(sim);
    free(device), free(order), free(rank);
    instance_free(&i);
  }
}
static void test_step_plain(void **state) {
  (void)state;
  run_cases(1500, 0, TFC_OBJECTIVE_STEP, 1);
}
static void test_step_wires(void **state) {
  (void)state;
  run_cases(1500, RICH_WIRES, TFC_OBJECTIVE_STEP, 2);
}
static void test_step_occupies(void **state) {
  (void)state;
  run_cases(1500, RICH_WIRES | RICH_OCCUPIES, TFC_OBJECTIVE_STEP, 3);
}
static void test_step_live(void **state) {
  (void)state;
  run_cases(1000, RICH_LIVE | RICH_WIRES | RICH_LIMITS, TFC_OBJECTIVE_STEP, 4);
}
static void test_step_calibrated(void **state) {
  (void)state;
  run_cases(1000, RICH_CALIBRATION | RICH_OCCUPIES, TFC_OBJECTIVE_STEP, 5);
}
static void test_step_inbox(void **state) {
  (void)state;
  run_cases(2000, RICH_INBOX | RICH_CALIBRATION, TFC_OBJECTIVE_STEP, 10);
  run_cases(2000, RICH_INBOX | RICH_CALIBRATION | RICH_KINDS | RICH_MISSING | RICH_ORDER | RICH_GROUPS,
            TFC_OBJECTIVE_STEP, 11);
  run_sizes(60, 29, 160, RICH_INBOX | RICH_CALIBRATION, TFC_OBJECTIVE_STEP, 12);
}
static void test_step_all(void **state) {
  (void)state;
  run_cases(4000, RICH_ALL, TFC_OBJECTIVE_STEP, 6);
}
static void test_throughput_all(void **state) {
  (void)state;
  run_cases(3000, RICH_ALL, TFC_OBJECTIVE_THROUGHPUT, 7);
}

// An illegal placement has no timeline; the error gives the reason.
static void test_no_timeline(void **state) {
  (void)state;
  struct tfc_random r;
  uint32_t refused = 0;
  tfc_random_init(&r, 8);
  for (int number = 0; number < 40; number++) {
    struct instance i = random_instance(&r, 12, 3, RICH_KINDS | RICH_PINS | RICH_MISSING, TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    struct tfc_simulator *sim = NULL;
    struct tfc_timeline timeline = {0};
    tfc_device_id device[16];
    bool may = true;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      device[u] = (tfc_device_id)pick(&r, 3);
      may = may && tfc_problem_allows(p, u, device[u]);
    }
    tfc_status legal = tfc_solution_check(p, device);
    assert_ok(tfc_simulator_create(p, &sim));
    tfc_status s = tfc_simulate_timeline(sim, device, NULL, &timeline);
    assert_int_equal(tfc_status_code(s), tfc_status_code(legal));
    if (s) assert_string_equal(tfc_status_message(s), tfc_status_message(legal));
    assert_true(may || s);
    refused += s != NULL;
    tfc_status_free(s), tfc_status_free(legal);
    tfc_timeline_deinit(&timeline);
    tfc_simulator_free(sim);
    instance_free(&i);
  }
  assert_true(refused > 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_step_huge),       cmocka_unit_test(test_step_plain),    cmocka_unit_test(test_step_large),
      cmocka_unit_test(test_step_wires),      cmocka_unit_test(test_step_occupies), cmocka_unit_test(test_step_live),
      cmocka_unit_test(test_step_calibrated), cmocka_unit_test(test_step_inbox),    cmocka_unit_test(test_step_all),
      cmocka_unit_test(test_throughput_all),  cmocka_unit_test(test_no_timeline),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
