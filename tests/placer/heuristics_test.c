// Compares list schedulers with plain versions of their own, which are checked against the examples of the papers that
// they come from, and tests the simple rivals (one device, all in turn, random, splits, partitions) on problems whose
// answer is plain.
#include "tests/common/test.h"

#include <stdio.h>

#include "placer/algo/order.h"
#include "placer/search/local.h"
#include "tests/placer/instances.h"

enum { MOST = 104, DEVICES = 4 };

// A problem for the plain versions: times and transfers in any unit.
struct plain {
  uint32_t nodes, devices, edges;
  double time[MOST][DEVICES], memory[MOST], limit[DEVICES];
  uint32_t from[3 * MOST], to[3 * MOST];
  double wire[3 * MOST][DEVICES][DEVICES], mean_wire[3 * MOST];
  bool unlinked[DEVICES][DEVICES];
  uint32_t position[MOST], precedence[MOST]; // positions in a topological order, and the order for ties
  // The schedule.
  uint32_t on[MOST];
  double start[MOST], end[MOST], used[DEVICES];
  bool done[MOST], last_resort, tied; // tied: two orders are correct
};

static bool is_ready(const struct plain *p, uint32_t n) {
  for (uint32_t e = 0; e < p->edges; e++)
    if (p->to[e] == n && !p->done[p->from[e]]) return false;
  return !p->done[n];
}
// The earliest start: in a gap if `gaps`, else behind everything on the device.
static double earliest(const struct plain *p, uint32_t n, uint32_t d, bool gaps) {
  double ready = 0, at;
  for (uint32_t e = 0; e < p->edges; e++)
    if (p->to[e] == n)
      ready = fmax(ready, p->end[p->from[e]] + (p->on[p->from[e]] == d ? 0 : p->wire[e][p->on[p->from[e]]][d]));
  at = ready;
  if (!gaps) {
    for (uint32_t m = 0; m < p->nodes; m++)
      if (p->done[m] && p->on[m] == d) at = fmax(at, p->end[m]);
    return at;
  }
  for (bool moved = true; moved;) { // moves behind whatever is in the way
    moved = false;
    for (uint32_t m = 0; m < p->nodes; m++)
      if (p->done[m] && p->on[m] == d && p->start[m] < at + p->time[n][d] && p->end[m] > at)
        at = p->end[m], moved = true;
  }
  return at;
}
static bool can(const struct plain *p, uint32_t n, uint32_t d) {
  for (uint32_t e = 0; e < p->edges; e++)
    if (p->to[e] == n && p->unlinked[p->on[p->from[e]]][d]) return false;
  return p->time[n][d] >= 0 && p->used[d] + p->memory[n] <= p->limit[d];
}
static void put(struct plain *p, uint32_t n, uint32_t d, bool gaps) {
  p->start[n] = earliest(p, n, d, gaps), p->end[n] = p->start[n] + p->time[n][d];
  p->on[n] = d, p->done[n] = true, p->used[d] += p->memory[n];
}
static double mean_time(const struct plain *p, uint32_t n) {
  double sum = 0, count = 0;
  for (uint32_t d = 0; d < p->devices; d++)
    if (p->time[n][d] >= 0) sum += p->time[n][d], count++;
  return sum / count;
}
static double makespan(const struct plain *p) {
  double most = 0;
  for (uint32_t n = 0; n < p->nodes; n++) most = fmax(most, p->end[n]);
  return most;
}
static double upward(const struct plain *p, uint32_t n, bool transfers) {
  double most = 0;
  for (uint32_t e = 0; e < p->edges; e++)
    if (p->from[e] == n) most = fmax(most, (transfers ? p->mean_wire[e] : 0) + upward(p, p->to[e], transfers));
  return mean_time(p, n) + most;
}

