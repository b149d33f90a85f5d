// Tests what a search looks at: slack, kinds of units, clusters by name, temperatures, rivals, what is told about the
// learned policy, and the cost graph that all of it is about.
#include "tests/common/test.h"

#include <stdio.h>

#include "placer/search/account.h"
#include "placer/search/anneal.h"
#include "placer/search/kinds.h"
#include "placer/search/local.h"
#include "placer/search/names.c"
#include "placer/search/rivals.h"
#include "placer/search/rollouts.h"
#include "placer/search/slack.h"
#include "profiler/store_rows.h"
#include "tests/placer/instances.h"

#define GRAPH(nodes, edges)                                                                                            \
  "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"a\"], \"nodes\": [" nodes "], \"edges\": [" edges "]}"
#define NODE(name, us) "{\"name\": \"" name "\", \"time_us\": {\"a\": " us "}}"
#define EDGE(from, output, to, bytes)                                                                                  \
  "{\"from\": \"" from "\", \"output\": " output ", \"to\": \"" to "\", \"bytes\": " bytes "}"

// --- slack ---------------------------------------------------------------------------------------------------------

// Without wires, an operation may start so late that the longest path from it, over its consumers and over the next
// operation of its device, ends with the step.
static void test_slack(void **state) {
  (void)state;
  uint32_t some = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    struct tfc_random r;
    tfc_random_init(&r, seed);
    struct instance i = random_instance(&r, 40, 3, RICH_KINDS, TFC_OBJECTIVE_STEP);
    struct tfc_link l = tfc_link_default();
    l.latency_us = 2, l.bandwidth = 1e9, l.wire = TFC_STR("none");
    struct tfc_machine *machine = NULL;
    struct tfc_problem *p = NULL;
    MUST(tfc_machine_create(&machine));
    for (uint32_t d = 0; d < 3; d++)
      MUST(tfc_machine_add_device(machine, &(struct tfc_machine_device){.name = d == 0   ? TFC_STR("acc:0")
                                                                                : d == 1 ? TFC_STR("acc:1")
                                                                                         : TFC_STR("cpu:0"),
                                                                        .kind = d < 2 ? TFC_STR("acc") : TFC_STR("cpu"),
                                                                        .memory = TFC_NO_LIMIT,
                                                                        .label = TFC_LABEL_MODELLED}));
    MUST(tfc_machine_add_link(machine, &l));
    MUST(tfc_problem_create(i.graph, machine, TFC_OBJECTIVE_STEP, &p));
    struct tfc_delta *delta = NULL;
    struct tfc_slack slack;
    struct tfc_verdict v = {0};
    tfc_device_id device[64];
    int64_t after[64] = {0}; // from the start of an operation to the end of the step
    uint32_t next[64], before[64], critical = 0;
    assert_ok(tfc_delta_create(p, &delta));
    assert_ok(tfc_slack_init(&slack, p));
    for (int round = 0; round < 2; round++) { // the second time it begins with the order of the first
      memset(after, 0, sizeof after);
      random_devices(&r, p, device);
      tfc_delta_reset(delta, device, NULL, &v);
      const int64_t *start = tfc_delta_start(delta), *end = tfc_delta_end(delta);
      for (uint32_t n = 0; n < p->node_count; n++) next[n] = before[n] = TFC_NONE;
      for (uint32_t n = 0; n < p->node_count; n++)
        for (uint32_t m = 0; m < p->node_count; m++) { // m runs right after n
          if (m == n || device[p->unit[n]] != device[p->unit[m]] || end[n] == start[n] || end[m] == start[m]) continue;
          if (start[m] > start[n] && (next[n] == TFC_NONE || start[m] < start[next[n]])) next[n] = m;
        }
      for (uint32_t n = 0; n < p->node_count; n++)
        if (next[n] != TFC_NONE) before[next[n]] = n;
      for (uint32_t pass = 0; pass < p->node_count; pass++)
        for (uint32_t n = 0; n < p->node_count; n++) {
          int64_t most = next[n] == TFC_NONE ? 0 : after[next[n]];
          for (uint32_t t = p->graph->first_tensor[n]; t < p->graph->first_tensor[n + 1]; t++)
            for (uint32_t c = p->graph->first_consumer[t]; c < p->graph->first_consumer[t + 1]; c++) {
              const uint32_t m = p->graph->consumer[c];
              const uint32_t from = device[p->unit[n]], to = device[p->unit[m]];
              const int64_t path =
                  after[m] + (from == to ? 0 : tfc_problem_wire_time(p, t, tfc_problem_pair(p, from, to)));
              if (path > most) most = path;
            }
          after[n] = end[n] - start[n] + most;
        }
      const double share = round ? 0.2 : 0;
      tfc_slack_compute(&slack, device, start, end, v.value, share);
      critical = 0;
      for (uint32_t n = 0; n < p->node_count; n++) {
        const bool takes = end[n] > start[n];
        assert_int_equal(slack.late[n], v.value - after[n]);
        assert_true(slack.late[n] >= start[n]);
        assert_int_equal(slack.before[n], before[n]);
        const bool should = takes && slack.late[n] - start[n] <= (int64_t)(share * (double)v.value);
        bool listed = false;
        for (uint32_t k = 0; k < slack.count; k++) listed = listed || slack.critical[k] == n;
        assert_true(listed == should);
        critical += should, some += takes && !should;
      }
      assert_int_equal(slack.count, critical);
      assert_true(critical > 0 || v.value == 0);
    }
    tfc_slack_deinit(&slack);
    tfc_delta_free(delta);
    tfc_problem_free(p);
    tfc_machine_free(machine);
    instance_free(&i);
  }
  assert_true(some > 200);
}

