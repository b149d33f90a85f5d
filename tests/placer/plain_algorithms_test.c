// Plain second versions of the simple algorithms, and of the orders and graphs from which others begin, on random
// problems with groups, kinds of devices, pins, memory limits and links that differ or are missing; and small problems
// whose answers follow by hand.
#include "tests/common/test.h"

#include "placer/algo/fold.h"
#include "placer/algo/lister.h"
#include "placer/algo/order.h"
#include "placer/algo/partition.h"
#include "placer/search/local.h"
#include "tests/placer/instances.h"

enum { MOST = 64, SEED = 9 };

// What an algorithm reported while it ran.
struct reports {
  uint32_t count;
  bool falls; // each report is better than the one before
  struct tfc_score last;
};
static void note(void *user, uint64_t excess, int64_t value) {
  struct reports *r = user;
  const struct tfc_score score = {excess, value};
  r->falls = r->falls && (!r->count || tfc_score_better(score, r->last));
  r->last = score, r->count++;
}
static uint64_t run(const struct tfc_problem *p, const char *name, uint64_t evaluations, struct tfc_solution *s,
                    struct reports *reports) {
  uint64_t used = 0;
  struct tfc_budget budget = {.seed = SEED, .threads = 1, .evaluations = evaluations};
  if (reports) *reports = (struct reports){.falls = true}, budget.found = note, budget.found_user = reports;
  *s = (struct tfc_solution){0};
  MUST(tfc_solution_init(s, p));
  assert_ok(tfc_algo_find(tfc_str_from(name))->propose(p, NULL, &budget, s, &used));
  return used;
}
static struct tfc_score score(const struct tfc_problem *p, tfc_device_id *device) {
  return score_of(p, &(struct tfc_solution){.device = device});
}
static bool equal(struct tfc_score a, struct tfc_score b) {
  return !tfc_score_better(a, b) && !tfc_score_better(b, a);
}
static uint32_t allowed_from(const struct tfc_problem *p, uint32_t unit, uint32_t device) {
  while (!tfc_problem_allows(p, unit, device)) device = device + 1 < p->device_count ? device + 1 : 0;
  return device;
}
static void repair(const struct tfc_problem *p, struct tfc_random *r, tfc_device_id *device) {
  if (p->has_missing_links || p->has_limits) tfc_local_repair(p, r, device, NULL);
}
static void same(const struct tfc_problem *p, const char *name, uint64_t number, const tfc_device_id *device,
                 const tfc_device_id *expected) {
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (device[u] != expected[u])
      fail_msg("%s, case %llu: unit %u is on %u, not %u", name, (unsigned long long)number, u, device[u], expected[u]);
}

static void check_single(const struct tfc_problem *p, uint64_t number) {
  struct tfc_random r;
  struct tfc_solution s;
  tfc_device_id device[MOST];
  struct tfc_score best = TFC_SCORE_NONE, first = TFC_SCORE_NONE;
  uint64_t homes = 0;
  tfc_random_init(&r, SEED);
  for (uint32_t home = 0; home < p->device_count; home++) {
    bool whole = true;
    if (p->twin[home] != home) continue;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      device[u] = (tfc_device_id)allowed_from(p, u, home);
      whole = whole && device[u] == home;
    }
    if (!whole) tfc_local_repair(p, &r, device, NULL);
    if (!homes++) first = score(p, device);
    if (tfc_score_better(score(p, device), best)) best = score(p, device);
  }
  assert_int_equal(run(p, "single", 0, &s, NULL), homes);
  if (!equal(score(p, s.device), best)) fail_msg("single, case %llu", (unsigned long long)number);
  tfc_solution_deinit(&s);
  assert_int_equal(run(p, "single", 1, &s, NULL), 1); // one evaluation: the first device alone
  assert_true(equal(score(p, s.device), first));
  tfc_solution_deinit(&s);
}

static void check_robin(const struct tfc_problem *p, uint64_t number) {
  struct tfc_random r;
  struct tfc_solution s;
  tfc_device_id device[MOST];
  bool seen[MOST] = {0};
  uint32_t turn = 0;
  for (uint32_t k = 0; k < p->node_count; k++) {
    const uint32_t u = p->unit[p->graph->topological[k]];
    if (seen[u]) continue;
    seen[u] = true, device[u] = (tfc_device_id)allowed_from(p, u, turn);
    turn = turn + 1 < p->device_count ? turn + 1 : 0;
  }
  tfc_random_init(&r, SEED);
  repair(p, &r, device);
  run(p, "round-robin", 0, &s, NULL);
  same(p, "round-robin", number, s.device, device);
  tfc_solution_deinit(&s);
}

