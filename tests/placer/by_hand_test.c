// Tests small problems whose answers were worked out by hand: each kind of lower bound, placements with an order,
// patterns of pins. Then tests properties of clusters, ranks and annealing, which searches use.
#include "tests/common/test.h"

#include <string.h>

#include "placer/exact/border.h"
#include "placer/exact/bound.h"
#include "placer/model/placement.h"
#include "placer/model/placement_json.h"
#include "placer/search/anneal.h"
#include "placer/search/local.h"
#include "tests/placer/instances.h"
#include "tests/placer/links.h"

#define US INT64_C(1000000) // ps in a microsecond

// a problem whose nodes are "a", "b", ...; times on devices of kind "acc" and "cpu" are in us, < 0: cannot run there
struct drawn {
  uint32_t nodes;
  double acc[8], cpu[8];
  uint64_t memory[8];
  const char *pin[8];
  uint32_t edges;
  struct {
    uint32_t from, to;
    uint64_t bytes;
  } edge[12];
};

static struct tfc_cost_graph *graph_of(const struct drawn *x) {
  struct tfc_cost_builder *b = NULL;
  struct tfc_cost_graph *g = NULL;
  uint32_t acc, cpu, node;
  assert_ok(tfc_cost_builder_create(&b));
  assert_ok(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  assert_ok(tfc_cost_builder_kind(b, TFC_STR("cpu"), &cpu));
  for (uint32_t n = 0; n < x->nodes; n++) {
    char name[2] = {(char)('a' + n), 0};
    assert_ok(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    if (x->acc[n] >= 0) assert_ok(tfc_cost_builder_time(b, node, acc, x->acc[n]));
    if (x->cpu[n] > 0) assert_ok(tfc_cost_builder_time(b, node, cpu, x->cpu[n]));
    tfc_cost_builder_memory(b, node, x->memory[n]);
    if (x->pin[n]) assert_ok(tfc_cost_builder_pin(b, node, tfc_str_from(x->pin[n])));
  }
  for (uint32_t e = 0; e < x->edges; e++)
    assert_ok(tfc_cost_builder_edge(b, x->edge[e].from, (int32_t)e, x->edge[e].to, x->edge[e].bytes, TFC_LIVE_ABSENT));
  assert_ok(tfc_cost_builder_finish(b, &g));
  tfc_cost_builder_free(b);
  return g;
}

// Makes two devices "acc:0", "acc:1"; a transfer takes 7 us and 1 us for each 1000 bytes, and occupies its receiver.
static struct tfc_machine *two_devices(uint64_t memory) {
  struct tfc_link link = tfc_link_default();
  link.latency_us = 7, link.bandwidth = 1e9, link.occupies = TFC_OCCUPIES_RECEIVER;
  return even_machine(2, (uint64_t[]){memory, memory}, &link);
}

static struct tfc_bound bound_of(const struct drawn *x, struct tfc_machine *m, tfc_objective objective, bool program) {
  struct instance i = {.graph = graph_of(x), .machine = m};
  struct tfc_bound bound;
  struct tfc_budget budget = {.deadline = tfc_now_s() + 20, .threads = 1};
  assert_ok(tfc_problem_create(i.graph, i.machine, objective, &i.problem));
  assert_ok(tfc_bound_compute(i.problem, program ? &budget : NULL, &bound));
  instance_free(&i);
  return bound;
}

// The bound is a little below the sum of doubles from which it is computed, so its last millionth is not compared.
static void assert_just_below(int64_t bound, int64_t truth) {
  if (bound > truth || bound < truth - truth / 1000000 - 2)
    fail_msg("the bound is %lld, %lld by hand", (long long)bound, (long long)truth);
}

static void test_path_and_work(void **state) {
  (void)state;
  const struct drawn chain = {.nodes = 3, .acc = {3, 5, 2}, .edges = 2, .edge = {{0, 1, 0}, {1, 2, 0}}};
  struct tfc_bound b = bound_of(&chain, two_devices(TFC_NO_LIMIT), TFC_OBJECTIVE_STEP, false);
  assert_int_equal(b.each[TFC_BOUND_PATH], 10 * US);
  assert_int_equal(b.each[TFC_BOUND_WORK], 5 * US);
  assert_int_equal(b.value, 10 * US);
  // For throughput only the load of devices counts: the bound is half of the work, or the longest operation.
  b = bound_of(&chain, two_devices(TFC_NO_LIMIT), TFC_OBJECTIVE_THROUGHPUT, false);
  assert_int_equal(b.each[TFC_BOUND_PATH], 0);
  assert_int_equal(b.value, 5 * US);
  assert_int_equal(b.kind, TFC_BOUND_WORK);
  const struct drawn uneven = {.nodes = 3, .acc = {1, 7, 2}};
  b = bound_of(&uneven, two_devices(TFC_NO_LIMIT), TFC_OBJECTIVE_THROUGHPUT, false);
  assert_int_equal(b.value, 7 * US);
  // Three operations of 2 us on two devices: each device has 3 us of work on average, but one needs 4 us, because an
  // operation cannot be divided.
  const struct drawn three = {.nodes = 3, .acc = {2, 2, 2}};
  b = bound_of(&three, two_devices(TFC_NO_LIMIT), TFC_OBJECTIVE_STEP, true);
  assert_int_equal(b.each[TFC_BOUND_PATH], 2 * US);
  assert_int_equal(b.each[TFC_BOUND_WORK], 3 * US);
  if (b.each[TFC_BOUND_ILP] > 4 * US || b.each[TFC_BOUND_ILP] < 399 * US / 100)
    fail_msg("%lld ps, 4 us by hand", (long long)b.each[TFC_BOUND_ILP]);
  assert_int_equal(b.each[TFC_BOUND_CROWDING], 4 * US);
  assert_int_equal(b.kind, b.each[TFC_BOUND_ILP] == 4 * US ? TFC_BOUND_ILP : TFC_BOUND_CROWDING);
}

// Two kinds of devices: four operations take 1 us on one kind and 3 us on the other, so three of them belong on the
// fast device. Pinned operations stay where they are pinned.
static void test_work_of_unlike_devices(void **state) {
  (void)state;
  struct tfc_machine *m = NULL;
  struct tfc_link link = tfc_link_default();
  assert_ok(tfc_machine_create(&m));
  static const char *const names[] = {"acc:0", "cpu:0"};
  for (int d = 0; d < 2; d++)
    assert_ok(tfc_machine_add_device(m, &(struct tfc_machine_device){.name = tfc_str_from(names[d]),
                                                                     .kind = tfc_str_sub(tfc_str_from(names[d]), 0, 3),
                                                                     .memory = TFC_NO_LIMIT,
                                                                     .label = TFC_LABEL_MODELLED}));
  assert_ok(tfc_machine_add_link(m, &link));
  const struct drawn four = {.nodes = 4, .acc = {1, 1, 1, 1}, .cpu = {3, 3, 3, 3}};
  struct tfc_bound b = bound_of(&four, m, TFC_OBJECTIVE_THROUGHPUT, false);
  if (b.value > 3 * US || b.value < 297 * US / 100) fail_msg("%lld ps, 3 us by hand", (long long)b.value);
  const struct drawn pinned = {.nodes = 3, .acc = {10, 10, 1}, .pin = {"acc:1", "acc:1"}};
  b = bound_of(&pinned, two_devices(TFC_NO_LIMIT), TFC_OBJECTIVE_THROUGHPUT, false);
  if (b.value > 20 * US || b.value < 198 * US / 10) fail_msg("%lld ps, 20 us by hand", (long long)b.value);
}

static struct tfc_machine *unlike_devices(const char *const *names, uint32_t count, tfc_occupies occupies) {
  struct tfc_machine *m = NULL;
  struct tfc_link link = tfc_link_default();
  link.bandwidth = 1e9, link.occupies = occupies;
  assert_ok(tfc_machine_create(&m));
  for (uint32_t d = 0; d < count; d++)
    assert_ok(tfc_machine_add_device(m, &(struct tfc_machine_device){.name = tfc_str_from(names[d]),
                                                                     .kind = tfc_str_sub(tfc_str_from(names[d]), 0, 3),
                                                                     .memory = TFC_NO_LIMIT,
                                                                     .label = TFC_LABEL_MODELLED}));
  assert_ok(tfc_machine_add_link(m, &link));
  return m;
}
static const char *const unlike[] = {"acc:0", "acc:1", "cpu:0"};

// What follows from the fact that an operation is on one device as a whole.
static void test_crowding(void **state) {
  (void)state;
  // five equal operations on two devices: three are together
  const struct drawn five = {.nodes = 5, .acc = {3, 3, 3, 3, 3}, .cpu = {10, 10, 10, 10, 10}};
  struct tfc_bound b = bound_of(&five, two_devices(TFC_NO_LIMIT), TFC_OBJECTIVE_THROUGHPUT, false);
  assert_int_equal(b.each[TFC_BOUND_CROWDING], 9 * US);
  assert_int_equal(b.kind, TFC_BOUND_CROWDING);
  b = bound_of(&five, two_devices(TFC_NO_LIMIT), TFC_OBJECTIVE_STEP, false);
  assert_int_equal(b.each[TFC_BOUND_CROWDING], 9 * US);
  // a third device takes 10 us for one of them, so it does not help
  b = bound_of(&five, unlike_devices(unlike, 3, TFC_OCCUPIES_NONE), TFC_OBJECTIVE_THROUGHPUT, false);
  assert_int_equal(b.each[TFC_BOUND_CROWDING], 9 * US);
  // one that takes 8 us helps: two and two, and one there
  const struct drawn eight = {.nodes = 5, .acc = {3, 3, 3, 3, 3}, .cpu = {8, 8, 8, 8, 8}};
  b = bound_of(&eight, unlike_devices(unlike, 3, TFC_OCCUPIES_NONE), TFC_OBJECTIVE_THROUGHPUT, false);
  assert_int_equal(b.each[TFC_BOUND_CROWDING], 8 * US);
  // of operations of 9, 5, 4, 4 and 2 us, two of the first three are on one of two devices (5 + 4), or three of all
  // five (4 + 4 + 2 = 10)
  const struct drawn mixed = {.nodes = 5, .acc = {4, 9, 2, 5, 4}};
  b = bound_of(&mixed, two_devices(TFC_NO_LIMIT), TFC_OBJECTIVE_THROUGHPUT, false);
  assert_int_equal(b.each[TFC_BOUND_CROWDING], 10 * US);
  // on one device all are together
  b = bound_of(&mixed, unlike_devices(unlike, 1, TFC_OCCUPIES_NONE), TFC_OBJECTIVE_THROUGHPUT, false);
  assert_int_equal(b.each[TFC_BOUND_CROWDING], 24 * US);
}

// What the borders of parts cost.
static void test_borders(void **state) {
  (void)state;
  // A chain of six operations of 10 us, tensors of 8 us, three devices: an end of two pays for one tensor and has 28
  // us, a middle of two pays for two and has 36 us. Is anything below 36 us? Then the third and the fourth operation
  // are alone, and each pays 16 us; the other two on each side may be together, for 8 us: 60 + 4 * 4 + 2 * 16 = 108 us
  // on three devices are not below 36 us either.
  const struct drawn chain = {.nodes = 6,
                              .acc = {10, 10, 10, 10, 10, 10},
                              .edges = 5,
                              .edge = {{0, 1, 8000}, {1, 2, 8000}, {2, 3, 8000}, {3, 4, 8000}, {4, 5, 8000}}};
  static const char *const three[] = {"acc:0", "acc:1", "acc:2"};
  struct instance i = {.graph = graph_of(&chain), .machine = unlike_devices(three, 3, TFC_OCCUPIES_BOTH)};
  assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_THROUGHPUT, &i.problem));
  const struct tfc_border_limits none = {0};
  assert_just_below(tfc_border_bound(i.problem, 36 * US, &none), 36 * US);
  // nothing is computed
  assert_int_equal(tfc_border_bound(i.problem, 36 * US, &(struct tfc_border_limits){.deadline = 1}), 0);
  assert_int_equal(tfc_border_bound(i.problem, TFC_TIME_MAX, &none), 0);
  instance_free(&i);
  // if receivers do not pay, a device may have its part for nothing
  i = (struct instance){.graph = graph_of(&chain), .machine = unlike_devices(three, 3, TFC_OCCUPIES_SENDER)};
  assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_THROUGHPUT, &i.problem));
  assert_int_equal(tfc_border_bound(i.problem, 36 * US, &none), 0);
  instance_free(&i);
}