// One wire: "first" runs 10 us, its two tensors go one after the other in 4 us each, "early" begins at 14 and ends at
// 19, "late" begins at 18 and ends at 23. So only "early" has slack, 4 us.
static void test_slack_of_a_wire(void **state) {
  (void)state;
  struct instance i =
      parsed(GRAPH(NODE("first", "10") "," NODE("early", "5") "," NODE("late", "5"),
                   EDGE("first", "0", "early", "4000") "," EDGE("first", "1", "late", "4000")),
             "format: tfc-machine\nversion: 1\ndevices:\n  - {name: 'a:0', kind: a}\n  - {name: 'a:1', kind: a}\n"
             "  - {name: 'a:2', kind: a}\nlinks:\n  - {from: '*', to: '*', bandwidth: 1GB/s, wire: w}\n");
  struct tfc_delta *delta = NULL;
  struct tfc_slack slack;
  struct tfc_verdict v = {0};
  const tfc_device_id device[] = {0, 1, 2};
  assert_ok(tfc_delta_create(i.problem, &delta));
  assert_ok(tfc_slack_init(&slack, i.problem));
  tfc_delta_reset(delta, device, NULL, &v);
  assert_int_equal(v.value, 23000000);
  tfc_slack_compute(&slack, device, tfc_delta_start(delta), tfc_delta_end(delta), v.value, 0);
  assert_int_equal(slack.late[0], 0);
  assert_int_equal(slack.late[1], 18000000);
  assert_int_equal(slack.late[2], 18000000);
  assert_int_equal(slack.count, 2);
  tfc_slack_compute(&slack, device, tfc_delta_start(delta), tfc_delta_end(delta), v.value, 4.1 / 23);
  assert_int_equal(slack.count, 3);
  tfc_slack_deinit(&slack);
  tfc_delta_free(delta);
  instance_free(&i);
}

// --- kinds ---------------------------------------------------------------------------------------------------------

// Four chains of ten: two alike, one with another time in its last operation, one with other bytes in its first edge.
// What is up to three edges away makes a difference, what is farther does not; pins always do.
static void test_kinds(void **state) {
  (void)state;
  enum { CHAINS = 4, LENGTH = 10 };
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  struct tfc_kinds kinds;
  struct tfc_link l = tfc_link_default();
  uint32_t acc, node;
  char name[40];
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t n = 0; n < CHAINS * LENGTH; n++) { // numbered backwards: the last operation of a chain comes first
    const uint32_t chain = n / LENGTH, at = LENGTH - 1 - n % LENGTH;
    snprintf(name, sizeof name, "c%u/%u", chain, at);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, chain == 2 && at == LENGTH - 1 ? 11 : 10));
  }
  for (uint32_t n = 0; n < CHAINS * LENGTH; n++)
    if (n % LENGTH) {
      const bool first = n % LENGTH == LENGTH - 1;
      MUST(tfc_cost_builder_edge(b, n, 0, n - 1, n / LENGTH == 3 && first ? 2000 : 1000, TFC_LIVE_ABSENT));
    }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  i.machine = even_machine(2, NULL, &l);
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  const struct tfc_problem *p = i.problem;
  assert_ok(tfc_kinds_find(&kinds, p));
  // The kind of the operation at place `at` of a chain.