static void check_random(const struct tfc_problem *p, uint64_t number) {
  struct tfc_random r;
  struct tfc_solution s;
  struct reports reports;
  tfc_device_id device[MOST], kept[MOST];
  struct tfc_score best = TFC_SCORE_NONE;
  tfc_random_init(&r, SEED);
  for (int k = 0; k < 40; k++) {
    for (uint32_t u = 0; u < p->unit_count; u++)
      device[u] = (tfc_device_id)allowed_from(p, u, (uint32_t)tfc_random_below(&r, p->device_count));
    repair(p, &r, device);
    if (k && !tfc_score_better(score(p, device), best)) continue;
    best = score(p, device);
    memcpy(kept, device, sizeof kept);
  }
  assert_int_equal(run(p, "random", 40, &s, &reports), 40);
  same(p, "random", number, s.device, kept);
  if (best.value != TFC_TIME_MAX) {
    assert_true(reports.falls && reports.count);
    assert_true(equal(reports.last, best));
  }
  tfc_solution_deinit(&s);
}

// m-TOPO: a device is full when it has its share and, by memory, as much as the largest unit more.
static void check_topo(const struct tfc_problem *p, uint64_t number) {
  struct tfc_random r;
  struct tfc_solution s;
  tfc_device_id device[MOST];
  uint32_t order[MOST], at = 0;
  double sum = 0, most = 0, held = 0;
  assert_ok(tfc_order_units(p, false, order));
  for (uint32_t u = 0; u < p->unit_count; u++)
    sum += (double)p->unit_memory[u], most = fmax(most, (double)p->unit_memory[u]);
  const bool memory = sum > 0;
  const double share = memory ? sum / p->device_count + most : (double)p->total_fastest / p->device_count;
  for (uint32_t k = 0; k < p->unit_count; k++) {
    const uint32_t u = order[k];
    const bool here = tfc_problem_allows(p, u, at);
    const double size = memory ? (double)p->unit_memory[u] : here ? (double)tfc_problem_unit_time(p, u, at) : 0;
    if (here && at != p->device_count - 1 && !(held + size <= share)) at++, held = 0;
    device[u] = (tfc_device_id)allowed_from(p, u, at);
    if (device[u] == at) held += size;
  }
  tfc_random_init(&r, SEED);
  repair(p, &r, device);
  run(p, "m-topo", 0, &s, NULL);
  same(p, "m-topo", number, s.device, device);
  tfc_solution_deinit(&s);
}

// Runs of an order up to a length: a device takes a unit while the middle of the unit's time is within the length and
// its memory suffices. Returns the last device's time.
static double cut(const struct tfc_problem *p, const uint32_t *order, double length, tfc_device_id *device) {
  double load = 0, last = 0;
  uint64_t memory = 0;
  uint32_t at = 0;
  for (uint32_t k = 0; k < p->unit_count; k++) {
    const uint32_t u = order[k];
    uint32_t d = allowed_from(p, u, at);
    if (d == at) {
      const bool fits =
          load + (double)tfc_problem_unit_time(p, u, at) / 2 <= length && memory + p->unit_memory[u] <= p->limit[at];
      if (!fits && at != p->device_count - 1) d = allowed_from(p, u, ++at), load = 0, memory = 0;
      load += (double)tfc_problem_unit_time(p, u, d), memory += p->unit_memory[u];
    }
    device[u] = (tfc_device_id)d;
  }
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (device[u] == p->device_count - 1) last += (double)tfc_problem_unit_time(p, u, p->device_count - 1);
  return last;
}
static void check_split(const struct tfc_problem *p, uint64_t number) {
  struct tfc_random r;
  struct tfc_solution s;
  tfc_device_id device[2][MOST];
  struct tfc_score scores[2];
  tfc_random_init(&r, SEED);
  for (int k = 0; k < 2; k++) { // depth first, then breadth first
    uint32_t order[MOST];
    double length[2] = {0, (double)p->total_fastest * 1.01 + 1};
    assert_ok(tfc_order_units(p, !k, order));
    for (int step = 0; step < 10; step++) {
      const double middle = 0.5 * (length[0] + length[1]);
      length[cut(p, order, middle, device[k]) <= middle] = middle;
    }
    cut(p, order, length[1], device[k]);
    repair(p, &r, device[k]);
    scores[k] = score(p, device[k]);
  }
  assert_int_equal(run(p, "split", 0, &s, NULL), 2);
  same(p, "split", number, s.device, device[tfc_score_better(scores[1], scores[0])]);
  tfc_solution_deinit(&s);
  assert_int_equal(run(p, "split", 1, &s, NULL), 1);
  same(p, "split", number, s.device, device[0]);
  tfc_solution_deinit(&s);
}

