// Tests multilevel placement: its levels, what annealing is asked on each, and the refinement for throughput.
#include "tests/placer/methods.h"

static uint32_t targets[16], target_count;
static uint32_t noted_coarsen(const struct tfc_problem *p, struct tfc_random *random, const tfc_device_id *device,
                              uint32_t target, uint32_t *cluster) {
  targets[target_count++ % 16] = target;
  return tfc_local_coarsen(p, random, device, target, cluster);
}

#define tfc_local_anneal noted_anneal
#define tfc_local_coarsen noted_coarsen
#define tfc_algo_multilevel own_multilevel // the library has it, too
#include "placer/algo/multilevel.c"
#include "placer/search/anneal.h"
#undef tfc_local_coarsen

static void test_levels(void **state) {
  (void)state;
  static const uint64_t budgets[] = {0, 1000, 1000000};
  for (int k = 0; k < 4; k++) { // none, few, many; a time
    struct instance i = equal_nodes(400, 2, true, 0, NULL, TFC_OBJECTIVE_STEP);
    struct tfc_solution s = {0};
    struct tfc_budget budget = {.threads = 1, .seed = 4, .evaluations = k < 3 ? budgets[k] : 0};
    uint64_t used = 0, left = budget.evaluations - (budget.evaluations ? 3 : 0); // 3 for choosing an order
    if (k == 3) budget.deadline = tfc_now_s() + 600000;
    MUST(tfc_solution_init(&s, i.problem));
    asked_count = target_count = 0;
    assert_ok(own_multilevel.propose(i.problem, NULL, &budget, &s, &used));
    assert_int_equal(asked_count, 3); // about 60 clusters, 180, and all 400 units
    assert_int_equal(target_count, 3);
    assert_true(targets[0] == 60 && targets[1] == 180 && targets[2] == 400);
    assert_true(asked[0].o.cluster_count < 100 && asked[1].o.cluster_count > 100);
    assert_int_equal(asked[2].o.cluster_count, 400);
    for (uint32_t a = 0; a < 3; a++) {
      const uint64_t want = 24 * (uint64_t)asked[a].o.cluster_count, share = left / (3 - a);
      assert_int_equal(asked[a].budget.evaluations, k == 1 ? share : want);
      assert_true(asked[a].o.hot == 0.01 && asked[a].o.cold == 0.0005 && !asked[a].o.orders);
      assert_true(!asked[a].mixed);
      assert_true(!a || asked[a].budget.seed != asked[a - 1].budget.seed);
      if (k == 3) assert_true(fabs(asked[a].budget.deadline - asked[a].now - 600000.0 / (3 - a)) < 500);
      left -= asked[a].budget.evaluations;
    }
    // The time was spread before: nothing else moves units here, and a half of the chain is on each device.
    uint32_t second = 0;
    for (uint32_t u = 0; u < 400; u++) second += s.device[u];
    assert_true(second >= 180 && second <= 220);
    tfc_solution_deinit(&s);
    instance_free(&i);
  }
}

static void test_heap(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 8);
  for (int round = 0; round < 200; round++) {
    struct gain heap[64];
    double last = INFINITY;
    const uint32_t count = 1 + (uint32_t)pick(&r, 60);
    for (uint32_t k = 0; k < count; k++)
      gains_push(heap, k, (struct gain){round % 2 ? (double)pick(&r, 9) : tfc_random_unit(&r), k, 0}, NULL);
    uint64_t seen = 0;
    for (uint32_t k = count; k > 0; k--) {
      const struct gain g = gains_pop(heap, k, NULL);
      assert_true(g.value <= last);
      last = g.value, seen |= UINT64_C(1) << g.cluster;
    }
    assert_true(seen == (count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1));
  }
}