#define KIND(chain, at) kinds.of[p->unit[(chain)*LENGTH + LENGTH - 1 - (at)]]
  for (uint32_t at = 0; at < LENGTH; at++) {
    assert_int_equal(KIND(0, at), KIND(1, at));
    // A kind depends on what is within three edges. So the last operation of chain 2, which takes longer, changes the
    // kinds of the three before it, and the larger tensor of chain 3's first operation those of the three after it.
    assert_true((KIND(0, at) == KIND(2, at)) == (at < LENGTH - 4));
    assert_true((KIND(0, at) == KIND(3, at)) == (at > 3));
    // Two operations of a chain are of one kind only if both are so far inside that neither end is seen.
    for (uint32_t other = 0; other < at; other++)
      assert_true((KIND(0, at) == KIND(0, other)) == (at >= 3 && at <= 5 && other >= 3 && other <= 5));
  }
#undef KIND
  uint32_t listed = 0;
  for (uint32_t k = 0; k < kinds.count; k++)
    for (uint32_t a = kinds.first[k]; a < kinds.first[k + 1]; a++, listed++) {
      assert_int_equal(kinds.of[kinds.unit[a]], k);
      assert_int_equal(kinds.at[kinds.unit[a]], a);
    }
  assert_int_equal(listed, p->unit_count);
  // Of one kind, what comes earlier in the topological order is listed first.
  uint32_t position[CHAINS * LENGTH];
  for (uint32_t a = 0; a < p->node_count; a++) position[p->unit[p->graph->topological[a]]] = a;
  for (uint32_t a = 1; a < p->unit_count; a++)
    if (kinds.of[kinds.unit[a]] == kinds.of[kinds.unit[a - 1]])
      assert_true(position[kinds.unit[a]] > position[kinds.unit[a - 1]]);
  tfc_kinds_deinit(&kinds);
  instance_free(&i);
}

// --- names ---------------------------------------------------------------------------------------------------------

static void test_names_are_read(void **state) {
  (void)state;
  struct unit_name a, b;
  struct part x = read_part(TFC_STR("MatMul")), y = read_part(TFC_STR("MatMul_2")), z = read_part(TFC_STR("MatMul_13"));
  assert_true(x.text == y.text && y.text == z.text && !x.numbered && y.numbered && y.number == 2 && z.number == 13);
  x = read_part(TFC_STR("layer3")), y = read_part(TFC_STR("layer12"));
  assert_true(x.text == y.text && x.number == 3 && y.number == 12 && x.text != read_part(TFC_STR("label3")).text);
  x = read_part(TFC_STR("a1b2c")), y = read_part(TFC_STR("a7b2c"));
  assert_true(x.text == y.text && x.number == 12 && y.number == 72);
  assert_true(read_part(TFC_STR("abc")).text != read_part(TFC_STR("a1c")).text);
  read_name(TFC_STR("enc/layer_1/MatMul"), &a);
  read_name(TFC_STR("gradients/enc/layer_1/MatMul"), &b);
  assert_true(a.count == 3 && b.count == 3 && memcmp(a.parts, b.parts, sizeof *a.parts * 3) == 0);
  read_name(TFC_STR("Adam/update_enc/layer_1/MatMul"), &b);
  assert_true(b.count == 3 && memcmp(a.parts, b.parts, sizeof *a.parts * 3) == 0);
  read_name(TFC_STR("gradient_tape/enc/layer_2"), &b);
  assert_true(b.count == 2 && b.parts[1].number == 2 && b.parts[0].text == a.parts[0].text);
  read_name(TFC_STR("1/2/3/4/5/6/7/8/9/10/11/12/13/14"), &b);
  assert_true(b.count == MOST_PARTS && b.parts[MOST_PARTS - 1].number == 12);
}

