// Compares bounds with the optimum, which trying all placements of problems of up to 9 nodes finds, with all orders of
// those of up to 5.
#include "tests/common/test.h"

#include "placer/exact/border.h"
#include "placer/search/local.h"
#include "tests/placer/instances.h"

// Under sanitizers, which are several times slower, fewer cases are drawn: memory errors would show in the first ones.
#ifdef TFC_SANITIZED
enum { SHARE = 5 };
#else
enum { SHARE = 1 };
#endif

static int64_t best_order(const struct tfc_problem *p, struct tfc_simulator *sim, const tfc_device_id *device,
                          uint32_t *rank, uint32_t depth, int64_t best) {
  if (depth == p->node_count) {
    struct tfc_verdict v = {0};
    tfc_simulate(sim, device, rank, best, &v);
    return v.legal && v.feasible && v.value < best ? v.value : best;
  }
  for (uint32_t k = depth; k < p->node_count; k++) {
    uint32_t x = rank[depth];
    rank[depth] = rank[k], rank[k] = x;
    best = best_order(p, sim, device, rank, depth + 1, best);
    x = rank[depth], rank[depth] = rank[k], rank[k] = x;
  }
  return best;
}

static int64_t brute_force(const struct tfc_problem *p, bool orders) {
  struct tfc_simulator *sim = NULL;
  tfc_device_id device[16] = {0};
  uint32_t rank[16];
  int64_t best = TFC_TIME_MAX;
  assert_ok(tfc_simulator_create(p, &sim));
  for (;;) {
    struct tfc_verdict v = {0};
    tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
    if (v.legal && v.feasible && v.value < best) best = v.value;
    if (v.legal && orders) {
      for (uint32_t n = 0; n < p->node_count; n++) rank[n] = n;
      best = best_order(p, sim, device, rank, 0, best);
    }
    uint32_t u = 0;
    while (u < p->unit_count && ++device[u] == p->device_count) device[u++] = 0;
    if (u == p->unit_count) break;
  }
  tfc_simulator_free(sim);
  return best;
}

// Whatever placement the border's bound starts from, it must stay below the optimum.
static void raise_by_borders(const struct tfc_problem *p, int64_t best, struct tfc_bound *bound) {
  const int64_t optimum = best == TFC_TIME_MAX ? INT64_C(1000000000) : best;
  for (int64_t known = optimum; known < 2 * optimum; known += 1 + optimum / 4)
    tfc_bound_raise(bound, TFC_BOUND_BORDER, tfc_border_bound(p, known, &(struct tfc_border_limits){0}));
}

static void run(uint32_t count, tfc_objective objective, uint32_t most_nodes, bool orders, bool program,
                uint64_t seed) {
  uint32_t tight = 0, solved = 0, found = 0;
  for (uint64_t number = 0; number < count / SHARE; number++) {
    struct tfc_random r;
    tfc_random_init(&r, seed * 1000003 + number);
    uint32_t rich = number % 3 ? (uint32_t)pick(&r, RICH_ALL + 1) : 0;
    uint32_t devices = 1 + (uint32_t)pick(&r, 3);
    struct instance i = random_instance(&r, 2 + (uint32_t)pick(&r, most_nodes - 1), devices, rich, objective);
    const int64_t best = brute_force(i.problem, orders);
    struct tfc_bound bound;
    struct tfc_budget budget = {.deadline = tfc_now_s() + 5, .threads = 1};
    assert_ok(tfc_bound_compute(i.problem, program ? &budget : NULL, &bound));
    if (objective == TFC_OBJECTIVE_THROUGHPUT) raise_by_borders(i.problem, best, &bound);
    for (int k = 0; k < TFC_BOUND_COUNT; k++)
      if (bound.each[k] > best)
        fail_msg("case %llu: bound '%s' is %lld, the optimum %lld", (unsigned long long)number,
                 tfc_bound_name((tfc_bound_kind)k), (long long)bound.each[k], (long long)best);
    if (best != TFC_TIME_MAX) {
      solved++;
      tight += (double)bound.value >= 0.999 * (double)best;
      // On a problem this small the search mostly finds the optimum, or nearly.
      struct tfc_search_outcome out = {0};
      assert_ok(
          tfc_search(i.problem, &(struct tfc_search_options){.evaluations = 3000, .seed = 1, .threads = 1}, &out));
      // The search tries orders too, so it may be better than an enumeration that did not try them all.
      if (out.value != TFC_TIME_MAX && !out.excess) {
        assert_true(out.value >= bound.value);
        if (orders || objective == TFC_OBJECTIVE_THROUGHPUT) assert_true(out.value >= best);
      }
      found += out.value <= best + best / 1000 && out.excess == 0;
      tfc_search_outcome_deinit(&out);
    }
    instance_free(&i);
  }
  print_message("%u of %u have a placement; the bound meets the optimum of %u, auto of %u\n", solved, count, tight,
                found);
  assert_true(found * 100 >= solved * 90);
}

