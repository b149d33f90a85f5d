// Tests that a search does not divide clusters with few edges between them, on devices whose memory is full or nearly
// full.
#include "tests/common/test.h"

#include "placer/search/communities.h"
#include "tests/placer/instances.h"

// Makes clusters of unequal sizes, several for each device. A cluster has many edges inside and one small edge to
// another cluster. All devices have the same work, and memory for their clusters and `slack` more.
static struct instance clusters(struct tfc_random *r, double slack, bool uneven, tfc_objective objective,
                                tfc_device_id **home) {
  enum { MOST = 4 * 3 * 30 };
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  uint32_t acc, node, nodes = 0, first[12], size[12], count = 0;
  const uint32_t devices = 2 + (uint32_t)pick(r, 3);
  double weight[MOST], work[4] = {0};
  uint64_t room[4] = {0};
  uint32_t at[MOST];
  char name[32];
  *home = malloc(sizeof **home * MOST);
  for (uint32_t d = 0; d < devices; d++)
    for (uint32_t k = 1 + (uint32_t)pick(r, 3); k; k--, count++) {
      first[count] = nodes, size[count] = 6 + (uint32_t)pick(r, 25);
      for (uint32_t n = 0; n < size[count]; n++, nodes++) {
        (*home)[nodes] = (tfc_device_id)d; // index: the position in this list; positions get random node numbers below
        work[d] += weight[nodes] = 0.1 + tfc_random_unit(r);
        at[nodes] = nodes;
      }
    }
  for (uint32_t n = nodes; n > 1; n--) {
    const uint32_t m = (uint32_t)pick(r, n), x = at[n - 1];
    at[n - 1] = at[m], at[m] = x;
  }
  tfc_device_id *of = malloc(sizeof *of * MOST);
  double time[MOST];
  for (uint32_t n = 0; n < nodes; n++) of[at[n]] = (*home)[n], time[at[n]] = 10000 * weight[n] / work[(*home)[n]];
  free(*home);
  *home = of;
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t n = 0; n < nodes; n++) {
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, time[n]));
    const uint64_t bytes = 20 + pick(r, 980);
    tfc_cost_builder_memory(b, node, bytes);
    room[of[n]] += bytes;
  }
  for (uint32_t c = 0; c < count; c++) {
    for (uint32_t n = 0; n < size[c]; n++) {
      const uint64_t bytes = uneven ? 4000000 + pick(r, 20000000) : 12000000;
      for (uint32_t k = 1; k <= 3 && n + k < size[c]; k++) // a node's consumers
        MUST(tfc_cost_builder_edge(b, at[first[c] + n], 0,
                                   at[first[c] + n + (k == 3 ? pick(r, size[c] - n - 1) + 1 : k)], bytes,
                                   TFC_LIVE_ABSENT));
    }
    if (c + 1 < count) // an edge that rarely delays its consumer
      MUST(tfc_cost_builder_edge(b, at[first[c]], 1, at[first[c + 1] + size[c + 1] - 1], uneven ? pick(r, 300000) : 0,
                                 TFC_LIVE_ABSENT));
  }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  for (uint32_t d = 0; d < devices; d++) room[d] = (uint64_t)((double)room[d] * (1 + slack));
  struct tfc_link l = tfc_link_default();
  l.latency_us = 10, l.bandwidth = 12e9, l.occupies = TFC_OCCUPIES_BOTH;
  i.machine = even_machine(devices, room, &l);
  MUST(tfc_problem_create(i.graph, i.machine, objective, &i.problem));
  return i;
}