// Forty numbered operations of each of two layers: whatever is drawn, layers stay apart, the numbers in a cluster have
// no gap, and clusters of numbers are of about one size. The longest operation of a unit names it.
static void test_clusters_by_name(void **state) {
  (void)state;
  enum { LAYERS = 2, STEPS = 40 };
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  struct tfc_link l = tfc_link_default();
  struct tfc_random r;
  uint32_t acc, node, cluster[LAYERS * STEPS], whole = 0, ranges = 0;
  char name[40];
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t n = 0; n < LAYERS * STEPS; n++) {
    snprintf(name, sizeof name, "%s/step_%u", n / STEPS ? "decoder" : "encoder", n % STEPS);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, 10));
    snprintf(name, sizeof name, "unit%u", n);
    MUST(tfc_cost_builder_group(b, node, tfc_str_from(name)));
    // Adds to each unit a short operation of the other layer; its node comes later in the graph.
    snprintf(name, sizeof name, "%s/step_%u/short", n / STEPS ? "encoder" : "decoder", STEPS - n % STEPS);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, 1));
    snprintf(name, sizeof name, "unit%u", n);
    MUST(tfc_cost_builder_group(b, node, tfc_str_from(name)));
  }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  i.machine = even_machine(3, NULL, &l);
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  const struct tfc_problem *p = i.problem;
  assert_int_equal(p->unit_count, LAYERS * STEPS);
  tfc_random_init(&r, 3);
  for (int round = 0; round < 200; round++) {
    const uint32_t count = tfc_names_cluster(p, &r, cluster);
    assert_in_range(count, 2, 12); // 1 to 6 ranges of each layer, for three devices
    // "encoder" and "decoder" are two families of one member each, and one member is always alone.
    uint32_t size[12] = {0}, last[12], least = STEPS, most = 0, in_first = 0;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      // Units are in the order of their first nodes.
      const uint32_t c = cluster[u];
      assert_true(c < count);
      if (size[c]) assert_true(last[c] == u - 1 && u % STEPS != 0);
      size[c]++, last[c] = u;
      if (u < STEPS && size[c] == 1) in_first++;
    }
    for (uint32_t c = 0; c < in_first; c++) {
      if (size[c] < least) least = size[c];
      if (size[c] > most) most = size[c];
    }
    assert_true(most - least <= 1 && in_first <= 6);
    whole += count == 2, ranges += count > 2;
  }
  assert_true(whole > 40 && ranges > 40);
  instance_free(&i);
}

// With few numbers, each one is mostly a cluster of its own. Units that are pinned are apart from the others.
static void test_few_names(void **state) {
  (void)state;
  static const char machine[] = "format: tfc-machine\nversion: 1\ndevices:\n  - {name: 'a:0', kind: a}\n"
                                "  - {name: 'a:1', kind: a}\nlinks:\n  - {from: '*', to: '*'}\n";
  struct instance i =
      parsed(GRAPH(NODE("op0", "1") "," NODE("op1", "1") "," NODE("op2", "1") "," NODE("op7", "1"), ""), machine);
  struct tfc_random r;
  uint32_t cluster[4], alone = 0, together = 0;
  tfc_random_init(&r, 3);
  for (int round = 0; round < 400; round++) {
    const uint32_t count = tfc_names_cluster(i.problem, &r, cluster);
    alone += count == 4, together += count == 1;
  }
  assert_int_equal(alone + together, 400);
  assert_in_range(alone, 290, 350); // 4 of 5 rounds
  instance_free(&i);
  i = parsed(GRAPH("{\"name\": \"op\", \"time_us\": {\"a\": 1}, \"pin\": \"a:0\"}, "
                   "{\"name\": \"op_1\", \"time_us\": {\"a\": 1}, \"pin\": \"a:1\"}," NODE("op_2", "1"),
                   ""),
             machine);
  for (int round = 0; round < 50; round++) assert_int_equal(tfc_names_cluster(i.problem, &r, cluster), 3);
  instance_free(&i);
}

// --- temperatures --------------------------------------------------------------------------------------------------

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Computes the temperature at which the median of the changes for the worse is accepted with the given probability,
// from the same moves, simulated one by one.
static void test_temperatures(void **state) {
  (void)state;
  uint32_t with = 0;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    struct tfc_random r, copy;
    tfc_random_init(&r, seed);
    struct instance i = random_instance(&r, 40, 3, seed % 2 ? RICH_KINDS | RICH_PINS : 0, TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    const uint64_t evaluations = seed % 4 ? 0 : 400;
    struct tfc_solution s = {0};
    struct tfc_simulator *sim = NULL;
    struct tfc_verdict v = {0};
    double worse[48], expected, got = 0;
    uint32_t count = 0;
    uint64_t tried = 0, used = 0;
    MUST(tfc_solution_init(&s, p));
    random_devices(&r, p, s.device);
    MUST(tfc_simulator_create(p, &sim));
    tfc_simulate(sim, s.device, NULL, TFC_TIME_MAX, &v);
    const int64_t value = v.value;
    copy = r;
    for (int k = 0; k < (evaluations ? 20 : 48); k++) {
      const uint32_t u = (uint32_t)tfc_random_below(&copy, p->unit_count);
      const tfc_device_id d = (tfc_device_id)tfc_random_below(&copy, p->device_count), was = s.device[u];
      if (d == was || !tfc_problem_allows(p, u, d)) continue;
      s.device[u] = d;
      tfc_simulate(sim, s.device, NULL, TFC_TIME_MAX, &v);
      s.device[u] = was;
      tried++;
      if (v.legal && v.value > value) worse[count++] = (double)v.value / (double)value - 1;
    }
    qsort(worse, count, sizeof *worse, ascending);
    with += count > 2;
    expected = (count ? worse[count / 2] : 0.001) / log(1 / 0.01); // 0.1 % if no move is worse
    const struct tfc_budget budget = {.evaluations = evaluations};
    assert_ok(tfc_local_temperature(p, &budget, &s, 0.01, &r, &got, &used));
    assert_int_equal(used, tried);
    assert_true(fabs(got - expected) <= 1e-9 * expected);
    tfc_simulator_free(sim);
    tfc_solution_deinit(&s);
    instance_free(&i);
  }
  assert_true(with >= 5);
}