// --- orders of units -----------------------------------------------------------------------------------------------

struct walk {
  const struct tfc_problem *p;
  uint32_t *order, count, missing[MOST]; // [node] inputs that are not there yet
  bool gone[MOST], listed[MOST];
};
static uint32_t input_of(const struct tfc_cost_graph *g, uint32_t n, uint32_t k) {
  return g->producer[g->input[g->first_input[n] + k]];
}
static uint32_t inputs_of(const struct tfc_cost_graph *g, uint32_t n) {
  return g->first_input[n + 1] - g->first_input[n];
}
// Whether a node only prepares something for others: it is read, and has no inputs or one that prepares, too.
static bool prepares[MOST];
static void find_preparing(const struct tfc_cost_graph *g) {
  bool read[MOST] = {0};
  for (uint32_t m = 0; m < g->node_count; m++)
    for (uint32_t k = 0; k < inputs_of(g, m); k++) read[input_of(g, m, k)] = true;
  for (uint32_t k = 0; k < g->node_count; k++) {
    const uint32_t n = g->topological[k];
    prepares[n] = read[n] && (inputs_of(g, n) == 0 || (inputs_of(g, n) == 1 && prepares[input_of(g, n, 0)]));
  }
}
static void list(struct walk *w, uint32_t n) {
  const struct tfc_cost_graph *g = w->p->graph;
  if (w->gone[n]) return;
  w->gone[n] = true;
  for (uint32_t k = 0; k < inputs_of(g, n); k++)
    if (prepares[input_of(g, n, k)]) list(w, input_of(g, n, k));
  const uint32_t u = w->p->unit[n];
  if (!w->listed[u]) w->listed[u] = true, w->order[w->count++] = u;
}
static void go_down(struct walk *w, uint32_t n) {
  const struct tfc_cost_graph *g = w->p->graph;
  uint32_t next[MOST], count = 0;
  list(w, n);
  for (uint32_t c = g->first_consumer[g->first_tensor[n]]; c < g->first_consumer[g->first_tensor[n + 1]]; c++)
    if (--w->missing[g->consumer[c]] == 0) next[count++] = g->consumer[c];
  while (count) go_down(w, next[--count]);
}
static void check_orders(const struct tfc_problem *p, uint64_t number) {
  const struct tfc_cost_graph *g = p->graph;
  find_preparing(g);
  for (int depth = 0; depth < 2; depth++) {
    uint32_t order[MOST], expected[MOST], roots[MOST], count = 0;
    struct walk w = {.p = p, .order = expected};
    assert_ok(tfc_order_units(p, depth, order));
    for (uint32_t n = 0; n < p->node_count; n++)
      for (uint32_t k = 0; k < inputs_of(g, n); k++) w.missing[n] += !prepares[input_of(g, n, k)];
    for (uint32_t k = 0; k < p->node_count; k++) {
      const uint32_t n = g->topological[k];
      if (prepares[n]) continue;
      if (!depth) list(&w, n);
      if (!w.missing[n]) roots[count++] = n;
    }
    for (uint32_t k = 0; depth && k < count; k++) go_down(&w, roots[k]);
    assert_int_equal(w.count, p->unit_count);
    for (uint32_t k = 0; k < p->unit_count; k++)
      if (order[k] != expected[k])
        fail_msg("case %llu, %s first: %u at %u, not %u", (unsigned long long)number, depth ? "depth" : "breadth",
                 order[k], k, expected[k]);
  }
}