static void plain_heft(struct plain *p) {
  double rank[MOST];
  for (uint32_t n = 0; n < p->nodes; n++) rank[n] = upward(p, n, true);
  for (uint32_t k = 0; k < p->nodes; k++) {
    uint32_t n = MOST, best = DEVICES;
    for (uint32_t m = 0; m < p->nodes; m++)
      if (!p->done[m] && (n == MOST || rank[m] > rank[n])) n = m;
    for (uint32_t d = 0; d < p->devices; d++)
      if (can(p, n, d) &&
          (best == DEVICES || earliest(p, n, d, true) + p->time[n][d] < earliest(p, n, best, true) + p->time[n][best]))
        best = d;
    p->last_resort |= best == DEVICES;
    if (p->last_resort) return;
    put(p, n, best, true);
  }
}

static double optimistic(const struct plain *p, uint32_t n, uint32_t d) {
  double most = 0;
  for (uint32_t e = 0; e < p->edges; e++) {
    if (p->from[e] != n) continue;
    double least = INFINITY;
    for (uint32_t k = 0; k < p->devices; k++)
      if (p->time[p->to[e]][k] >= 0)
        least = fmin(least, optimistic(p, p->to[e], k) + p->time[p->to[e]][k] + (k == d ? 0 : p->mean_wire[e]));
    most = fmax(most, least);
  }
  return most;
}
static void plain_peft(struct plain *p) {
  static double table[MOST][DEVICES];
  double rank[MOST] = {0};
  for (uint32_t n = 0; n < p->nodes; n++)
    for (uint32_t d = 0; d < p->devices; d++) rank[n] += table[n][d] = optimistic(p, n, d);
  for (uint32_t k = 0; k < p->nodes; k++) {
    uint32_t n = MOST, best = DEVICES;
    double least = 0;
    for (uint32_t m = 0; m < p->nodes; m++)
      if (is_ready(p, m) && (n == MOST || rank[m] > rank[n])) n = m;
    for (uint32_t m = 0; m < p->nodes; m++) p->tied |= is_ready(p, m) && m != n && rank[m] > rank[n] - 1e-3;
    for (uint32_t d = 0; d < p->devices; d++) {
      if (!can(p, n, d)) continue;
      const double cost = earliest(p, n, d, true) + p->time[n][d] + table[n][d];
      if (best == DEVICES || cost < least) best = d, least = cost;
    }
    p->last_resort |= best == DEVICES;
    if (p->last_resort) return;
    put(p, n, best, true);
  }
}

// Which ready operations are considered: of many, the 64 with the highest levels; or 48, which stay, and are filled up
// by precedence.
static void choose(const struct plain *p, const double *level, bool *held) {
  const bool levels = level != NULL;
  uint32_t count = 0;
  for (uint32_t m = 0; m < p->nodes; m++) {
    held[m] = held[m] && !levels && is_ready(p, m);
    count += held[m];
  }
  for (bool more = true; more && count < (levels ? 64 : 48); count += more) {
    uint32_t next = MOST;
    for (uint32_t m = 0; m < p->nodes; m++)
      if (is_ready(p, m) && !held[m] &&
          (next == MOST || (levels ? level[m] > level[next] : p->precedence[m] < p->precedence[next])))
        next = m;
    more = next != MOST;
    if (more) held[next] = true;
  }
}

// Earliest start first (what is slower on a device counts as waiting); `levels`: highest dynamic level first.
static void plain_pairs(struct plain *p, bool levels) {
  bool held[MOST] = {0};
  double level[MOST];
  for (uint32_t m = 0; levels && m < p->nodes; m++) level[m] = upward(p, m, false);
  for (uint32_t k = 0; k < p->nodes; k++) {
    uint32_t n = MOST, best = DEVICES;
    double least = 0;
    choose(p, levels ? level : NULL, held);
    for (uint32_t m = 0; m < p->nodes; m++) {
      double fastest = INFINITY;
      for (uint32_t d = 0; d < p->devices; d++)
        if (p->time[m][d] >= 0) fastest = fmin(fastest, p->time[m][d]);
      for (uint32_t d = 0; held[m] && d < p->devices; d++) {
        if (!can(p, m, d)) continue;
        const double start = earliest(p, m, d, false);
        const double cost =
            levels ? start + p->time[m][d] - mean_time(p, m) - level[m] : start + p->time[m][d] - fastest;
        const bool first = n == MOST || cost < least - 1e-9;
        const bool tie = !first && n != m && fabs(cost - least) <= 1e-9 && p->precedence[m] < p->precedence[n];
        if (first || (tie && !levels)) n = m, best = d, least = cost;
      }
    }
    p->last_resort |= best == DEVICES;
    if (p->last_resort) return;
    put(p, n, best, false);
  }
}