// What follows from transfers that both ends pay for.
static void test_severing(void **state) {
  (void)state;
  // a chain of four operations of 10 us, tensors of 8 us: cut once, each half has 20 us and pays 8 us
  const struct drawn chain = {.nodes = 4,
                              .acc = {10, 10, 10, 10},
                              .cpu = {20, 20, 20, 20},
                              .edges = 3,
                              .edge = {{0, 1, 8000}, {1, 2, 8000}, {2, 3, 8000}}};
  const tfc_objective load = TFC_OBJECTIVE_THROUGHPUT;
  struct tfc_bound b = bound_of(&chain, unlike_devices(unlike, 2, TFC_OCCUPIES_BOTH), load, false);
  assert_just_below(b.each[TFC_BOUND_SEVERING], 28 * US);
  assert_int_equal(b.kind, TFC_BOUND_SEVERING);
  // a third device takes over half of what it could do of the work, 10 us in 20: (40 + 2 * 8) / 2.5
  b = bound_of(&chain, unlike_devices(unlike, 3, TFC_OCCUPIES_BOTH), load, false);
  assert_just_below(b.each[TFC_BOUND_SEVERING], 224 * US / 10);
  // one end pays nothing, or a step is not a load
  b = bound_of(&chain, unlike_devices(unlike, 2, TFC_OCCUPIES_RECEIVER), load, false);
  assert_int_equal(b.each[TFC_BOUND_SEVERING], 0);
  b = bound_of(&chain, unlike_devices(unlike, 2, TFC_OCCUPIES_SENDER), load, false);
  assert_int_equal(b.each[TFC_BOUND_SEVERING], 0);
  b = bound_of(&chain, unlike_devices(unlike, 2, TFC_OCCUPIES_BOTH), TFC_OBJECTIVE_STEP, false);
  assert_int_equal(b.each[TFC_BOUND_SEVERING], 0);
  // the last operation, of 2 us, may be cut off for 1 us; but then one of the devices still has 30 us
  const struct drawn loose = {
      .nodes = 4, .acc = {10, 10, 10, 2}, .edges = 3, .edge = {{0, 1, 8000}, {1, 2, 8000}, {2, 3, 1000}}};
  b = bound_of(&loose, unlike_devices(unlike, 2, TFC_OCCUPIES_BOTH), load, false);
  assert_just_below(b.each[TFC_BOUND_SEVERING], 24 * US); // (32 + 2 * 8) / 2
  // dear tensors hold three operations together: one device has all of them, 30 us
  const struct drawn held = {
      .nodes = 4, .acc = {10, 10, 10, 2}, .edges = 3, .edge = {{0, 1, 90000}, {1, 2, 90000}, {2, 3, 1000}}};
  b = bound_of(&held, unlike_devices(unlike, 2, TFC_OCCUPIES_BOTH), load, false);
  assert_just_below(b.each[TFC_BOUND_SEVERING], 30 * US);
}