// The folded order: units of the backward pass alone settle at the weighted mean of their neighbours, in 20 rounds.
static bool check_fold(const struct tfc_problem *p, uint64_t number) {
  const struct tfc_cost_graph *g = p->graph;
  static long double weight[MOST][MOST];
  long double at[MOST];
  uint32_t plain[MOST], order[MOST], where[MOST];
  bool back[MOST] = {0}, only[MOST], any = false, folded;
  assert_ok(tfc_order_units(p, false, plain));
  assert_ok(tfc_order_folded(p, &folded, order));
  memset(weight, 0, sizeof weight);
  for (uint32_t k = 0; k < p->unit_count; k++) at[plain[k]] = k, where[plain[k]] = k, only[plain[k]] = true;
  for (uint32_t k = 0; k < p->node_count; k++) {
    const uint32_t n = g->topological[k];
    for (uint32_t i = 0; i < inputs_of(g, n); i++) {
      const uint32_t m = input_of(g, n, i);
      back[n] = back[n] || back[m] || where[p->unit[m]] > where[p->unit[n]];
    }
    if (!back[n]) only[p->unit[n]] = false;
    any = any || back[n];
  }
  assert_int_equal(folded, any);
  if (!any) {
    assert_memory_equal(order, plain, sizeof *order * p->unit_count);
    return false;
  }
  for (uint32_t t = 0; t < p->tensor_count; t++) { // bytes between units: each tensor's, divided by its readers
    bool reads[MOST] = {0};
    uint32_t from = 0, readers = 0;
    for (uint32_t n = 0; n < p->node_count; n++)
      if (t >= g->first_tensor[n] && t < g->first_tensor[n + 1]) from = p->unit[n];
    for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++)
      if (p->unit[g->consumer[c]] != from) reads[p->unit[g->consumer[c]]] = true;
    for (uint32_t u = 0; u < p->unit_count; u++) readers += reads[u];
    for (uint32_t u = 0; u < p->unit_count; u++)
      if (reads[u]) {
        weight[u][from] += (long double)(g->bytes[t] + 1) / readers;
        weight[from][u] += (long double)(g->bytes[t] + 1) / readers;
      }
  }
  for (int round = 0; round < 20; round++) {
    long double next[MOST] = {0};
    for (uint32_t u = 0; u < p->unit_count; u++) {
      long double sum = 0, all = 0;
      for (uint32_t v = 0; v < p->unit_count; v++)
        if (round || !only[v]) sum += weight[u][v] * at[v], all += weight[u][v];
      next[u] = only[u] && all > 0 ? sum / all : at[u];
    }
    memcpy(at, next, sizeof at);
  }
  for (uint32_t k = 0; k + 1 < p->unit_count; k++)
    if (at[order[k]] > at[order[k + 1]] + 1e-9L)
      fail_msg("case %llu: unit %u is before %u, but belongs behind it", (unsigned long long)number, order[k],
               order[k + 1]);
  return true;
}

static void test_second_versions(void **state) {
  (void)state;
  uint32_t folded = 0;
  for (uint64_t number = 0; number < 60; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 4200 + number);
    const uint32_t rich = number % 5 ? (uint32_t)pick(&r, RICH_ALL + 1) : RICH_GROUPS | RICH_KINDS;
    struct instance i = random_instance(&r, 3 + (uint32_t)pick(&r, 50), 1 + (uint32_t)pick(&r, 5), rich,
                                        number % 3 ? TFC_OBJECTIVE_STEP : TFC_OBJECTIVE_THROUGHPUT);
    assert_true(i.problem->node_count <= MOST);
    check_single(i.problem, number);
    check_robin(i.problem, number);
    check_random(i.problem, number);
    check_topo(i.problem, number);
    check_split(i.problem, number);
    check_orders(i.problem, number);
    folded += check_fold(i.problem, number);
    instance_free(&i);
  }
  assert_true(folded > 8);
}

// --- partitions ----------------------------------------------------------------------------------------------------