// The example of Topcuoglu, Hariri and Wu (2002), figure 2 and table 1: HEFT's schedule takes 80. The example of
// Arabnejad and Barbosa (2014), figure 1: PEFT's takes 122, HEFT's 133.
static void example(struct plain *p, const double (*time)[3], const uint32_t (*edges)[3], uint32_t count) {
  *p = (struct plain){.nodes = 10, .devices = 3, .edges = count, .limit = {1, 1, 1}};
  for (uint32_t n = 0; n < 10; n++)
    for (uint32_t d = 0; d < 3; d++) p->time[n][d] = time[n][d];
  for (uint32_t e = 0; e < count; e++) {
    p->from[e] = edges[e][0] - 1, p->to[e] = edges[e][1] - 1, p->mean_wire[e] = edges[e][2];
    for (uint32_t a = 0; a < 3; a++)
      for (uint32_t b = 0; b < 3; b++) p->wire[e][a][b] = edges[e][2];
  }
}
static void test_examples_of_the_papers(void **state) {
  (void)state;
  static const double heft_times[10][3] = {{14, 16, 9}, {13, 19, 18}, {11, 13, 19}, {13, 8, 17},  {12, 13, 10},
                                           {13, 16, 9}, {7, 15, 11},  {5, 11, 14},  {18, 12, 20}, {21, 7, 16}};
  static const uint32_t heft_edges[][3] = {{1, 2, 18}, {1, 3, 12}, {1, 4, 9},   {1, 5, 11},  {1, 6, 14},
                                           {2, 8, 19}, {2, 9, 16}, {3, 7, 23},  {4, 8, 27},  {4, 9, 23},
                                           {5, 9, 13}, {6, 8, 15}, {7, 10, 17}, {8, 10, 11}, {9, 10, 13}};
  static const double peft_times[10][3] = {{22, 21, 36}, {22, 18, 18}, {32, 27, 43}, {7, 10, 4},  {29, 27, 35},
                                           {26, 17, 24}, {14, 25, 30}, {29, 23, 36}, {15, 21, 8}, {13, 16, 33}};
  static const uint32_t peft_edges[][3] = {{1, 2, 17}, {1, 3, 31}, {1, 4, 29}, {1, 5, 13},  {1, 6, 7},
                                           {2, 8, 3},  {2, 9, 30}, {3, 7, 16}, {4, 8, 11},  {4, 9, 7},
                                           {5, 9, 57}, {6, 8, 5},  {7, 10, 9}, {8, 10, 42}, {9, 10, 7}};
  struct plain p;
  example(&p, heft_times, heft_edges, 15);
  plain_heft(&p);
  assert_true(fabs(makespan(&p) - 80) < 1e-9);
  example(&p, peft_times, peft_edges, 15);
  plain_heft(&p);
  assert_true(fabs(makespan(&p) - 133) < 1e-9);
  example(&p, peft_times, peft_edges, 15);
  plain_peft(&p);
  assert_true(fabs(makespan(&p) - 122) < 1e-9);
}