// An operation of 4 us, then three of 6 us that do not depend on each other, then one of 4 us: on two devices the three
// take at least 9 us.
static void test_window(void **state) {
  (void)state;
  const struct drawn x = {.nodes = 5,
                          .acc = {4, 6, 6, 6, 4},
                          .edges = 6,
                          .edge = {{0, 1, 0}, {0, 2, 0}, {0, 3, 0}, {1, 4, 0}, {2, 4, 0}, {3, 4, 0}}};
  struct tfc_bound b = bound_of(&x, two_devices(TFC_NO_LIMIT), TFC_OBJECTIVE_STEP, false);
  assert_int_equal(b.each[TFC_BOUND_PATH], 14 * US);
  assert_int_equal(b.each[TFC_BOUND_WORK], 13 * US);
  assert_just_below(b.each[TFC_BOUND_WINDOW], 17 * US);
  assert_int_equal(b.kind, TFC_BOUND_WINDOW);
}

// A chain that fits on no device is cut where that costs least; a chain that fits on a device to the last byte is not
// cut.
static void test_memory(void **state) {
  (void)state;
  const struct drawn two = {.nodes = 2, .acc = {5, 5}, .memory = {60, 60}, .edges = 1, .edge = {{0, 1, 0}}};
  struct tfc_bound b = bound_of(&two, two_devices(119), TFC_OBJECTIVE_STEP, false);
  assert_int_equal(b.each[TFC_BOUND_MEMORY], 17 * US);
  assert_int_equal(b.value, 17 * US);
  assert_int_equal(bound_of(&two, two_devices(120), TFC_OBJECTIVE_STEP, false).each[TFC_BOUND_MEMORY], 0);
  assert_int_equal(bound_of(&two, two_devices(120), TFC_OBJECTIVE_STEP, false).value, 10 * US);
  const struct drawn chain = {
      .nodes = 3, .acc = {5, 5, 5}, .memory = {60, 60, 60}, .edges = 2, .edge = {{0, 1, 3000}, {1, 2, 1000}}};
  // cut after b: the operations take 15 us, the tensor of b takes 8 us
  b = bound_of(&chain, two_devices(130), TFC_OBJECTIVE_STEP, false);
  assert_int_equal(b.each[TFC_BOUND_MEMORY], 23 * US);
  b = bound_of(&chain, two_devices(130), TFC_OBJECTIVE_THROUGHPUT, false); // the receiver is occupied for 8 us
  assert_int_equal(b.each[TFC_BOUND_MEMORY], 8 * US);
  assert_int_equal(bound_of(&chain, two_devices(180), TFC_OBJECTIVE_STEP, false).each[TFC_BOUND_MEMORY], 0);
}