// --- rivals --------------------------------------------------------------------------------------------------------

// Of the rivals, the one that fits is taken, not the faster one that does not, nor one that breaks a pin; then the
// fastest. A search that can do no better answers with it, under its name.
static void test_rivals(void **state) {
  (void)state;
  // Two operations of 10 us, one pinned; "a:0" has room for none of them, "a:1" and "a:2" for one each. A transfer
  // takes 100 us.
  struct instance i = parsed(GRAPH("{\"name\": \"n0\", \"time_us\": {\"a\": 10}, \"memory\": 10, \"pin\": \"a:2\"},"
                                   "{\"name\": \"n1\", \"time_us\": {\"a\": 10}, \"memory\": 10}",
                                   EDGE("n0", "0", "n1", "0")),
                             "format: tfc-machine\nversion: 1\ndevices:\n  - {name: 'a:0', kind: a, memory: 5}\n"
                             "  - {name: 'a:1', kind: a, memory: 10}\n  - {name: 'a:2', kind: a, memory: 10}\n"
                             "links:\n  - {from: '*', to: '*', latency: 100us}\n");
  const struct tfc_problem *p = i.problem;
  struct tfc_rival rivals[4] = {{"breaks the pin", {0}}, {"too large", {0}}, {"does not fit", {0}}, {"fits", {0}}};
  static const tfc_device_id on[4][2] = {{1, 1}, {2, 2}, {2, 0}, {2, 1}};
  struct tfc_search_options options = {.evaluations = 1, .seed = 1, .threads = 1};
  for (int k = 0; k < 4; k++) {
    MUST(tfc_solution_init(&rivals[k].solution, p));
    memcpy(rivals[k].solution.device, on[k], sizeof on[k]);
  }
  for (uint32_t first = 0; first < 4; first++) { // any one may be the first
    struct tfc_rival list[4];
    struct tfc_search_outcome out = {0};
    for (uint32_t k = 0; k < 4; k++) list[k] = rivals[(first + k) % 4];
    assert_ok(tfc_search_beside(p, &options, list, 4, &out));
    assert_true(out.excess == 0 && out.value == 120000000 && out.best.device[0] == 2 && out.best.device[1] == 1);
    tfc_search_outcome_deinit(&out);
  }
  // With an algorithm that is given by name, the rivals are not used.
  struct tfc_search_outcome out = {0};
  options.settings.algorithms = "single";
  assert_ok(tfc_search_beside(p, &options, rivals, 4, &out));
  assert_string_equal(out.entries[0].algorithm, "single");
  tfc_search_outcome_deinit(&out);
  for (int k = 0; k < 4; k++) tfc_solution_deinit(&rivals[k].solution);
  instance_free(&i);
}

// --- the learned policy's account ----------------------------------------------------------------------------------

static void close_to(double x, double expected) {
  if (!(fabs(x - expected) <= 1e-12 + 1e-9 * fabs(expected))) fail_msg("%.12g, not %.12g", x, expected);
}

static void test_accounts_add_up(void **state) {
  (void)state;
  struct tfc_search_account a = {.samples = {.count = 100, .invalid_share = 0.1, .entropy = 0.5},
                                 .before = 900,
                                 .after = 800,
                                 .moves = {1, 1, 10, 2, 0.1},
                                 .others = {7, 2, 70, 14, 0.7}};
  const struct tfc_search_account b = {.samples = {.count = 300, .invalid_share = 0.5, .entropy = 0.9},
                                       .before = 700,
                                       .after = 600,
                                       .moves = {2, 0, 30, 4, 0},
                                       .others = {14, 3, 140, 28, 0.2}};
  const struct tfc_search_account none = {.others = {1, 1, 5, 1, 0.05}};
  struct tfc_search_account empty = {0};
  tfc_search_account_add(&a, &b);
  assert_true(a.before == 900 && a.after == 600 && a.samples.count == 400);
  close_to(a.samples.invalid_share, 0.4), close_to(a.samples.entropy, 0.8);
  tfc_search_account_add(&a, &none);
  assert_true(a.before == 900 && a.after == 600 && a.samples.count == 400);
  assert_true(a.moves.count == 3 && a.moves.wins == 1 && a.moves.evaluations == 40);
  assert_true(a.others.count == 22 && a.others.wins == 6 && a.others.evaluations == 215);
  close_to(a.moves.seconds, 6), close_to(a.moves.gained, 0.1);
  close_to(a.others.seconds, 43), close_to(a.others.gained, 0.95);
  const struct tfc_store_policy_search row = tfc_search_account_row(&a);
  assert_true(row.samples == 400 && row.move_turns == 3 && row.move_wins == 1);
  close_to(row.entropy, 0.8), close_to(row.invalid_share, 0.4), close_to(row.move_s, 6), close_to(row.other_s, 43);
  close_to(row.move_gain, 1 - exp(-0.1)), close_to(row.other_gain, 1 - exp(-0.95));
  tfc_search_account_add(&empty, &b); // `before` is that of the first account that is added
  assert_true(empty.before == 700 && empty.after == 600 && empty.samples.count == 300);
  close_to(empty.samples.entropy, 0.9);
}