// The graph of units: an edge weighs its time on the wire, spread over a tensor's readers, in shares of the heaviest.
static void check_graph(const struct tfc_problem *p) {
  static double weight[MOST][MOST];
  double heaviest = 0, work = 0, memory = 0, fastest[MOST];
  const struct tfc_pair *pair = NULL;
  struct tfc_partition_graph g;
  int32_t edges = 0;
  memset(weight, 0, sizeof weight);
  for (uint32_t k = p->device_count * p->device_count; k-- > 0;)
    if (p->pair[k].linked) pair = &p->pair[k]; // the first
  for (uint32_t n = 0; n < p->net_count; n++) {
    const uint32_t from = p->unit[p->graph->producer[p->net_tensor[n]]];
    const double time = pair ? (double)tfc_problem_wire_time(p, p->net_tensor[n], pair) : 1;
    for (uint32_t j = p->net_first[n]; j < p->net_first[n + 1]; j++) {
      const double part = time / (p->net_first[n + 1] - p->net_first[n]);
      weight[from][p->net_unit[j]] += part, weight[p->net_unit[j]][from] += part;
    }
  }
  for (uint32_t u = 0; u < p->unit_count; u++) {
    fastest[u] = INFINITY;
    for (uint32_t d = 0; d < p->device_count; d++)
      if (tfc_problem_unit_time(p, u, d) >= 0) fastest[u] = fmin(fastest[u], (double)tfc_problem_unit_time(p, u, d));
    work += fastest[u], memory += (double)p->unit_memory[u];
    for (uint32_t v = 0; v < p->unit_count; v++) heaviest = fmax(heaviest, weight[u][v]);
  }
  assert_ok(tfc_partition_graph_make(p, &g));
  assert_int_equal(g.vertex_count, p->unit_count);
  assert_int_equal(g.first[0], 0);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    bool seen[MOST] = {0};
    assert_true(fabs(g.weight[u] - (1 + floor(fastest[u] / (work + 1) * 1e8))) <= 1);
    assert_true(fabs(g.memory[u] - (1 + floor((double)p->unit_memory[u] / (memory + 1) * 1e8))) <= 1);
    for (int32_t e = g.first[u]; e < g.first[u + 1]; e++, edges++) {
      assert_true(g.to[e] >= 0 && g.to[e] < g.vertex_count && !seen[g.to[e]] && g.to[e] != (int32_t)u);
      seen[g.to[e]] = true;
      assert_true(e == g.first[u] || g.to[e - 1] < g.to[e]);
      // at least 1, and rounded down
      assert_true(fabs(g.edge_weight[e] - (0.5 + weight[u][g.to[e]] / (heaviest + 1) * 10000)) < 0.51);
    }
    for (uint32_t v = 0; v < p->unit_count; v++)
      if (weight[u][v] > 0) assert_true(seen[v]);
  }
  assert_int_equal(edges, g.edge_count);
  tfc_partition_graph_free(&g);
}
static void check_shares(const struct tfc_problem *p) {
  double share[TFC_MAX_DEVICES], expected[TFC_MAX_DEVICES], sum = 0;
  for (uint32_t d = 0; d < p->device_count; d++) {
    double best = 0, own = 0;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      double least = INFINITY;
      if (tfc_problem_unit_time(p, u, d) < 0) continue;
      for (uint32_t e = 0; e < p->device_count; e++)
        if (tfc_problem_unit_time(p, u, e) >= 0) least = fmin(least, (double)tfc_problem_unit_time(p, u, e));
      best += least, own += (double)tfc_problem_unit_time(p, u, d);
    }
    expected[d] = fmax(0.001, own > 0 && best > 0 ? best / own : 0.01), sum += expected[d];
  }
  tfc_partition_shares(p, share);
  for (uint32_t d = 0; d < p->device_count; d++) assert_true(fabs(share[d] - expected[d] / sum) < 1e-12);
}
static void check_parts(const struct tfc_problem *p, struct tfc_random *r) {
  int32_t part[MOST];
  tfc_device_id device[MOST], expected[MOST];
  struct tfc_random again;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    part[u] = (int32_t)pick(r, p->device_count);
    expected[u] = (tfc_device_id)allowed_from(p, u, (uint32_t)part[u]);
  }
  tfc_random_init(&again, 77);
  repair(p, &again, expected);
  tfc_partition_place(p, 77, part, device);
  assert_memory_equal(device, expected, sizeof *device * p->unit_count);
}

static void test_graphs_of_units(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 60; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 900 + number);
    struct instance i = random_instance(&r, 2 + (uint32_t)pick(&r, 40), 1 + (uint32_t)pick(&r, 5),
                                        (uint32_t)pick(&r, RICH_ALL + 1), TFC_OBJECTIVE_STEP);
    check_graph(i.problem);
    check_shares(i.problem);
    check_parts(i.problem, &r);
    instance_free(&i);
  }
}

// Problems by hand: nodes that run on the kinds "a" and "b", in the given times.
static struct tfc_cost_builder *builder;
static uint32_t kinds[2], nodes;
static void begin(void) {
  MUST(tfc_cost_builder_create(&builder));
  MUST(tfc_cost_builder_kind(builder, TFC_STR("a"), &kinds[0]));
  MUST(tfc_cost_builder_kind(builder, TFC_STR("b"), &kinds[1]));
  nodes = 0;
}
static uint32_t add(double on_a, double on_b, uint64_t memory, const char *pin) {
  char name[16];
  uint32_t node;
  snprintf(name, sizeof name, "n%u", nodes++);
  MUST(tfc_cost_builder_node(builder, tfc_str_from(name), &node));
  MUST(tfc_cost_builder_time(builder, node, kinds[0], on_a));
  MUST(tfc_cost_builder_time(builder, node, kinds[1], on_b));
  tfc_cost_builder_memory(builder, node, memory);
  if (pin) MUST(tfc_cost_builder_pin(builder, node, tfc_str_from(pin)));
  return node;
}
static void edge(uint32_t from, uint32_t to, uint64_t bytes) {
  MUST(tfc_cost_builder_edge(builder, from, 0, to, bytes, TFC_LIVE_ABSENT));
}
// Devices by name, with a limit of memory each (NULL: none), linked at 1 MB/s: a byte takes a microsecond.
static struct instance finish(const char *const *names, const uint64_t *limits, uint32_t count,
                              tfc_objective objective) {
  struct instance i = {0};
  struct tfc_link l = tfc_link_default();
  MUST(tfc_cost_builder_finish(builder, &i.graph));
  tfc_cost_builder_free(builder);
  MUST(tfc_machine_create(&i.machine));
  for (uint32_t d = 0; d < count; d++)
    MUST(tfc_machine_add_device(i.machine,
                                &(struct tfc_machine_device){.name = tfc_str_from(names[d]),
                                                             .kind = names[d][0] == 'a' ? TFC_STR("a") : TFC_STR("b"),
                                                             .memory = limits ? limits[d] : TFC_NO_LIMIT,
                                                             .label = TFC_LABEL_MODELLED}));
  l.bandwidth = 1e6;
  MUST(tfc_machine_add_link(i.machine, &l));
  MUST(tfc_problem_create(i.graph, i.machine, objective, &i.problem));
  return i;
}