// --- Placement files and pins ----------------------------------------------------------------------------------------

// Five operations of equal length without edges run in the order that the file gives.
static void test_order_of_a_file(void **state) {
  (void)state;
  static const char text[] =
      "{\"format\": \"tfc-placement\", \"version\": 1, \"objective\": \"step\", \"placement\": {\"a\": \"acc:0\","
      " \"b\": \"acc:0\", \"c\": \"acc:0\", \"d\": \"acc:0\", \"e\": \"acc:1\"},"
      " \"order\": {\"a\": 4, \"b\": 2, \"c\": 3, \"d\": 1, \"e\": 0}}";
  const struct drawn x = {.nodes = 5, .acc = {1, 1, 1, 1, 1}};
  struct instance i = {.graph = graph_of(&x), .machine = two_devices(TFC_NO_LIMIT)};
  struct tfc_placement *file = NULL;
  struct tfc_solution solution = {0};
  assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  assert_ok(tfc_placement_parse(tfc_str_from(text), "p.json", &file));
  assert_ok(tfc_placement_resolve(file, i.problem, &solution));
  assert_non_null(solution.rank);
  static const uint32_t rank[] = {4, 2, 3, 1, 0};
  for (uint32_t n = 0; n < 5; n++) assert_int_equal(solution.rank[n], rank[n]);
  static const tfc_device_id device[] = {0, 0, 0, 0, 1};
  for (uint32_t n = 0; n < 5; n++) assert_int_equal(solution.device[i.problem->unit[n]], device[n]);
  tfc_solution_deinit(&solution);
  tfc_placement_free(file);
  instance_free(&i);
}

