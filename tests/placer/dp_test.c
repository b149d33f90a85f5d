// Tests dynamic programming over forward and backward passes: a unit that only the backward pass has belongs on the
// device of a layer whose gradient it computes.
#include "tests/common/test.h"

#include "placer/algo/order.h"
#include "tests/placer/instances.h"

#define LAYERS 14
#define DEVICES 3

// Each layer is a group of one forward and one backward node. Between two backward nodes there is a sum that is in no
// group.
static struct instance there_and_back(struct tfc_random *r) {
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  uint32_t acc, node;
  char name[32];
  uint64_t bytes[LAYERS];
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t l = 0; l < LAYERS; l++)
    bytes[l] = pick(r, 4) ? 50000 : 5000; // after a quarter of the layers, a cut is cheap
  for (uint32_t n = 0; n < 2 * LAYERS; n++) {
    const uint32_t l = n < LAYERS ? n : 2 * LAYERS - 1 - n;
    snprintf(name, sizeof name, "%s%u", n < LAYERS ? "there" : "back", l);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, (double)(1 + pick(r, 9))));
    snprintf(name, sizeof name, "layer%u", l);
    MUST(tfc_cost_builder_group(b, node, tfc_str_from(name)));
  }
  for (uint32_t l = 0; l + 1 < LAYERS; l++) { // node 2 * LAYERS + l: the sum before back l
    snprintf(name, sizeof name, "sum%u", l);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, 1));
    const uint32_t back = 2 * LAYERS - 1 - l;
    MUST(tfc_cost_builder_edge(b, l, 0, l + 1, bytes[l], TFC_LIVE_ABSENT));
    MUST(tfc_cost_builder_edge(b, back - 1, 0, node, bytes[l], TFC_LIVE_ABSENT));
    MUST(tfc_cost_builder_edge(b, node, 0, back, bytes[l], TFC_LIVE_ABSENT));
  }
  MUST(tfc_cost_builder_edge(b, LAYERS - 1, 0, LAYERS, 1000, TFC_LIVE_ABSENT));
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  struct tfc_link l = tfc_link_default();
  l.bandwidth = 1e9, l.occupies = TFC_OCCUPIES_BOTH;
  i.machine = even_machine(DEVICES, NULL, &l);
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_THROUGHPUT, &i.problem));
  return i;
}

// Returns the smallest possible load of the busiest device over all splits of the layers into three consecutive parts.
// The node "sum l" may be on the device of layer l or of layer l + 1, so at the two cuts both are tried.
static int64_t least_load(const struct tfc_problem *p, struct tfc_simulator *sim) {
  tfc_device_id device[2 * LAYERS];
  int64_t least = TFC_TIME_MAX;
  for (uint32_t first = 1; first <= LAYERS; first++)
    for (uint32_t second = first; second <= LAYERS; second++)
      for (uint32_t sums = 0; sums < 4; sums++) {
        for (uint32_t n = 0; n < p->node_count; n++) {
          const uint32_t layer = n < LAYERS ? n : n < 2 * LAYERS ? 2 * LAYERS - 1 - n : n - 2 * LAYERS;
          uint32_t at = layer;
          if (n >= 2 * LAYERS) at += layer + 1 == first ? sums & 1 : layer + 1 == second ? sums >> 1 : 0;
          device[p->unit[n]] = (tfc_device_id)((at >= first) + (at >= second));
        }
        struct tfc_verdict v = {0};
        tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
        if (v.value < least) least = v.value;
      }
  return least;
}

static void test_there_and_back(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 40; number++) {
    struct tfc_random r;
    struct tfc_evaluator *evaluator = NULL;
    struct tfc_simulator *sim = NULL;
    struct tfc_solution solution = {0};
    struct tfc_verdict v = {0};
    uint64_t evaluations = 0;
    tfc_random_init(&r, 500 + number);
    struct instance i = there_and_back(&r);
    assert_ok(tfc_evaluator_simulated(i.problem, 1, &evaluator));
    assert_ok(tfc_simulator_create(i.problem, &sim));
    assert_ok(tfc_solution_init(&solution, i.problem));
    assert_ok(tfc_algo_find(TFC_STR("dp"))
                  ->propose(i.problem, evaluator, &(struct tfc_budget){.threads = 1}, &solution, &evaluations));
    tfc_simulate(sim, solution.device, solution.rank, TFC_TIME_MAX, &v);
    const int64_t least = least_load(i.problem, sim);
    if (v.value > least)
      fail_msg("case %llu: %lld, a split of the layers %lld", (unsigned long long)number, (long long)v.value,
               (long long)least);
    tfc_solution_deinit(&solution);
    tfc_simulator_free(sim);
    tfc_evaluator_free(evaluator);
    instance_free(&i);
  }
}

// Whether each device's part can run as one piece: no path leads from a device over others back to it.
static bool is_split(const struct tfc_problem *p, const tfc_device_id *device) {
  uint32_t to[8] = {0}; // for each device, a set of bits: the devices that it sends to
  for (uint32_t i = 0; i < p->net_count; i++) {
    const uint32_t from = device[p->unit[p->graph->producer[p->net_tensor[i]]]];
    for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++)
      if (device[p->net_unit[j]] != from) to[from] |= 1u << device[p->net_unit[j]];
  }
  for (uint32_t left = (1u << p->device_count) - 1, before = 0; left; before = left) {
    for (uint32_t d = 0; d < p->device_count; d++)
      if (!(to[d] & left)) left &= ~(1u << d);
    if (left && left == before) return false;
  }
  return true;
}