// Makes a random problem with any times and links that differ by pair. It may have about twice as much memory as the
// nodes need and no more, links that are missing, or a hundred operations, most of which are ready at the beginning.
enum special { LIMITS, MISSING, WIDE, NOTHING };
static struct instance unlike(struct tfc_random *r, enum special special, struct plain *out) {
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  static const char *const kinds[] = {"a", "b"};
  static const char *const names[] = {"a:0", "a:1", "b:0", "b:1"};
  uint32_t kind[2], node;
  const uint32_t nodes = special == WIDE ? 100 : 8 + (uint32_t)pick(r, 20), devices = 2 + (uint32_t)pick(r, 3);
  bool read[MOST] = {0};
  MUST(tfc_cost_builder_create(&b));
  for (int k = 0; k < 2; k++) MUST(tfc_cost_builder_kind(b, tfc_str_from(kinds[k]), &kind[k]));
  for (uint32_t n = 0; n < nodes; n++) {
    char name[16];
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    const uint64_t only = pick(r, 10); // some run on one kind only
    if (only != 0) MUST(tfc_cost_builder_time(b, node, kind[0], 1 + 30 * tfc_random_unit(r)));
    if (only != 1 || devices < 3) MUST(tfc_cost_builder_time(b, node, kind[1], 1 + 30 * tfc_random_unit(r)));
    if (only == 0 && devices < 3) MUST(tfc_cost_builder_time(b, node, kind[0], 1 + 30 * tfc_random_unit(r)));
    tfc_cost_builder_memory(b, node, 1 + pick(r, 100));
    for (uint64_t inputs = !n ? 0 : special == WIDE ? !pick(r, 8) : pick(r, 3); inputs; inputs--) {
      const uint32_t from = (uint32_t)pick(r, n);
      read[from] = true;
      MUST(tfc_cost_builder_edge(b, from, (int32_t)(n * 4 + (uint32_t)inputs), n, 1 + pick(r, 20000), TFC_LIVE_ABSENT));
    }
    // The last node reads the outputs that no other node reads: otherwise many nodes would have the same rank, 0.
    for (uint32_t from = 0; n + 1 == nodes && from < n; from++)
      if (!read[from]) MUST(tfc_cost_builder_edge(b, from, 999, n, 1 + pick(r, 20000), TFC_LIVE_ABSENT));
  }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  MUST(tfc_machine_create(&i.machine));
  for (uint32_t d = 0; d < devices; d++)
    MUST(tfc_machine_add_device(
        i.machine, &(struct tfc_machine_device){.name = tfc_str_from(names[d]),
                                                .kind = tfc_str_from(kinds[d / 2]),
                                                .memory = special == LIMITS ? nodes * 100 / devices : TFC_NO_LIMIT,
                                                .label = TFC_LABEL_MODELLED}));
  for (uint32_t a = 0; a < devices; a++)
    for (uint32_t c = 0; c < devices; c++) {
      struct tfc_link l = tfc_link_default();
      if (a == c || (special == MISSING && pick(r, 5) == 0)) continue;
      l.from = tfc_str_from(names[a]), l.to = tfc_str_from(names[c]);
      l.latency_us = 3 * tfc_random_unit(r), l.bandwidth = 1e9 * (1 + 2 * tfc_random_unit(r));
      MUST(tfc_machine_add_link(i.machine, &l));
    }
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  const struct tfc_problem *p = i.problem;
  *out = (struct plain){.nodes = nodes, .devices = devices};
  for (uint32_t d = 0; d < devices; d++) out->limit[d] = (double)p->limit[d];
  for (uint32_t k = 0; k < nodes; k++) out->position[p->graph->topological[k]] = k;
  for (uint32_t n = 0; n < nodes; n++) {
    assert_int_equal(p->unit[n], n);
    out->precedence[n] = p->rank[n], out->memory[n] = (double)p->unit_memory[n];
    for (uint32_t d = 0; d < devices; d++) out->time[n][d] = (double)tfc_problem_time(p, n, d);
    for (uint32_t t = p->graph->first_tensor[n]; t < p->graph->first_tensor[n + 1]; t++)
      for (uint32_t c = p->graph->first_consumer[t]; c < p->graph->first_consumer[t + 1]; c++) {
        const uint32_t e = out->edges++;
        double pairs = 0;
        out->from[e] = n, out->to[e] = p->graph->consumer[c];
        for (uint32_t x = 0; x < devices; x++)
          for (uint32_t y = 0; y < devices; y++) {
            out->unlinked[x][y] = x != y && !tfc_problem_pair(p, x, y)->linked;
            pairs += !out->unlinked[x][y];
            if (x == y || out->unlinked[x][y]) continue; // a tensor that stays takes no time, and counts in the mean
            out->wire[e][x][y] = (double)tfc_problem_wire_time(p, t, tfc_problem_pair(p, x, y));
            out->mean_wire[e] += out->wire[e][x][y];
          }
        out->mean_wire[e] /= pairs;
      }
  }
  return i;
}