// A chain of 60 operations that take twice as long on the second device: it gets a third of them, in one piece or
// nearly so. METIS is not asked about very few operations: they are dealt out in turn.
static void test_unlike_parts(void **state) {
  (void)state;
  static const char *const names[] = {"a:0", "b:0"}, *const algorithms[] = {"metis", "scotch"};
  struct instance i;
  struct tfc_solution s;
  begin();
  for (uint32_t n = 0; n < 60; n++) {
    const uint32_t node = add(10, 20, 0, NULL);
    if (n) edge(node - 1, node, 100);
  }
  i = finish(names, NULL, 2, TFC_OBJECTIVE_STEP);
  for (int k = 0; k < 2; k++) {
    uint32_t slow = 0, cuts = 0;
    run(i.problem, algorithms[k], 0, &s, NULL);
    for (uint32_t n = 0; n < 60; n++) slow += s.device[n], cuts += n && s.device[n] != s.device[n - 1];
    if (slow < 17 || slow > 23 || cuts > 3)
      fail_msg("%s: %u of 60 on the slow device, %u cuts", algorithms[k], slow, cuts);
    tfc_solution_deinit(&s);
  }
  instance_free(&i);
  for (uint32_t count = 1; count <= 6; count++) {
    begin();
    for (uint32_t n = 0; n < count; n++) {
      const uint32_t node = add(10, 20, 0, NULL);
      if (n) edge(node - 1, node, 100);
    }
    i = finish(names, NULL, 2, TFC_OBJECTIVE_STEP);
    run(i.problem, "metis", 0, &s, NULL);
    for (uint32_t n = 0; n < count; n++) assert_int_equal(s.device[n], n % 2);
    tfc_solution_deinit(&s);
    instance_free(&i);
  }
}

// --- list scheduling ------------------------------------------------------------------------------------------------

// Where nothing has room for a unit, the device with the most memory left gets it.
static void test_last_resort(void **state) {
  (void)state;
  static const char *const names[] = {"a:0", "a:1", "b:0"};
  static const uint64_t limits[] = {100, 200, 190};
  struct tfc_lister l;
  begin();
  add(10, 10, 5, NULL), add(10, 10, 20, NULL), add(10, 10, 500, NULL), add(10, 10, 500, "a:0");
  edge(0, 1, 7);
  struct instance i = finish(names, limits, 3, TFC_OBJECTIVE_STEP);
  MUST(tfc_lister_init(&l, i.problem, false));
  assert_int_equal(l.ready_count, 3);
  assert_true(tfc_lister_can(&l, 0, 0) && !tfc_lister_can(&l, 2, 1));
  assert_int_equal(tfc_lister_last_resort(&l, 2), 1); // 200 bytes are left there
  assert_int_equal(tfc_lister_last_resort(&l, 3), 0); // it may be nowhere else
  assert_true(tfc_lister_put(&l, 0, 0));
  assert_int_equal(l.ready[3], 1);
  assert_int_equal(tfc_lister_start(&l, 1, 0), 10000000); // ps
  assert_int_equal(tfc_lister_start(&l, 1, 1), 17000000); // behind the transfer
  assert_true(tfc_lister_put(&l, 1, 1));
  assert_int_equal(l.finish[1], 27000000);
  assert_int_equal(tfc_lister_last_resort(&l, 2), 2); // 190 bytes against 180
  assert_int_equal(tfc_lister_last_resort(&l, 1), 1); // where it is
  assert_true(tfc_lister_can(&l, 1, 1) && !tfc_lister_can(&l, 1, 2));
  tfc_lister_deinit(&l);
  instance_free(&i);
}