// Small random problems: links differ by pair, occupy the sender or the receiver, or are missing; there are kinds, pins
// and limits. Dynamic programming finds the best of all splits, whatever the seed.
static void test_all_splits(void **state) {
  (void)state;
  uint32_t possible = 0, impossible = 0, uneven = 0;
  for (uint64_t number = 0; number < 1500; number++) {
    struct tfc_random r;
    struct tfc_simulator *sim = NULL;
    tfc_device_id device[8] = {0};
    int64_t best = TFC_TIME_MAX;
    tfc_random_init(&r, 7000 + number);
    const uint32_t rich = (uint32_t)pick(&r, RICH_ALL + 1) & ~(RICH_GROUPS | RICH_LIVE);
    const uint32_t devices = 1 + (uint32_t)pick(&r, 4), nodes = 1 + (uint32_t)pick(&r, devices == 4 ? 6 : 7);
    struct instance i = random_instance(&r, nodes, devices, rich, TFC_OBJECTIVE_THROUGHPUT);
    const struct tfc_problem *p = i.problem;
    assert_ok(tfc_simulator_create(p, &sim));
    for (bool more = true; more;) {
      bool may = is_split(p, device);
      for (uint32_t u = 0; u < p->unit_count; u++) may &= tfc_problem_allows(p, u, device[u]);
      struct tfc_verdict v = {0};
      if (may) tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
      if (may && v.legal && v.feasible && v.value < best) best = v.value;
      uint32_t u = 0;
      while (u < p->unit_count && ++device[u] == p->device_count) device[u++] = 0;
      more = u < p->unit_count;
    }
    for (uint64_t seed = 0; seed < 3; seed++) {
      struct tfc_solution solution = {0};
      struct tfc_verdict v = {0};
      uint64_t evaluations = 0;
      assert_ok(tfc_solution_init(&solution, p));
      tfc_status s = tfc_algo_find(TFC_STR("dp"))
                         ->propose(p, NULL, &(struct tfc_budget){.seed = seed, .threads = 1}, &solution, &evaluations);
      if (best == TFC_TIME_MAX) {
        if (tfc_status_code(s) != TFC_FAILED_PRECONDITION) {
          tfc_simulate(sim, solution.device, NULL, TFC_TIME_MAX, &v);
          fail_msg("case %llu, seed %llu: a split where there is none, %s, %llu bytes missing",
                   (unsigned long long)number, (unsigned long long)seed, v.legal ? "legal" : "not legal",
                   (unsigned long long)v.excess);
        }
        tfc_status_free(s);
      } else {
        if (s) fail_msg("case %llu: %s", (unsigned long long)number, tfc_status_message(s));
        tfc_simulate(sim, solution.device, NULL, TFC_TIME_MAX, &v);
        if (!v.legal || !v.feasible || v.value != best)
          fail_msg("case %llu, seed %llu: %lld (%s), the best split %lld", (unsigned long long)number,
                   (unsigned long long)seed, (long long)v.value, v.feasible ? "fits" : "does not fit", (long long)best);
      }
      tfc_solution_deinit(&solution);
    }
    possible += best != TFC_TIME_MAX, impossible += best == TFC_TIME_MAX;
    uneven += best != TFC_TIME_MAX && (p->has_missing_links || p->speed_count > 1);
    tfc_simulator_free(sim);
    instance_free(&i);
  }
  print_message("%u cases with a split, %u of them with links that differ; %u without\n", possible, uneven, impossible);
  assert_true(possible > 800 && uneven > 150 && impossible > 15);
}

// Problems so wide that only the prefixes of one order are tried: all ways to cut that order are compared.
static void test_prefixes(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 60; number++) {
    struct tfc_random r;
    struct tfc_simulator *sim = NULL;
    struct tfc_solution solution = {0};
    struct tfc_verdict v = {0};
    uint64_t evaluations = 0;
    uint32_t order[128];
    tfc_device_id device[128];
    int64_t best = TFC_TIME_MAX;
    tfc_random_init(&r, 9000 + number);
    struct instance i = random_instance(&r, 60 + (uint32_t)pick(&r, 40), 3, 0, TFC_OBJECTIVE_THROUGHPUT);
    const struct tfc_problem *p = i.problem;
    assert_true(p->unit_count <= 128);
    assert_ok(tfc_simulator_create(p, &sim));
    assert_ok(tfc_order_units(p, false, order));
    for (uint32_t first = 0; first <= p->unit_count; first++)
      for (uint32_t second = first; second <= p->unit_count; second++) {
        for (uint32_t k = 0; k < p->unit_count; k++) device[order[k]] = (tfc_device_id)((k >= first) + (k >= second));
        tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
        if (v.value < best) best = v.value;
      }
    assert_ok(tfc_solution_init(&solution, p));
    assert_ok(
        tfc_algo_find(TFC_STR("dp"))->propose(p, NULL, &(struct tfc_budget){.threads = 1}, &solution, &evaluations));
    tfc_simulate(sim, solution.device, NULL, TFC_TIME_MAX, &v);
    if (v.value != best)
      fail_msg("case %llu: %lld, the best way to cut the order %lld", (unsigned long long)number, (long long)v.value,
               (long long)best);
    tfc_solution_deinit(&solution);
    tfc_simulator_free(sim);
    instance_free(&i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_all_splits),
                                     cmocka_unit_test(test_prefixes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