static void test_pins_match_whole_names(void **state) {
  (void)state;
  static const char *const names[] = {"cell1", "cell10", "a/cell1", "cell1/b", "cell2"};
  static const struct {
    const char *pattern, *pinned; // `pinned`: for each name, 'x' if the pattern matches it
  } cases[] = {{"cell1", "x...."},     {"cell.*", "xx.xx"}, {"cell1|cell2", "x...x"}, {".*cell1", "x.x.."},
               {"cell(1|2)", "x...x"}, {"cell1.", ".x..."}, {"cell[0-9]+", "xx..x"}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    struct tfc_cost_builder *b = NULL;
    struct tfc_cost_graph *g = NULL;
    uint32_t acc, node, count = 0, expected = 0;
    assert_ok(tfc_cost_builder_create(&b));
    assert_ok(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
    for (int n = 0; n < 5; n++) {
      assert_ok(tfc_cost_builder_node(b, tfc_str_from(names[n]), &node));
      assert_ok(tfc_cost_builder_time(b, node, acc, 1));
    }
    assert_ok(tfc_cost_builder_finish(b, &g));
    assert_ok(tfc_cost_graph_pin(g, cases[k].pattern, TFC_STR("acc:0"), &count));
    for (uint32_t n = 0; n < 5; n++) {
      bool wanted = cases[k].pinned[n] == 'x';
      expected += wanted;
      if ((g->pin[n].data != NULL) != wanted) fail_msg("'%s' and node '%s'", cases[k].pattern, names[n]);
    }
    assert_int_equal(count, expected);
    tfc_cost_graph_free(g);
    tfc_cost_builder_free(b);
  }
}

// --- Clusters, ranks and annealing ----------------------------------------------------------------------------------

// The units of a cluster may all run on some common device; if devices are given, the units of a cluster are on the
// same one.
static void test_clusters_keep_constraints(void **state) {
  (void)state;
  uint32_t joined = 0;
  for (uint64_t number = 0; number < 200; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 900 + number);
    const uint32_t devices = 2 + (uint32_t)pick(&r, 3);
    struct instance i =
        random_instance(&r, 10 + (uint32_t)pick(&r, 50), devices,
                        number % 2 ? RICH_PINS : RICH_PINS | RICH_KINDS | RICH_GROUPS, TFC_OBJECTIVE_STEP);
    const uint32_t units = i.problem->unit_count;
    uint32_t *cluster = calloc(units, sizeof *cluster);
    tfc_device_id *device = calloc(units, sizeof *device);
    random_devices(&r, i.problem, device);
    for (int given = 0; given < 2; given++) {
      uint32_t count = tfc_local_coarsen(i.problem, &r, given ? device : NULL, 1 + (uint32_t)pick(&r, 4), cluster);
      assert_true(count >= 1 && count <= units);
      joined += units - count;
      for (uint32_t c = 0; c < count; c++) {
        bool any = false, used = false;
        uint32_t home = TFC_NONE;
        for (uint32_t d = 0; d < devices; d++) {
          bool all = true;
          for (uint32_t u = 0; u < units; u++) all = all && (cluster[u] != c || tfc_problem_allows(i.problem, u, d));
          any = any || all;
        }
        for (uint32_t u = 0; u < units; u++) {
          assert_true(cluster[u] < count);
          if (cluster[u] != c) continue;
          used = true;
          if (given) assert_true(home == TFC_NONE || device[u] == home);
          home = device[u];
        }
        assert_true(used);
        if (!any) fail_msg("case %llu: no device may hold cluster %u", (unsigned long long)number, c);
      }
    }
    free(cluster);
    free(device);
    instance_free(&i);
  }
  assert_true(joined > 1000); // so that clusters of one unit each cannot pass the test
}