// A node may not go where no link leads to a reader that was placed with its group, or from a producer.
static void test_links_to_readers(void **state) {
  (void)state;
  struct instance i = parsed(
      "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"a\"], \"nodes\": ["
      "{\"name\": \"p\", \"time_us\": {\"a\": 1}}, {\"name\": \"q\", \"time_us\": {\"a\": 1}},"
      "{\"name\": \"early\", \"group\": \"g\", \"time_us\": {\"a\": 1}},"
      "{\"name\": \"late\", \"group\": \"g\", \"time_us\": {\"a\": 1}}, {\"name\": \"last\", \"time_us\": {\"a\": 1}}],"
      "\"edges\": [{\"from\": \"q\", \"to\": \"last\", \"bytes\": 5}, {\"from\": \"p\", \"to\": \"late\", \"bytes\": "
      "5},"
      "{\"from\": \"p\", \"output\": 1, \"to\": \"last\", \"bytes\": 5}, {\"from\": \"late\", \"to\": \"last\", "
      "\"bytes\": 5}]}",
      "format: tfc-machine\nversion: 1\ndevices:\n  - {name: 'a:0', kind: a, count: 3}\n"
      "links:\n  - {from: 'a:1', to: 'a:0'}\n  - {from: 'a:2', to: 'a:1'}\n");
  struct tfc_lister l;
  enum { P, Q, EARLY, LATE, LAST };
  MUST(tfc_lister_init(&l, i.problem, true));
  for (uint32_t d = 0; d < 3; d++) assert_true(tfc_lister_can(&l, P, d) && tfc_lister_can(&l, EARLY, d));
  assert_true(tfc_lister_put(&l, EARLY, 1));
  for (uint32_t d = 0; d < 3; d++) { // "late" is on a:1 now, and a:0 has no link to it
    assert_true(tfc_lister_can(&l, P, d) == (d != 0));
    assert_true(tfc_lister_can(&l, Q, d)); // nothing that reads it is placed
    assert_true(tfc_lister_can(&l, LATE, d) == (d == 1));
  }
  assert_true(tfc_lister_put(&l, P, 2) && tfc_lister_put(&l, LATE, 1));
  for (uint32_t d = 0; d < 3; d++) assert_true(tfc_lister_can(&l, LAST, d) == (d == 1)); // a:2 has no link to a:0
  tfc_lister_deinit(&l);
  instance_free(&i);
}

// A fork on a:1: a parent with a long child and a short one, whose inputs take 30 us to another device, and, apart from
// them, an operation with a longer path that runs on a:1, too. Earliest task first runs that one behind the parent, and
// the long child on the first device; but the favourite child follows its parent at once, and only the favourite.
// `fill` operations more make the graph too large for the linear program.
static void check_favourite(uint32_t fill, bool swapped) {
  static const char *const names[] = {"a:0", "a:1", "a:2"};
  struct tfc_solution s;
  begin();
  const uint32_t parent = add(100, 1, 0, "a:1"), first = add(swapped ? 20 : 200, 1, 0, NULL),
                 second = add(swapped ? 200 : 20, 1, 0, NULL), apart = add(30, 1, 0, "a:1");
  edge(apart, add(190, 1, 0, "a:1"), 0);
  const uint32_t favourite = swapped ? second : first, other = swapped ? first : second;
  MUST(tfc_cost_builder_edge(builder, parent, 0, first, 30, TFC_LIVE_ABSENT));
  MUST(tfc_cost_builder_edge(builder, parent, 1, second, 30, TFC_LIVE_ABSENT));
  for (uint32_t n = 0; n < fill; n++) add(0.001, 0.001, 0, "a:2");
  struct instance i = finish(names, NULL, 2 + (fill > 0), TFC_OBJECTIVE_STEP);
  for (int k = 0; k < 2; k++) {
    run(i.problem, k ? "m-etf" : "m-sct", 0, &s, NULL);
    if (s.device[favourite] != (k ? 0 : 1) || (!k && s.device[other] != 0))
      fail_msg("%s, %u more: the favourite child is on %u, the other on %u", k ? "m-etf" : "m-sct", fill,
               s.device[favourite], s.device[other]);
    tfc_solution_deinit(&s);
  }
  instance_free(&i);
}
static void test_favourite_child(void **state) {
  (void)state;
  check_favourite(0, false), check_favourite(0, true);
  check_favourite(2100, false), check_favourite(2100, true);
}