// The order of the schedule, the problem's own, or the longest path first: the best of these is the answer's.
static void check_order(const struct tfc_problem *p, const struct plain *plain, const struct tfc_solution *s) {
  uint32_t rank[3][MOST];
  int64_t best = TFC_TIME_MAX;
  for (uint32_t n = 0; n < plain->nodes; n++) {
    rank[0][n] = 0, rank[1][n] = plain->precedence[n];
    for (uint32_t m = 0; m < plain->nodes; m++)
      rank[0][n] += plain->start[m] < plain->start[n] ||
                    (plain->start[m] == plain->start[n] && plain->position[m] < plain->position[n]);
  }
  assert_ok(tfc_local_rerank(p, s->device, NULL, rank[2]));
  for (int k = 0; k < 3; k++) {
    const int64_t value = score_of(p, &(struct tfc_solution){.device = s->device, .rank = rank[k]}).value;
    if (value < best) best = value;
  }
  assert_int_equal(score_of(p, s).value, best);
}

static void test_list_schedulers(void **state) {
  (void)state;
  static const char *const names[] = {"heft", "peft", "m-etf", "dls"};
  uint32_t compared = 0, wide = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    struct tfc_random r;
    struct plain plain, p;
    tfc_random_init(&r, seed);
    struct instance i = unlike(&r, (enum special)(seed % 4), &plain);
    for (int k = 0; k < 4; k++) {
      const struct tfc_algo *algo = tfc_algo_find(tfc_str_from(names[k]));
      struct tfc_solution s = {0};
      uint64_t used = 0;
      const struct tfc_budget budget = {.seed = 1, .threads = 1};
      bool several = false;
      p = plain;
      k == 0 ? plain_heft(&p) : k == 1 ? plain_peft(&p) : plain_pairs(&p, k == 3);
      if (p.last_resort || p.tied) continue;
      MUST(tfc_solution_init(&s, i.problem));
      assert_ok(algo->propose(i.problem, NULL, &budget, &s, &used));
      for (uint32_t n = 0; n < p.nodes; n++) {
        if (s.device[n] != p.on[n])
          fail_msg("%s, case %d: node %u is on %u, not %u", names[k], (int)seed, n, s.device[n], p.on[n]);
        several = several || s.device[n] != s.device[0];
      }
      check_order(i.problem, &p, &s);
      compared++, wide += several;
      tfc_solution_deinit(&s);
    }
    instance_free(&i);
  }
  assert_true(compared > 180 && wide > 150);
}

// --- simple rivals -------------------------------------------------------------------------------------------------

static int64_t value_of(const struct tfc_problem *p, const tfc_device_id *device) {
  struct tfc_simulator *sim = NULL;
  struct tfc_verdict v = {0};
  MUST(tfc_simulator_create(p, &sim));
  tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
  tfc_simulator_free(sim);
  return v.value;
}
static void run(const struct tfc_problem *p, const char *name, uint64_t evaluations, struct tfc_solution *s) {
  uint64_t used = 0;
  const struct tfc_budget budget = {.seed = 9, .threads = 1, .evaluations = evaluations};
  MUST(tfc_solution_init(s, p));
  assert_ok(tfc_algo_find(tfc_str_from(name))->propose(p, NULL, &budget, s, &used));
}