// One pass a second time, with a list instead of a heap: always the cluster with the best gain that is known, unless
// its gain has fallen below another's meanwhile; in the end back to the best of all states on the way. True: two gains
// were equal, so that another order is right, too.
static bool plain_pass(struct passer *q, uint32_t clusters) {
  double gain[64];
  bool there[64];
  tfc_device_id best_device[64];
  bool tied = false;
  const uint32_t units = q->p->unit_count;
  double now = energy_of(&q->loads, q->scale), best = now;
  uint64_t excess = tfc_loads_excess(&q->loads), best_excess = excess;
  memcpy(best_device, q->loads.device, sizeof *best_device * units);
  for (uint32_t c = 0; c < clusters; c++) gain[c] = best_move(q, c, now, excess).value, there[c] = gain[c] > -INFINITY;
  for (;;) {
    uint32_t top = clusters, second = clusters;
    for (uint32_t c = 0; c < clusters; c++)
      if (there[c] && (top == clusters || gain[c] > gain[top])) top = c;
    for (uint32_t c = 0; c < clusters; c++)
      if (there[c] && c != top && (second == clusters || gain[c] > gain[second])) second = c;
    if (top == clusters) break;
    tied = tied || (second < clusters && gain[second] > gain[top] - 1e-9);
    const struct gain fresh = best_move(q, top, now, excess);
    there[top] = false;
    if (fresh.value == -INFINITY) continue;
    if (second < clusters && fresh.value < gain[second] - 1e-12 && fresh.value < gain[top] - 1e-12) {
      there[top] = true, gain[top] = fresh.value;
      continue;
    }
    shift(q, top, (tfc_device_id)fresh.device);
    now = energy_of(&q->loads, q->scale), excess = tfc_loads_excess(&q->loads);
    if (excess > best_excess || (excess == best_excess && !(now < best - 1e-12))) continue;
    best = now, best_excess = excess;
    memcpy(best_device, q->loads.device, sizeof *best_device * units);
  }
  for (uint32_t u = 0; u < units; u++)
    if (q->loads.device[u] != best_device[u]) tfc_loads_move(&q->loads, u, best_device[u]);
  return tied;
}

static void test_pass(void **state) {
  (void)state;
  uint32_t moved = 0;
  for (uint64_t number = 0; number < 200; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 9300 + number);
    struct instance i = random_instance(&r, 10 + (uint32_t)pick(&r, 40), 2 + (uint32_t)pick(&r, 3),
                                        number % 2 ? RICH_GROUPS | RICH_LIMITS : 0, TFC_OBJECTIVE_THROUGHPUT);
    const struct tfc_problem *p = i.problem;
    struct passer q[2] = {{.p = p}, {.p = p}};
    struct gain heap[64], done[64];
    uint32_t first[65], member[64];
    tfc_device_id device[64];
    struct tfc_meter meter;
    const struct tfc_budget budget = {.evaluations = 1000000, .threads = 1};
    tfc_meter_init(&meter, &budget);
    for (uint32_t u = 0; u <= p->unit_count; u++) first[u] = u; // each unit is a cluster
    for (uint32_t u = 0; u < p->unit_count; u++) member[u] = u;
    random_devices(&r, p, device);
    for (int k = 0; k < 2; k++) {
      q[k].first = first, q[k].member = member;
      q[k].scale = (double)p->device_count / ((double)p->total_fastest + 1);
      MUST(tfc_loads_init(&q[k].loads, p));
      tfc_loads_reset(&q[k].loads, device);
    }
    const bool better = fm_pass(&q[0], p->unit_count, &meter, heap, done);
    const bool tied = plain_pass(&q[1], p->unit_count);
    bool changed = false;
    for (uint32_t u = 0; u < p->unit_count; u++) changed = changed || q[1].loads.device[u] != device[u];
    if (!tied) {
      assert_memory_equal(q[0].loads.device, q[1].loads.device, sizeof *device * p->unit_count);
      assert_true(better == changed);
      moved += changed;
    }
    for (int k = 0; k < 2; k++) tfc_loads_deinit(&q[k].loads);
    instance_free(&i);
  }
  assert_true(moved > 20);
}

