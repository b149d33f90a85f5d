// Dynamic programming on a way there and back: units of the way back alone belong beside the layers that they serve.
#include "tests/common/test.h"

#include "tests/placer/instances.h"

#define LAYERS 14
#define DEVICES 3

// Layers of a forward and a backward node in one group; between two backward nodes a sum in no group.
static struct instance there_and_back(struct tfc_random *r) {
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  uint32_t acc, node;
  char name[32];
  uint64_t bytes[LAYERS];
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t l = 0; l < LAYERS; l++) bytes[l] = pick(r, 4) ? 50000 : 5000; // few places are cheap to cut
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
  MUST(tfc_machine_create(&i.machine));
  for (uint32_t d = 0; d < DEVICES; d++) {
    snprintf(name, sizeof name, "acc:%u", d);
    MUST(tfc_machine_add_device(i.machine, &(struct tfc_machine_device){.name = tfc_str_from(name),
                                                                        .kind = TFC_STR("acc"),
                                                                        .memory = TFC_NO_LIMIT,
                                                                        .label = TFC_LABEL_MODELLED}));
  }
  struct tfc_link l = tfc_link_default();
  l.bandwidth = 1e9, l.occupies = TFC_OCCUPIES_BOTH;
  MUST(tfc_machine_add_link(i.machine, &l));
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_THROUGHPUT, &i.problem));
  return i;
}

// The least load of all splits of the layers, each sum with one of its two layers.
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_there_and_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