static void test_simple(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct tfc_random r;
    struct plain plain;
    struct tfc_solution s = {0};
    tfc_device_id device[MOST];
    int64_t best = TFC_TIME_MAX;
    tfc_random_init(&r, seed);
    struct instance i = unlike(&r, NOTHING, &plain);
    const struct tfc_problem *p = i.problem;
    // One device: the fastest; what cannot run there is on the next device that can.
    for (uint32_t home = 0; home < p->device_count; home++) {
      for (uint32_t u = 0; u < p->unit_count; u++) {
        uint32_t d = home;
        while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count;
        device[u] = (tfc_device_id)d;
      }
      if (value_of(p, device) < best) best = value_of(p, device);
    }
    run(p, "single", 0, &s);
    assert_int_equal(value_of(p, s.device), best);
    tfc_solution_deinit(&s);
    // "round-robin": the units get the devices in turn.
    run(p, "round-robin", 0, &s);
    for (uint32_t k = 0; k < p->node_count; k++) {
      const uint32_t n = p->graph->topological[k];
      uint32_t d = k % p->device_count;
      while (!tfc_problem_allows(p, n, d)) d = (d + 1) % p->device_count;
      assert_int_equal(s.device[n], d);
    }
    tfc_solution_deinit(&s);
    // Random: the best of 50, drawn again here.
    struct tfc_random again;
    tfc_random_init(&again, 9);
    best = TFC_TIME_MAX;
    for (int k = 0; k < 50; k++) {
      for (uint32_t u = 0; u < p->unit_count; u++) {
        uint32_t d = (uint32_t)tfc_random_below(&again, p->device_count);
        while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count;
        device[u] = (tfc_device_id)d;
      }
      if (value_of(p, device) < best) best = value_of(p, device);
    }
    run(p, "random", 50, &s);
    assert_int_equal(value_of(p, s.device), best);
    tfc_solution_deinit(&s);
    instance_free(&i);
  }
}

// Makes a chain of twelve operations. `slow`: the second of two devices takes twice as long for each.
static struct instance chain(bool memory, bool slow) {
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  uint32_t kind[2], node;
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("a"), &kind[0]));
  MUST(tfc_cost_builder_kind(b, TFC_STR("b"), &kind[1]));
  for (uint32_t n = 0; n < 12; n++) {
    char name[16];
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, kind[0], 10));
    MUST(tfc_cost_builder_time(b, node, kind[1], 20));
    if (memory) tfc_cost_builder_memory(b, node, 10);
    if (n) MUST(tfc_cost_builder_edge(b, n - 1, 0, n, 100, TFC_LIVE_ABSENT));
  }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  MUST(tfc_machine_create(&i.machine));
  for (uint32_t d = 0; d < (slow ? 2 : 3); d++) {
    char name[16];
    snprintf(name, sizeof name, "%s:%u", slow && d ? "b" : "a", d);
    MUST(tfc_machine_add_device(i.machine, &(struct tfc_machine_device){.name = tfc_str_from(name),
                                                                        .kind = slow && d ? TFC_STR("b") : TFC_STR("a"),
                                                                        .memory = TFC_NO_LIMIT,
                                                                        .label = TFC_LABEL_MODELLED}));
  }
  struct tfc_link l = tfc_link_default();
  MUST(tfc_machine_add_link(i.machine, &l));
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  return i;
}
// Expects the first `a` operations of the chain on device 0, the next `b` on device 1, and the last `c` on device 2.
static void cut(const struct instance *i, const char *name, uint32_t a, uint32_t b, uint32_t c) {
  struct tfc_solution s = {0};
  run(i->problem, name, 0, &s);
  for (uint32_t n = 0; n < 12; n++)
    if (s.device[n] != (n < a ? 0u : n < a + b ? 1u : 2u))
      fail_msg("%s: node %u is on device %u, not as %u, %u, %u", name, n, s.device[n], a, b, c);
  assert_int_equal(a + b + c, 12);
  tfc_solution_deinit(&s);
}
static void test_cuts(void **state) {
  (void)state;
  struct instance even = chain(false, false), full = chain(true, false), slow = chain(false, true);
  cut(&even, "split", 4, 4, 4);
  cut(&slow, "split", 8, 4, 0); // both devices get the same amount of work
  cut(&even, "m-topo", 4, 4, 4);
  cut(&full, "m-topo", 5, 5, 2); // a third of 120 bytes and the largest operation's 10
  instance_free(&even), instance_free(&full), instance_free(&slow);
}