static void test_step(void **state) {
  (void)state;
  run(850, TFC_OBJECTIVE_STEP, 9, false, false, 31);
}
static void test_step_orders(void **state) {
  (void)state;
  run(150, TFC_OBJECTIVE_STEP, 5, true, false, 32);
}
static void test_throughput(void **state) {
  (void)state;
  run(500, TFC_OBJECTIVE_THROUGHPUT, 9, false, false, 33);
}
static void test_programs(void **state) {
  (void)state;
  run(60, TFC_OBJECTIVE_THROUGHPUT, 7, false, true, 34);
  run(60, TFC_OBJECTIVE_STEP, 7, false, true, 35);
}

// The border's bound, where all devices pay: it must be below the optimum, and above all other bounds where those say
// little.
static void test_borders(void **state) {
  (void)state;
  uint32_t solved = 0, tight = 0, best_of_all = 0;
  for (uint64_t number = 0; number < 400 / SHARE; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 36000 + number);
    const uint32_t rich = RICH_BOTH | (number % 2 ? RICH_GROUPS | RICH_PINS | RICH_KINDS | RICH_CALIBRATION : 0);
    const uint32_t devices = 2 + (uint32_t)pick(&r, 2);
    struct instance i = random_instance(&r, 4 + (uint32_t)pick(&r, 6), devices, rich, TFC_OBJECTIVE_THROUGHPUT);
    const int64_t best = brute_force(i.problem, false);
    struct tfc_bound bound;
    assert_ok(tfc_bound_compute(i.problem, NULL, &bound));
    const int64_t others = bound.value;
    raise_by_borders(i.problem, best, &bound);
    const int64_t border = bound.each[TFC_BOUND_BORDER];
    if (border > best)
      fail_msg("case %llu: at least %lld by borders, the optimum is %lld", (unsigned long long)number,
               (long long)border, (long long)best);
    if (best != TFC_TIME_MAX) solved++, tight += (double)border >= 0.999 * (double)best, best_of_all += border > others;
    instance_free(&i);
  }
  print_message("%u have a placement; borders alone meet the optimum of %u, and are the highest bound of %u\n", solved,
                tight, best_of_all);
  assert_true(solved >= 300 / SHARE && tight * 2 >= solved && best_of_all * 5 >= solved);
}

// Four devices share two cores, so the bound from total work is doubled, before the largest of all bounds is chosen.
static void test_shared_cores(void **state) {
  (void)state;
  struct tfc_bound bound = {.value = 3100, .kind = TFC_BOUND_PATH};
  bound.each[TFC_BOUND_PATH] = 3100, bound.each[TFC_BOUND_WORK] = 2425;
  tfc_bound_share_cores(&bound, 4, 4);
  assert_true(bound.value == 3100 && bound.kind == TFC_BOUND_PATH);
  tfc_bound_share_cores(&bound, 4, 2);
  assert_true(bound.value == 4850 && bound.kind == TFC_BOUND_WORK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared_cores), cmocka_unit_test(test_step),
                                     cmocka_unit_test(test_step_orders),  cmocka_unit_test(test_throughput),
                                     cmocka_unit_test(test_borders),      cmocka_unit_test(test_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