static void tells(const struct tfc_search_account *a, const char *expected) {
  struct tfc_text text = {0};
  tfc_search_account_tell(a, &text);
  assert_string_equal(text.data ? text.data : "", expected);
  tfc_text_deinit(&text);
}
static void test_accounts_are_told(void **state) {
  (void)state;
  struct tfc_search_account a = {
      .samples = {.count = 200, .invalid_share = 0.25, .entropy = 0.5}, .before = 2000000000, .after = 1500000000};
  tells(&a, "The learned policy: 200 placements of its own made the best simulated step 1.500 ms instead of 2.000 ms "
            "(entropy "
            "0.50, 25 % invalid).\n");
  a.after = a.before;
  tells(&a, "The learned policy: 200 placements of its own were no better than the best simulated step before, 2.000 "
            "ms (entropy "
            "0.50, 25 % invalid).\n");
  a.moves = (struct tfc_search_turns){4, 1, 0, 0, log(1 / 0.9)};
  a.others = (struct tfc_search_turns){12, 3, 0, 0, log(2)};
  a.before = TFC_TIME_MAX;
  tells(&a, "The learned policy: 200 placements of its own after nothing that runs (entropy 0.50, 25 % invalid); its "
            "moves gained 10.0 % in 1 of 4 turns of local search, all other methods 50.0 % in 3 of 12.\n");
  a.samples.count = 0;
  tells(&a, "");
}