// Coarsens until `target` clusters are left, whatever is drawn, and expects these: units with the same letter.
static void coarsens(struct instance *i, uint32_t target, const char *clusters) {
  for (uint64_t seed = 0; seed < 20; seed++) {
    struct tfc_random r;
    uint32_t cluster[8];
    tfc_random_init(&r, seed);
    assert_int_equal(tfc_local_coarsen(i->problem, &r, NULL, target, cluster), target);
    for (uint32_t u = 0; u < i->problem->unit_count; u++)
      for (uint32_t v = 0; v < u; v++)
        if ((cluster[u] == cluster[v]) != (clusters[u] == clusters[v]))
          fail_msg("seed %llu: units %u and %u, not %s", (unsigned long long)seed, u, v, clusters);
  }
  instance_free(i);
}

// Units that exchange much data are joined first, and light units before heavy ones. Chance changes the order of pairs
// that differ by less than a factor of three; those here differ by more.
static void test_what_is_joined(void **state) {
  (void)state;
  // A chain whose transfers take 1007 us and 7 us in turns.
  const struct drawn chain = {
      .nodes = 8,
      .acc = {10, 10, 10, 10, 10, 10, 10, 10},
      .edges = 7,
      .edge = {{0, 1, 1000000}, {1, 2, 0}, {2, 3, 1000000}, {3, 4, 0}, {4, 5, 1000000}, {5, 6, 0}, {6, 7, 1000000}}};
  struct instance i = {.graph = graph_of(&chain), .machine = two_devices(TFC_NO_LIMIT)};
  assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  coarsens(&i, 4, "aabbccdd");
  // Of two neighbours with the same tensor, the lighter one.
  const struct drawn light = {.nodes = 3, .acc = {1, 1, 1000}, .edges = 2, .edge = {{0, 1, 1000}, {1, 2, 1000}}};
  i = (struct instance){.graph = graph_of(&light), .machine = two_devices(TFC_NO_LIMIT)};
  assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  coarsens(&i, 2, "aab");
  // The first unit is light, too, because its shortest time counts: on the CPU it takes 1 us, or no time at all.
  for (int none = 0; none < 2; none++) {
    struct drawn kinds = {.nodes = 3,
                          .acc = {1000, 1, 1000},
                          .cpu = {none ? 1e-6 : 1, 1, 1000},
                          .edges = 2,
                          .edge = {{0, 1, 1000}, {1, 2, 1000}}};
    i = (struct instance){.graph = graph_of(&kinds)};
    assert_ok(tfc_machine_create(&i.machine));
    for (int d = 0; d < 2; d++)
      assert_ok(
          tfc_machine_add_device(i.machine, &(struct tfc_machine_device){.name = d ? TFC_STR("cpu") : TFC_STR("acc"),
                                                                         .kind = d ? TFC_STR("cpu") : TFC_STR("acc"),
                                                                         .memory = TFC_NO_LIMIT,
                                                                         .label = TFC_LABEL_MODELLED}));
    struct tfc_link link = tfc_link_default();
    link.latency_us = 7;
    assert_ok(tfc_machine_add_link(i.machine, &link));
    assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
    coarsens(&i, 2, "aab");
  }
  // A tensor that six units read counts one sixth for each of them. The seventh unit is the only reader of another
  // tensor of the same size, so it is the one that is joined.
  struct tfc_cost_builder *b = NULL;
  uint32_t acc, node;
  i = (struct instance){.machine = two_devices(TFC_NO_LIMIT)};
  assert_ok(tfc_cost_builder_create(&b));
  assert_ok(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t n = 0; n < 8; n++) {
    char name[2] = {(char)('a' + n), 0};
    assert_ok(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    assert_ok(tfc_cost_builder_time(b, node, acc, 10));
  }
  for (uint32_t n = 1; n < 8; n++) assert_ok(tfc_cost_builder_edge(b, 0, n == 7, n, 1000, TFC_LIVE_ABSENT));
  assert_ok(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  coarsens(&i, 7, "abcdefga");
}

// Returns the longest path from the start of a node to the end of the step, by walking from the node.
static int64_t tail_of(const struct instance *i, const tfc_device_id *device, uint32_t n) {
  const struct tfc_cost_graph *g = i->graph;
  const uint32_t from = device[i->problem->unit[n]];
  int64_t longest = 0;
  for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++)
    for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
      const uint32_t to = device[i->problem->unit[g->consumer[c]]];
      int64_t length = tail_of(i, device, g->consumer[c]);
      const struct tfc_link *link = to == from ? NULL : link_between(i->machine, from, to);
      if (link)
        length += (int64_t)floor(link->latency_us * 1e6 + 0.5) +
                  (int64_t)floor((double)g->bytes[t] * 1e12 / link->bandwidth + 0.5);
      if (length > longest) longest = length;
    }
  return longest + tfc_problem_time(i->problem, n, from);
}