// Partitions of two sets of twelve operations with an edge between every two, and one edge between the sets: the sets
// stay whole, and each has a device.
static void test_partitions(void **state) {
  (void)state;
  static const char *const names[] = {"metis", "scotch"};
  enum { SIZE = 12 };
  for (int objective = 0; objective < 2; objective++) {
    struct instance i = {0};
    struct tfc_cost_builder *b = NULL;
    struct tfc_link l = tfc_link_default();
    uint32_t acc, node;
    MUST(tfc_cost_builder_create(&b));
    MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
    for (uint32_t n = 0; n < 2 * SIZE; n++) {
      char name[16];
      snprintf(name, sizeof name, "n%u", n);
      MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
      MUST(tfc_cost_builder_time(b, node, acc, 10));
      for (uint32_t m = n % 2; m < n; m += 2) // the even numbers are one set, the odd numbers the other
        MUST(tfc_cost_builder_edge(b, m, (int32_t)n, n, 1000000, TFC_LIVE_ABSENT));
      if (n == 9) MUST(tfc_cost_builder_edge(b, 8, 99, n, 10, TFC_LIVE_ABSENT));
    }
    MUST(tfc_cost_builder_finish(b, &i.graph));
    tfc_cost_builder_free(b);
    l.latency_us = 5, l.bandwidth = 1e9;
    i.machine = even_machine(2, NULL, &l);
    MUST(tfc_problem_create(i.graph, i.machine, (tfc_objective)objective, &i.problem));
    for (int k = 0; k < 2; k++) {
      struct tfc_solution s = {0};
      run(i.problem, names[k], 2000, &s);
      for (uint32_t n = 2; n < 2 * SIZE; n++)
        if (s.device[n] != s.device[n % 2]) fail_msg("%s divides a set", names[k]);
      if (s.device[0] == s.device[1]) fail_msg("%s leaves a device idle", names[k]);
      tfc_solution_deinit(&s);
    }
    instance_free(&i);
  }
}

// Whether an operation "hangs", that is, only prepares something: another operation reads it, and it has no inputs, or
// an input that hangs.
static bool hangs(const struct plain *p, uint32_t n) {
  uint32_t inputs = 0, from = 0, readers = 0;
  for (uint32_t e = 0; e < p->edges; e++) {
    if (p->to[e] == n) inputs++, from = p->from[e];
    readers += p->from[e] == n;
  }
  return readers && (!inputs || (inputs == 1 && hangs(p, from)));
}
// Whether `m` reads `n`, or reads something that hangs and comes from `n`.
static bool needs(const struct plain *p, uint32_t m, uint32_t n) {
  for (uint32_t e = 0; e < p->edges; e++)
    if (p->to[e] == m && (p->from[e] == n || (hangs(p, p->from[e]) && needs(p, p->from[e], n)))) return true;
  return false;
}

// Orders of units are topological. What hangs comes right before the first operation that needs it.
static void test_orders_of_units(void **state) {
  (void)state;
  uint32_t hanging = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    struct tfc_random r;
    struct plain plain;
    uint32_t order[MOST], at[MOST];
    tfc_random_init(&r, seed);
    struct instance i = unlike(&r, NOTHING, &plain);
    for (int depth = 0; depth < 2; depth++) {
      assert_ok(tfc_order_units(i.problem, depth, order));
      memset(at, 0xff, sizeof at);
      for (uint32_t k = 0; k < plain.nodes; k++) {
        assert_true(order[k] < plain.nodes && at[order[k]] == TFC_NONE);
        at[order[k]] = k;
      }
      for (uint32_t e = 0; e < plain.edges; e++) assert_true(at[plain.from[e]] < at[plain.to[e]]);
      for (uint32_t n = 0; n < plain.nodes; n++) {
        uint32_t next = at[n] + 1;
        if (!hangs(&plain, n)) continue;
        while (next < plain.nodes && hangs(&plain, order[next])) next++;
        assert_true(next < plain.nodes && needs(&plain, order[next], n));
        hanging++;
      }
    }
    instance_free(&i);
  }
  assert_true(hanging > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples_of_the_papers),
                                     cmocka_unit_test(test_list_schedulers),
                                     cmocka_unit_test(test_simple),
                                     cmocka_unit_test(test_cuts),
                                     cmocka_unit_test(test_partitions),
                                     cmocka_unit_test(test_orders_of_units)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