// The cost of loads: their 8-norm, and a thousand for each missing link.
static double cost_of(const struct tfc_problem *p, const tfc_device_id *device, uint64_t *excess) {
  struct tfc_loads l = {0};
  double sum = 0;
  MUST(tfc_loads_init(&l, p));
  tfc_loads_reset(&l, device);
  for (uint32_t d = 0; d < p->device_count; d++)
    sum += pow((double)l.load[d] * p->device_count / ((double)p->total_fastest + 1), 8);
  sum = pow(sum, 0.125) + 1000 * (double)l.missing;
  *excess = tfc_loads_excess(&l);
  tfc_loads_deinit(&l);
  return sum;
}

static void test_refinement(void **state) {
  (void)state;
  uint32_t improved = 0;
  for (uint64_t number = 0; number < 60; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 600 + number);
    struct instance i = random_instance(&r, 4 + (uint32_t)pick(&r, 30), 2 + (uint32_t)pick(&r, 3),
                                        (uint32_t)pick(&r, RICH_ALL + 1), TFC_OBJECTIVE_THROUGHPUT);
    const struct tfc_problem *p = i.problem;
    uint32_t cluster[64];
    tfc_device_id device[64], begin[64];
    struct tfc_meter meter;
    const struct tfc_budget budget = {.evaluations = 1000000, .threads = 1};
    uint64_t before_excess, after_excess, excess;
    tfc_meter_init(&meter, &budget);
    const uint32_t count = tfc_local_coarsen(p, &r, NULL, p->unit_count / 2 + 1, cluster);
    assert_ok(spread(p, cluster, count, begin));
    // Each cluster goes, in their order, to the first device that stays below the mean, or to the least loaded one, of
    // those with memory.
    double load[8] = {0}, memory[8] = {0};
    for (uint32_t c = 0; c < count; c++) {
      double least = INFINITY, size = 0;
      uint32_t where = 0, any = 0;
      for (uint32_t u = 0; u < p->unit_count; u++)
        if (cluster[u] == c) any = u, size += (double)p->unit_memory[u];
      for (uint32_t d = 0; d < p->device_count; d++) {
        double after = load[d];
        const double mean = (double)p->total_fastest / p->device_count;
        if (!tfc_problem_allows(p, any, d)) continue;
        for (uint32_t u = 0; u < p->unit_count; u++)
          if (cluster[u] == c) after += (double)tfc_problem_unit_time(p, u, d);
        if (after <= mean) after = mean * (1 + d * 0.001);
        if (memory[d] + size > (double)p->limit[d]) after += 100 * (double)p->total_fastest;
        if (after < least) least = after, where = d;
      }
      for (uint32_t u = 0; u < p->unit_count; u++)
        if (cluster[u] == c) {
          assert_int_equal(begin[u], where);
          load[where] += (double)tfc_problem_unit_time(p, u, where), memory[where] += (double)p->unit_memory[u];
        }
    }
    memcpy(device, begin, sizeof device);
    assert_ok(refine_throughput(p, &meter, cluster, count, device));
    const double before = cost_of(p, begin, &before_excess), after = cost_of(p, device, &after_excess);
    assert_true(after_excess < before_excess || (after_excess == before_excess && after <= before + 1e-12));
    improved += after < before - 1e-9;
    // No cluster has a better device.
    for (uint32_t c = 0; c < count; c++)
      for (uint32_t d = 0; d < p->device_count; d++) {
        tfc_device_id moved[64];
        bool may = true;
        memcpy(moved, device, sizeof moved);
        for (uint32_t u = 0; u < p->unit_count; u++)
          if (cluster[u] == c) moved[u] = (tfc_device_id)d, may = may && tfc_problem_allows(p, u, d);
        if (!may) continue;
        const double cost = cost_of(p, moved, &excess);
        if (excess < after_excess || (excess == after_excess && cost < after - 1e-9))
          fail_msg("case %llu: cluster %u is better on %u: %.12g, %.12g", (unsigned long long)number, c, d, cost,
                   after);
      }
    // Clusters stay whole.
    for (uint32_t u = 0; u < p->unit_count; u++)
      for (uint32_t v = 0; v < u; v++) assert_true(cluster[u] != cluster[v] || device[u] == device[v]);
    instance_free(&i);
  }
  assert_true(improved > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels), cmocka_unit_test(test_heap),
                                     cmocka_unit_test(test_pass), cmocka_unit_test(test_refinement)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