static void test_rerank(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 200; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 7000 + number);
    struct instance i = random_instance(&r, 2 + (uint32_t)pick(&r, 11), 1 + (uint32_t)pick(&r, 3),
                                        RICH_GROUPS | RICH_KINDS | (number % 2 ? RICH_MISSING : 0), TFC_OBJECTIVE_STEP);
    const uint32_t nodes = i.problem->node_count;
    tfc_device_id device[16] = {0};
    int32_t tie[16];
    uint32_t rank[16], seen = 0;
    int64_t tail[16];
    random_devices(&r, i.problem, device);
    for (uint32_t u = 0; u < 16; u++) tie[u] = (int32_t)pick(&r, 5) - 2;
    const bool ties = number % 3 != 0;
    assert_ok(tfc_local_rerank(i.problem, device, ties ? tie : NULL, rank));
    for (uint32_t n = 0; n < nodes; n++) seen |= 1u << rank[n], tail[n] = tail_of(&i, device, n);
    assert_int_equal(seen, (1u << nodes) - 1);
    for (uint32_t a = 0; a < nodes; a++)
      for (uint32_t b = 0; b < nodes; b++) {
        const int32_t x = ties ? tie[i.problem->unit[a]] : 0, y = ties ? tie[i.problem->unit[b]] : 0;
        const bool first = tail[a] != tail[b] ? tail[a] > tail[b] : x != y ? x < y : a < b;
        if (a != b) assert_int_equal(rank[a] < rank[b], first);
      }
    instance_free(&i);
  }
}