// The policy is ahead if its best step is shorter by a hundredth than what was found before it; it has gained if it is
// shorter at all.
static void test_who_leads(void **state) {
  (void)state;
  static const struct {
    int64_t after;
    bool led, gained;
  } cases[] = {{1000000, false, false}, {1000001, false, false}, {999999, false, true},
               {990001, false, true},   {990000, true, true},    {1, true, true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_search_outcome out = {.learned = {.before = 1000000, .after = cases[i].after}};
    const struct tfc_finder f = {.out = &out};
    assert_true(tfc_rollouts_led(&f) == cases[i].led && tfc_rollouts_gained(&f) == cases[i].gained);
  }
}

// --- cost graphs ---------------------------------------------------------------------------------------------------

// Times stay with their nodes when kinds are added later; edges are sorted by tensor; a tensor's live bytes may come
// with any of its edges.
static void test_graphs_are_built(void **state) {
  (void)state;
  struct tfc_cost_builder *b = NULL;
  struct tfc_cost_graph *g = NULL;
  uint32_t kind[6], node[4], again;
  static const char *const names[] = {"k0", "k1", "k2", "k3", "k4", "k5"};
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("k0"), &kind[0]));
  for (int n = 0; n < 4; n++) {
    char name[16];
    snprintf(name, sizeof name, "n%d", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node[n]));
    MUST(tfc_cost_builder_time(b, node[n], kind[0], 1 + n));
    tfc_cost_builder_memory(b, node[n], (uint64_t)(100 + n));
  }
  for (int k = 1; k < 6; k++) {
    MUST(tfc_cost_builder_kind(b, tfc_str_from(names[k]), &kind[k]));
    assert_int_equal(kind[k], k);
  }
  MUST(tfc_cost_builder_kind(b, TFC_STR("k3"), &again));
  assert_int_equal(again, 3);
  MUST(tfc_cost_builder_time(b, node[2], kind[5], 77));
  assert_fails(tfc_cost_builder_time(b, node[2], kind[5], -1), TFC_INVALID_ARGUMENT, "'n2': time_us on 'k5' is -1");
  assert_fails(tfc_cost_builder_time(b, node[2], kind[5], NAN), TFC_INVALID_ARGUMENT, "finite");
  assert_fails(tfc_cost_builder_node(b, TFC_STR("n1"), &again), TFC_INVALID_ARGUMENT, "two nodes");
  assert_fails(tfc_cost_builder_node(b, TFC_STR(""), &again), TFC_INVALID_ARGUMENT, "empty name");
  assert_fails(tfc_cost_builder_kind(b, TFC_STR(""), &again), TFC_INVALID_ARGUMENT, "empty name");
  assert_fails(tfc_cost_builder_edge(b, 3, -2, 0, 0, TFC_LIVE_ABSENT), TFC_INVALID_ARGUMENT, "output -2");
  assert_fails(tfc_cost_builder_edge(b, 3, -1, 0, 1, TFC_LIVE_ABSENT), TFC_INVALID_ARGUMENT, "0 bytes");
  assert_fails(tfc_cost_builder_edge(b, 3, 0, 0, UINT64_C(1) << 63, TFC_LIVE_ABSENT), TFC_INVALID_ARGUMENT, "too many");
  // n3 -> n1 (output 1, 20 bytes), n3 -> n0 and n2 (output 0, 10 bytes, 40 live), n1 -> n0 (control), one twice.
  MUST(tfc_cost_builder_edge(b, 3, 1, 1, 20, TFC_LIVE_ABSENT));
  MUST(tfc_cost_builder_edge(b, 1, -1, 0, 0, TFC_LIVE_ABSENT));
  MUST(tfc_cost_builder_edge(b, 3, 0, 2, 10, 40));
  MUST(tfc_cost_builder_edge(b, 3, 0, 0, 10, TFC_LIVE_ABSENT));
  MUST(tfc_cost_builder_edge(b, 3, 0, 2, 10, TFC_LIVE_ABSENT));
  assert_ok(tfc_cost_builder_finish(b, &g));
  tfc_cost_builder_free(b);
  assert_true(g->node_count == 4 && g->kind_count == 6 && g->tensor_count == 3 && g->consumer_count == 4);
  for (uint32_t n = 0; n < 4; n++) {
    assert_true(g->memory[n] == 100 + n && fabs(g->time_us[n * 6] - (1 + n)) < 1e-12);
    for (uint32_t k = 1; k < 6; k++)
      if (n == 2 && k == 5)
        assert_true(fabs(g->time_us[n * 6 + k] - 77) < 1e-12);
      else
        assert_true(isnan(g->time_us[n * 6 + k]));
  }
  // Tensors: n1's control edge, n3's outputs 0 and 1.
  static const uint32_t producer[] = {1, 3, 3}, first_tensor[] = {0, 0, 1, 1, 3}, first_consumer[] = {0, 1, 3, 4};
  static const uint32_t consumer[] = {0, 0, 2, 1}, first_input[] = {0, 2, 3, 4, 4}, input[] = {0, 1, 2, 1};
  static const uint64_t bytes[] = {0, 10, 20}, live[] = {0, 40, 0};
  assert_memory_equal(g->producer, producer, sizeof producer);
  assert_memory_equal(g->first_tensor, first_tensor, sizeof first_tensor);
  assert_memory_equal(g->first_consumer, first_consumer, sizeof first_consumer);
  assert_memory_equal(g->consumer, consumer, sizeof consumer);
  assert_memory_equal(g->first_input, first_input, sizeof first_input);
  assert_memory_equal(g->input, input, sizeof input);
  assert_memory_equal(g->bytes, bytes, sizeof bytes);
  assert_memory_equal(g->live, live, sizeof live);
  assert_true(g->has_live && g->output[0] == -1 && g->output[1] == 0 && g->output[2] == 1);
  static const uint32_t order[] = {3, 2, 1, 0};
  assert_memory_equal(g->topological, order, sizeof order);
  uint32_t count = 0, at = 0;
  assert_ok(tfc_cost_graph_find(g, TFC_STR("n2"), &at));
  assert_int_equal(at, 2);
  assert_fails(tfc_cost_graph_find(g, TFC_STR("n4"), &at), TFC_INVALID_ARGUMENT, "'n4'");
  assert_ok(tfc_cost_graph_pin(g, "n[12]", TFC_STR("k0:0"), &count));
  assert_int_equal(count, 2);
  assert_true(tfc_str_is(g->pin[1], "k0:0") && tfc_str_is(g->pin[2], "k0:0") && !g->pin[0].data && !g->pin[3].data);
  assert_ok(tfc_cost_graph_pin(g, "n1", TFC_STR("k0:0"), &count)); // the same again is no contradiction
  assert_int_equal(count, 1);
  assert_fails(tfc_cost_graph_pin(g, "n.", TFC_STR("k0:1"), &count), TFC_INVALID_ARGUMENT, "pinned to 'k0:0' already");
  assert_fails(tfc_cost_graph_pin(g, "n", TFC_STR("k0:1"), &count), TFC_INVALID_ARGUMENT, "no node");
  assert_fails(tfc_cost_graph_pin(g, "(", TFC_STR("k0:1"), &count), TFC_INVALID_ARGUMENT, "'('");
  tfc_cost_graph_free(g);
}