static void test_clusters(void **state) {
  (void)state;
  uint32_t found = 0;
  double worst = 0;
#ifdef TFC_SANITIZED
  enum { STRIDE = 4 };
#else
  enum { STRIDE = 1 };
#endif
  for (uint64_t number = 0; number < 12; number += STRIDE) {
    struct tfc_random r;
    struct tfc_simulator *sim = NULL;
    struct tfc_search_outcome out = {0};
    struct tfc_verdict v = {0};
    tfc_device_id *home;
    tfc_random_init(&r, 3100 + number);
    struct instance i =
        clusters(&r, (double)(number % 3) * 0.02, number / 3 % 2, (tfc_objective)(number / 6 % 2), &home);
    assert_ok(tfc_simulator_create(i.problem, &sim));
    tfc_simulate(sim, home, NULL, TFC_TIME_MAX, &v);
    assert_true(v.legal && v.feasible);
    struct tfc_search_options options = {
        .evaluations = i.problem->objective == TFC_OBJECTIVE_STEP ? 20000 : 500000, .seed = number, .threads = 4};
    assert_ok(tfc_search(i.problem, &options, &out));
    const double ratio = (double)out.value / (double)v.value;
    assert_true(out.excess == 0);
    if (ratio > 1.02) print_message("case %llu: %.4f of the planted one\n", (unsigned long long)number, ratio);
    found += ratio <= 1.02;
    if (ratio > worst) worst = ratio;
    tfc_search_outcome_deinit(&out);
    tfc_simulator_free(sim);
    instance_free(&i);
    free(home);
  }
  print_message("%u of %d as good as planted, within 2 %%; at worst %.4f\n", found, 12 / STRIDE, worst);
  assert_true(found >= 12 / STRIDE - 1 && worst < 1.15);
}

// Three sets of eight units with an edge between every two of a set, and one edge between two sets. With `pinned`, half
// of the first set may only be on one device and the other half only on the other.
static void check_sets(bool pinned) {
  enum { SETS = 3, SIZE = 8, UNITS = SETS * SIZE };
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  struct tfc_random r;
  uint32_t acc, node, of[UNITS], count = 0;
  char name[32];
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t n = 0; n < UNITS; n++) {
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, 1));
    tfc_cost_builder_memory(b, node, 1);
    if (pinned && n < SIZE) MUST(tfc_cost_builder_pin(b, node, n % 2 ? TFC_STR("x:1") : TFC_STR("x:0")));
  }
  for (uint32_t n = 0; n < UNITS; n++)
    for (uint32_t m = n + 1; m < UNITS; m++)
      if (m / SIZE == n / SIZE || (m == n + 1)) MUST(tfc_cost_builder_edge(b, n, 0, m, 1000, TFC_LIVE_ABSENT));
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  MUST(tfc_machine_create(&i.machine));
  for (uint32_t d = 0; d < 2; d++)
    MUST(tfc_machine_add_device(i.machine, &(struct tfc_machine_device){.name = d ? TFC_STR("x:1") : TFC_STR("x:0"),
                                                                        .kind = TFC_STR("acc"),
                                                                        .memory = 2 * SIZE,
                                                                        .label = TFC_LABEL_MODELLED}));
  struct tfc_link l = tfc_link_default();
  l.bandwidth = 1e9;
  MUST(tfc_machine_add_link(i.machine, &l));
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_THROUGHPUT, &i.problem));
  assert_true(tfc_communities_tight(i.problem));
  for (uint64_t seed = 0; seed < 20; seed++) {
    tfc_random_init(&r, seed);
    const struct tfc_community_options options = {.resolution = 1, .power = 1, .fan = 0.5};
    count = tfc_communities_find(i.problem, &r, &options, of);
    assert_true(pinned ? count >= SETS + 1 : count == SETS);
    for (uint32_t n = 0; n < UNITS; n++) {
      assert_true(of[n] < count);
      for (uint32_t m = 0; m < n; m++) {
        if (!pinned) assert_true((of[n] == of[m]) == (n / SIZE == m / SIZE));
        if (pinned && of[n] == of[m]) assert_true(i.problem->unit_pin[n] == i.problem->unit_pin[m]);
      }
    }
  }
  tfc_device_id device[UNITS];
  for (uint32_t n = 0; n < UNITS; n++) device[n] = n / SIZE == 1; // the second of the three sets is on the other device
  assert_int_equal(tfc_communities_pieces(i.problem, NULL, of), 1);
  assert_int_equal(tfc_communities_pieces(i.problem, device, of), 3);
  for (uint32_t n = 0; n < UNITS; n++) assert_int_equal(of[n], n / SIZE);
  instance_free(&i);
}
static void test_communities(void **state) {
  (void)state;
  check_sets(false);
  check_sets(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_communities), cmocka_unit_test(test_clusters)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