// Annealing returns a score that is that of its solution, and is not worse than that of its start.
static void test_anneal_tells_the_truth(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 60; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 4300 + number);
    const tfc_objective objective = number % 2 ? TFC_OBJECTIVE_STEP : TFC_OBJECTIVE_THROUGHPUT;
    struct instance i = random_instance(&r, 8 + (uint32_t)pick(&r, 30), 2 + (uint32_t)pick(&r, 3),
                                        (uint32_t)pick(&r, RICH_ALL + 1), objective);
    struct tfc_solution solution = {0};
    struct tfc_simulator *sim = NULL;
    struct tfc_verdict v = {0};
    struct tfc_score score, before;
    uint64_t evaluations = 0;
    assert_ok(tfc_solution_init(&solution, i.problem));
    assert_ok(tfc_simulator_create(i.problem, &sim));
    random_devices(&r, i.problem, solution.device);
    tfc_simulate(sim, solution.device, NULL, TFC_TIME_MAX, &v);
    before = score = tfc_score_of(&v);
    const struct tfc_budget budget = {.evaluations = 1500, .seed = number, .threads = 1};
    const struct tfc_anneal_options options = {.hot = number % 3 ? 0.05 : 0, .cold = 1e-4, .orders = number % 4 == 1};
    assert_ok(tfc_local_anneal(i.problem, &budget, &options, &solution, &score, &evaluations));
    assert_true(evaluations > 0 && evaluations <= 1500);
    for (uint32_t u = 0; u < i.problem->unit_count; u++)
      assert_true(tfc_problem_allows(i.problem, u, solution.device[u]));
    tfc_simulate(sim, solution.device, solution.rank, TFC_TIME_MAX, &v);
    struct tfc_score after = tfc_score_of(&v);
    assert_int_equal(after.value, score.value);
    if (after.value != TFC_TIME_MAX) assert_int_equal(after.excess, score.excess);
    assert_false(tfc_score_better(before, score));
    tfc_simulator_free(sim);
    tfc_solution_deinit(&solution);
    instance_free(&i);
  }
}

// By construction all devices can have the same load. Annealing whose temperature falls comes near to that; a walk at a
// constant high temperature does not.
static void test_anneal_cools(void **state) {
  (void)state;
  enum { DEVICES = 4, EACH = 12 };
  double sum = 0;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    struct tfc_random r;
    struct tfc_cost_builder *b = NULL;
    struct instance i = {0};
    struct tfc_link link = tfc_link_default();
    uint32_t acc, node;
    tfc_random_init(&r, seed);
    assert_ok(tfc_cost_builder_create(&b));
    assert_ok(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
    for (uint32_t d = 0; d < DEVICES; d++) {
      double us[EACH], all = 0;
      for (uint32_t k = 0; k < EACH; k++) all += us[k] = 1 + 9 * tfc_random_unit(&r);
      for (uint32_t k = 0; k < EACH; k++) {
        char name[16];
        snprintf(name, sizeof name, "n%u_%u", d, k);
        assert_ok(tfc_cost_builder_node(b, tfc_str_from(name), &node));
        assert_ok(tfc_cost_builder_time(b, node, acc, 1000 * us[k] / all));
      }
    }
    assert_ok(tfc_cost_builder_finish(b, &i.graph));
    tfc_cost_builder_free(b);
    i.machine = even_machine(DEVICES, NULL, &link);
    assert_ok(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_THROUGHPUT, &i.problem));
    struct tfc_solution solution = {0};
    struct tfc_score score = TFC_SCORE_NONE;
    uint64_t evaluations = 0;
    assert_ok(tfc_solution_init(&solution, i.problem));
    const struct tfc_budget budget = {.evaluations = 20000, .seed = seed, .threads = 1};
    const struct tfc_anneal_options options = {.hot = 0.1, .cold = 1e-5};
    assert_ok(tfc_local_anneal(i.problem, &budget, &options, &solution, &score, &evaluations));
    assert_true(score.value >= 1000 * US);
    sum += (double)score.value / (1000.0 * (double)US) - 1;
    tfc_solution_deinit(&solution);
    instance_free(&i);
  }
  print_message("above the optimum: %.4f %%\n", 100 * sum / 8);
  assert_true(sum / 8 < 0.001);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_path_and_work),
      cmocka_unit_test(test_work_of_unlike_devices),
      cmocka_unit_test(test_crowding),
      cmocka_unit_test(test_borders),
      cmocka_unit_test(test_severing),
      cmocka_unit_test(test_window),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_order_of_a_file),
      cmocka_unit_test(test_pins_match_whole_names),
      cmocka_unit_test(test_clusters_keep_constraints),
      cmocka_unit_test(test_what_is_joined),
      cmocka_unit_test(test_rerank),
      cmocka_unit_test(test_anneal_tells_the_truth),
      cmocka_unit_test(test_anneal_cools),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