static tfc_status finish(uint32_t nodes, const uint64_t (*edges)[5], uint32_t count, uint64_t memory) {
  struct tfc_cost_builder *b = NULL;
  struct tfc_cost_graph *g = NULL;
  uint32_t kind, node;
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("a"), &kind));
  for (uint32_t n = 0; n < nodes; n++) {
    char name[16];
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    tfc_cost_builder_memory(b, node, memory);
  }
  for (uint32_t e = 0; e < count; e++)
    MUST(tfc_cost_builder_edge(b, (uint32_t)edges[e][0], (int32_t)edges[e][1], (uint32_t)edges[e][2], edges[e][3],
                               edges[e][4]));
  tfc_status s = tfc_cost_builder_finish(b, &g);
  tfc_cost_builder_free(b);
  tfc_cost_graph_free(g);
  return s;
}
// An order of minus zero is that of zero, and is written like it.
static void test_order_of_zero(void **state) {
  (void)state;
  struct tfc_cost_builder *b = NULL;
  struct tfc_cost_graph *g = NULL;
  uint32_t kind, node;
  static const double orders[] = {-0.0, 0.0, -2.5};
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("a"), &kind));
  for (int n = 0; n < 3; n++) {
    char name[2] = {(char)('a' + n), 0};
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, kind, 1));
    MUST(tfc_cost_builder_order(b, node, orders[n]));
  }
  MUST(tfc_cost_builder_finish(b, &g));
  tfc_cost_builder_free(b);
  assert_true(g->order[0] == 0 && !signbit(g->order[0]) && !signbit(g->order[1]) && g->order[2] == -2.5);
  tfc_cost_graph_free(g);
}

static void test_bad_graphs(void **state) {
  (void)state;
  static const uint64_t bytes[][5] = {{0, 0, 1, 5, 9}, {0, 0, 2, 6, 9}}, live[][5] = {{0, 0, 1, 5, 9}, {0, 0, 2, 5, 8}};
  // n0 and n4 are not on the cycle of n1, n2 and n3, n4 waits for it.
  static const uint64_t cycle[][5] = {
      {0, 0, 1, 1, 1}, {1, 0, 2, 1, 1}, {2, 0, 3, 1, 1}, {3, 0, 1, 1, 1}, {3, 0, 4, 1, 1}};
  assert_fails(finish(3, bytes, 2, 0), TFC_INVALID_ARGUMENT,
               "output 0 of node 'n0': edges disagree on bytes (5 and 6)");
  assert_fails(finish(3, live, 2, 0), TFC_INVALID_ARGUMENT, "output 0 of node 'n0': edges disagree on live (9 and 8)");
  tfc_status s = finish(5, cycle, 5, 0);
  assert_non_null(s);
  const char *at = strstr(tfc_status_message(s), "node 'n");
  assert_true(at && at[7] >= '1' && at[7] <= '3' && strstr(at, "is on a cycle"));
  tfc_status_free(s);
  assert_fails(finish(0, NULL, 0, 0), TFC_INVALID_ARGUMENT, "no nodes");
  assert_fails(finish(4, NULL, 0, UINT64_C(1) << 60), TFC_INVALID_ARGUMENT, "too much");
  assert_ok(finish(3, NULL, 0, UINT64_C(1) << 60));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_slack),
                                     cmocka_unit_test(test_slack_of_a_wire),
                                     cmocka_unit_test(test_kinds),
                                     cmocka_unit_test(test_names_are_read),
                                     cmocka_unit_test(test_clusters_by_name),
                                     cmocka_unit_test(test_few_names),
                                     cmocka_unit_test(test_temperatures),
                                     cmocka_unit_test(test_rivals),
                                     cmocka_unit_test(test_accounts_add_up),
                                     cmocka_unit_test(test_accounts_are_told),
                                     cmocka_unit_test(test_graphs_are_built),
                                     cmocka_unit_test(test_who_leads),
                                     cmocka_unit_test(test_order_of_zero),
                                     cmocka_unit_test(test_bad_graphs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