// --- dynamic programming ---------------------------------------------------------------------------------------------

// Eight chains of five operations have too many ideals (6^8): only the prefixes of the order are used. All ways to cut
// the order in three are tried here.
static void test_prefixes(void **state) {
  (void)state;
  static const char *const names[] = {"a:0", "a:1", "a:2"};
  for (uint64_t seed = 1; seed <= 3; seed++) {
    struct tfc_random r;
    struct tfc_solution s;
    uint32_t order[MOST];
    tfc_device_id device[MOST];
    int64_t best = TFC_TIME_MAX;
    tfc_random_init(&r, seed);
    begin();
    for (uint32_t n = 0; n < 40; n++) {
      const uint32_t node = add((double)(1 + pick(&r, 50)), 1, 0, NULL);
      if (n % 5) edge(node - 1, node, 1 + pick(&r, 30));
    }
    struct instance i = finish(names, NULL, 3, TFC_OBJECTIVE_THROUGHPUT);
    assert_ok(tfc_order_units(i.problem, false, order));
    for (uint32_t b = 0; b <= 40; b++)
      for (uint32_t a = 0; a <= b; a++) {
        for (uint32_t k = 0; k < 40; k++) device[order[k]] = k < a ? 0 : k < b ? 1 : 2;
        const int64_t value = score(i.problem, device).value;
        if (value < best) best = value;
      }
    run(i.problem, "dp", 0, &s, NULL);
    assert_int_equal(score(i.problem, s.device).value, best);
    tfc_solution_deinit(&s);
    instance_free(&i);
  }
}

// Two chains of 45 and 25 operations have 46 * 26 ideals, of which all are tried: any beginning of one with any of the
// other. A cut is cheap in few places.
static void test_all_ideals(void **state) {
  (void)state;
  enum { FIRST = 45, ALL = 70 };
  static const char *const names[] = {"a:0", "a:1"};
  struct tfc_random r;
  struct tfc_solution s;
  tfc_device_id device[ALL];
  int64_t best = TFC_TIME_MAX;
  tfc_random_init(&r, 6);
  begin();
  for (uint32_t n = 0; n < ALL; n++) {
    const uint32_t node = add((double)(1 + pick(&r, 50)), 1, 0, NULL);
    if (n && n != FIRST) edge(node - 1, node, pick(&r, 8) ? 300 : 1);
  }
  struct instance i = finish(names, NULL, 2, TFC_OBJECTIVE_THROUGHPUT);
  for (uint32_t a = 0; a <= FIRST; a++)
    for (uint32_t b = 0; b <= ALL - FIRST; b++) {
      for (uint32_t n = 0; n < ALL; n++) device[n] = n < FIRST ? n >= a : n - FIRST >= b;
      const int64_t value = score(i.problem, device).value;
      if (value < best) best = value;
    }
  run(i.problem, "dp", 0, &s, NULL);
  assert_int_equal(score(i.problem, s.device).value, best);
  tfc_solution_deinit(&s);
  instance_free(&i);
}

// A chain of 1,300 operations is too long to be cut anywhere: it is cut between runs that take at least a 600th of it.
// One device is twice as fast as the two others.
static void test_long_chain(void **state) {
  (void)state;
  static const char *const names[] = {"a:0", "b:0", "b:1"};
  struct tfc_solution s;
  begin();
  for (uint32_t n = 0; n < 1300; n++) {
    const uint32_t node = add(10, 20, 0, NULL);
    if (n) edge(node - 1, node, 10);
  }
  struct instance i = finish(names, NULL, 3, TFC_OBJECTIVE_THROUGHPUT);
  run(i.problem, "dp", 0, &s, NULL);
  // 650, 325 and 325 operations take 6,500 us, and a transfer or two 10 us each. A run has three operations.
  const double value = 1e-6 * (double)score(i.problem, s.device).value;
  uint32_t cuts = 0;
  for (uint32_t n = 1; n < 1300; n++) cuts += s.device[n] != s.device[n - 1];
  if (value < 6500 || value > 6500 + 20 + 60 || cuts != 2) fail_msg("%g us with %u cuts", value, cuts);
  tfc_solution_deinit(&s);
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_second_versions),  cmocka_unit_test(test_graphs_of_units),
                                     cmocka_unit_test(test_unlike_parts),     cmocka_unit_test(test_last_resort),
                                     cmocka_unit_test(test_links_to_readers), cmocka_unit_test(test_favourite_child),
                                     cmocka_unit_test(test_prefixes),         cmocka_unit_test(test_all_ideals),
                                     cmocka_unit_test(test_long_chain)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
