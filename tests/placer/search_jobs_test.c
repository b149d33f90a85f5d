// Tests the jobs of a search: what each method asks of annealing (temperatures, clusters, shares of the budget), and
// that what it returns is legal, is worth what it says, is no worse than what it was given, and is mostly the optimum
// where that is known.
#include "tests/common/test.h"

#include <stdio.h>

#include "placer/search/anneal.h"
#include "placer/search/local.h"
#include "placer/search/search_job.h"
#include "tests/placer/instances.h"

// The options with which annealing is called, stored before it runs.
struct asked {
  struct tfc_anneal_options o;
  struct tfc_budget budget;
  uint64_t spent; // evaluations that the job before this one used
  struct tfc_score before;
  bool apart;      // a cluster has units of several devices
  bool mixed_pair; // a cluster has units of several `labels`
};
static struct asked noted[4096];
static uint32_t noted_count;
static const tfc_device_id *labels; // [unit] NULL: not checked

static bool splits(const struct tfc_problem *p, const struct tfc_anneal_options *o, const tfc_device_id *label) {
  tfc_device_id *of = calloc(o->cluster_count + 1u, sizeof *of);
  bool *seen = calloc(o->cluster_count + 1u, sizeof *seen), differ = false;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    const uint32_t c = o->cluster[u];
    assert_true(c < o->cluster_count);
    differ = differ || (seen[c] && of[c] != label[u]);
    seen[c] = true, of[c] = label[u];
  }
  for (uint32_t c = 0; c < o->cluster_count; c++) assert_true(seen[c]);
  free(of), free(seen);
  return differ;
}
static tfc_status watched_anneal(const struct tfc_problem *p, const struct tfc_budget *budget,
                                 const struct tfc_anneal_options *options, struct tfc_solution *solution,
                                 struct tfc_score *score, uint64_t *evaluations) {
  if (noted_count < sizeof noted / sizeof *noted)
    noted[noted_count++] = (struct asked){.o = *options,
                                          .budget = *budget,
                                          .spent = *evaluations,
                                          .before = *score,
                                          .apart = options->cluster && splits(p, options, solution->device),
                                          .mixed_pair = options->cluster && labels && splits(p, options, labels)};
  return tfc_local_anneal(p, budget, options, solution, score, evaluations);
}

#define tfc_local_anneal watched_anneal
#define tfc_search_method_names names_of_watched // the library has the table, too
#include "placer/search/search_job.c"
#undef tfc_search_method_names
#undef tfc_local_anneal

static void is_near(double x, double expected) {
  if (!(fabs(x - expected) <= 1e-9 * fabs(expected))) fail_msg("%g, not %g", x, expected);
}

static void test_parts_of_budgets(void **state) {
  (void)state;
  atomic_bool cancel = false;
  struct tfc_budget b = {.evaluations = 1000, .seed = 4, .threads = 1, .cancel = &cancel};
  struct tfc_budget part = part_of(&b, 200, 0.25, 9);
  assert_true(part.evaluations == 201 && part.seed == 9 && part.cancel == &cancel && part.deadline <= 0);
  assert_int_equal(part_of(&b, 200, 1, 9).evaluations, 800);
  assert_int_equal(part_of(&b, 999, 0.3, 9).evaluations, 1);
  assert_int_equal(part_of(&b, 1000, 0.3, 9).evaluations, 1); // never 0, which would mean no limit
  assert_int_equal(part_of(&b, 5000, 1, 9).evaluations, 1);
  const double now = tfc_now_s();
  b = (struct tfc_budget){.deadline = now + 1000};
  part = part_of(&b, 200, 0.25, 1);
  assert_int_equal(part.evaluations, 0);
  assert_true(fabs(part.deadline - (now + 250)) < 20);
  struct tfc_random r;
  struct tfc_search_job j = {.budget = {.evaluations = 1000}, .evaluations = 900};
  tfc_random_init(&r, 1);
  assert_int_equal(few(&j, &r, 40).evaluations, 40);
  assert_int_equal(few(&j, &r, 400).evaluations, 100);
  assert_true(few(&j, &r, 40).seed != few(&j, &r, 40).seed);
  j.budget = (struct tfc_budget){.deadline = now + 1000};
  assert_int_equal(few(&j, &r, 40).evaluations, 40);
  assert_false(job_over(&j));
  j.budget = (struct tfc_budget){.evaluations = 901};
  assert_false(job_over(&j));
  j.budget.evaluations = 900;
  assert_true(job_over(&j));
  j.budget = (struct tfc_budget){.cancel = &cancel};
  assert_false(job_over(&j));
  atomic_store(&cancel, true);
  assert_true(job_over(&j));
}

static int by_size(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

// Numbers of clusters are spread evenly over the logarithms from 3 a device up to 48 a device or 60 % of the units.
static void test_targets(void **state) {
  (void)state;
  struct tfc_random r;
  uint32_t list[2001];
  tfc_random_init(&r, 3);
  struct tfc_problem p = {.device_count = 4, .unit_count = 20};
  for (int k = 0; k < 100; k++) assert_int_equal(any_target(&p, &r), 12); // 60 % of 20
  p.unit_count = 1000;
  for (int k = 0; k < 2001; k++) {
    list[k] = any_target(&p, &r);
    assert_in_range(list[k], 12, 192);
  }
  qsort(list, 2001, sizeof *list, by_size);
  assert_in_range(list[1000], 43, 53); // sqrt(12 * 192) = 48
  assert_true(list[20] < 14 && list[1980] > 170);
  p.unit_count = 100;
  for (int k = 0; k < 100; k++) assert_in_range(any_target(&p, &r), 12, 60);
}

static void test_scatter(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct tfc_random r;
    tfc_random_init(&r, seed);
    struct instance i = random_instance(&r, 30, 3, seed % 2 ? RICH_PINS | RICH_KINDS : RICH_LIMITS, TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    uint32_t cluster[64], home[64], used[3] = {0};
    tfc_device_id device[64];
    uint64_t held[3] = {0};
    for (uint32_t u = 0; u < p->unit_count; u++) cluster[u] = u % 12;
    scatter(p, &r, cluster, home, 12, device);
    for (uint32_t c = 0; c < 12; c++) used[home[c]]++;
    for (uint32_t d = 0; d < 3; d++) assert_true(used[d] > 0 && used[d] < 12);
    for (uint32_t u = 0; u < p->unit_count; u++) {
      assert_true(tfc_problem_allows(p, u, device[u]));
      if (seed % 2 && tfc_problem_allows(p, u, home[cluster[u]])) assert_int_equal(device[u], home[cluster[u]]);
      held[device[u]] += p->unit_memory[u];
    }
    if (seed % 2 == 0) { // with even seeds, placements above a limit were repaired if that is possible
      tfc_device_id other[64];
      if (tfc_local_any(p, &r, other))
        for (uint32_t d = 0; d < 3; d++) assert_true(held[d] <= p->limit[d]);
    }
    instance_free(&i);
  }
}

// The first six starts are kept, each later one replaces one of them.
static void test_starts(void **state) {
  (void)state;
  struct tfc_random r;
  struct starts starts = {0};
  struct tfc_problem p = {.unit_count = 5};
  bool replaced[KEPT_STARTS] = {0};
  tfc_random_init(&r, 8);
  for (int k = 0; k < 60; k++) {
    tfc_device_id device[5], was[KEPT_STARTS] = {0};
    for (int u = 0; u < 5; u++) device[u] = (tfc_device_id)(100 + k);
    const uint32_t before = starts.count;
    for (uint32_t s = 0; s < before; s++) was[s] = starts.device[s][0];
    keep_start(&p, &r, &starts, device);
    assert_int_equal(starts.count, before < KEPT_STARTS ? before + 1 : KEPT_STARTS);
    uint32_t here = 0;
    for (uint32_t s = 0; s < starts.count; s++) {
      for (int u = 1; u < 5; u++) assert_int_equal(starts.device[s][u], starts.device[s][0]);
      if (starts.device[s][0] == 100 + k)
        here++, replaced[s] = replaced[s] || before == KEPT_STARTS;
      else
        assert_int_equal(starts.device[s][0], was[s]);
    }
    assert_int_equal(here, 1);
  }
  for (int s = 0; s < KEPT_STARTS; s++) {
    assert_true(replaced[s]);
    free(starts.device[s]);
  }
}

// Units stay together only if all starts that were asked have them on one device: with two starts that differ, either
// one of them counts or both do.
static void test_starts_that_agree(void **state) {
  (void)state;
  struct tfc_random r;
  uint32_t both = 0, joined = 0;
  tfc_random_init(&r, 11);
  for (int round = 0; round < 40; round++) {
    struct instance i = random_instance(&r, 40, 2, 0, TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    tfc_device_id one[64], two[64];
    uint32_t cluster[64];
    struct starts starts = {.device = {one, two}, .count = 2};
    for (uint32_t u = 0; u < p->unit_count; u++) one[u] = u >= 20, two[u] = u % 20 >= 10;
    const uint32_t count = agree(p, &r, &starts, cluster);
    assert_true(count > 0);
    bool breaks_one = false, breaks_two = false;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      assert_true(cluster[u] < count);
      for (uint32_t v = 0; v < u; v++) {
        if (cluster[u] != cluster[v]) continue;
        joined++;
        breaks_one = breaks_one || one[u] != one[v];
        breaks_two = breaks_two || two[u] != two[v];
      }
    }
    assert_false(breaks_one && breaks_two);
    both += !breaks_one && !breaks_two;
    instance_free(&i);
  }
  assert_true(both >= 10 && joined > 100);
}

// A policy for tests. It notes the budget that it is given, uses one evaluation (twice its budget if takes_all), and
// returns the placement unchanged. If there is a `gift`, the first call returns that placement instead.
struct tfc_guidance {
  int unused;
};
static struct tfc_budget given;
static bool takes_all, spends, wins; // spends: just its budget; wins: it claims that each step became shorter
static uint32_t asked;
static uint64_t taken; // evaluations of the policy's own
static const struct tfc_solution *gift;
static struct tfc_score gift_score;
static uint32_t gift_units;
static tfc_status improve(const struct tfc_guidance *g, const struct tfc_budget *budget, struct tfc_solution *solution,
                          struct tfc_score *score, uint64_t *evaluations) {
  (void)g;
  const uint64_t uses = takes_all ? 2 * budget->evaluations : spends ? budget->evaluations : 1;
  if (wins) score->value -= score->value / 50;
  if (gift && !asked) {
    memcpy(solution->device, gift->device, gift_units * sizeof *solution->device);
    *score = gift_score;
  }
  given = *budget, asked++, taken += uses;
  *evaluations += uses;
  return NULL;
}
static const struct tfc_guide policy = {.improve = improve};

static struct tfc_search_job job(const struct tfc_problem *p, enum tfc_search_method method, struct tfc_random *r,
                                 uint64_t evaluations) {
  struct tfc_search_job j = {.method = method,
                             .budget = {.evaluations = evaluations, .seed = tfc_random_u64(r), .threads = 1},
                             .hot = 0.05,
                             .cold = 0.0005,
                             .guide = &policy};
  MUST(tfc_solution_init(&j.solution, p));
  MUST(tfc_solution_init(&j.other, p));
  random_devices(r, p, j.solution.device);
  random_devices(r, p, j.other.device);
  j.score = score_of(p, &j.solution);
  return j;
}
static void job_free(struct tfc_search_job *j) {
  tfc_solution_deinit(&j->solution);
  tfc_solution_deinit(&j->other);
}
static void run_and_check(const struct tfc_problem *p, struct tfc_search_job *j) {
  const struct tfc_score before = j->score;
  const uint64_t limit = j->budget.evaluations;
  noted_count = 0;
  assert_ok(tfc_search_job_run(p, j));
  for (uint32_t u = 0; u < p->unit_count; u++) assert_true(tfc_problem_allows(p, u, j->solution.device[u]));
  const struct tfc_score now = score_of(p, &j->solution);
  assert_true(now.excess == j->score.excess && now.value == j->score.value);
  assert_false(tfc_score_better(before, now));
  if (j->evaluations > limit || j->evaluations < limit - limit / 8)
    fail_msg("%s: %llu evaluations of %llu", tfc_search_method_names[j->method], (unsigned long long)j->evaluations,
             (unsigned long long)limit);
  for (uint32_t k = 0; k < noted_count; k++) // no part of a job gets more than the job has left
    assert_true(noted[k].budget.evaluations > 0 && noted[k].spent + noted[k].budget.evaluations <= limit);
}

// From any start, each method finds most optima of problems of which every placement was tried.
static void test_small_optima(void **state) {
  (void)state;
  enum { ROUNDS = 6 };
  uint32_t found[TFC_METHOD_COUNT][2] = {{0}};
  for (uint64_t seed = 1; seed <= ROUNDS; seed++)
    for (int objective = 0; objective < 2; objective++) {
      struct tfc_random r;
      tfc_random_init(&r, 40 + seed);
      struct instance i =
          random_instance(&r, 7, 3, seed % 3 ? RICH_KINDS | RICH_LIMITS | RICH_PINS : 0, (tfc_objective)objective);
      const struct tfc_problem *p = i.problem;
      struct tfc_simulator *sim = NULL;
      struct tfc_score best = TFC_SCORE_NONE;
      tfc_device_id device[16] = {0};
      MUST(tfc_simulator_create(p, &sim));
      for (bool more = true; more;) {
        bool may = true;
        for (uint32_t u = 0; u < p->unit_count; u++) may = may && tfc_problem_allows(p, u, device[u]);
        struct tfc_verdict v = {0};
        if (may) tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
        if (may && tfc_score_better(tfc_score_of(&v), best)) best = tfc_score_of(&v);
        uint32_t u = 0;
        while (u < p->unit_count && ++device[u] == p->device_count) device[u++] = 0;
        more = u < p->unit_count;
      }
      tfc_simulator_free(sim);
      for (int method = 0; method < TFC_METHOD_COUNT; method++) {
        struct tfc_search_job j = job(p, (enum tfc_search_method)method, &r, 2000);
        j.rounds = seed % 2 && method == TFC_METHOD_HOT ? 3 : 0;
        run_and_check(p, &j);
        found[method][objective] += !tfc_score_better(best, j.score);
        job_free(&j);
      }
      instance_free(&i);
    }
  for (int method = 0; method < TFC_METHOD_COUNT; method++) {
    print_message("%s: %u and %u of %d\n", tfc_search_method_names[method], found[method][0], found[method][1], ROUNDS);
    // Packing is for problems with little memory.
    assert_true(found[method][0] + found[method][1] >= (method == TFC_METHOD_PACK ? 2u : 8u));
  }
}

// Makes eight chains of equal length on four devices with a slow link. Two chains on each device are the optimum,
// because a transfer takes longer than a chain.
static struct instance chains(tfc_objective objective) {
  enum { CHAINS = 8, LENGTH = 12 };
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  struct tfc_link l = tfc_link_default();
  uint32_t acc, node;
  char name[40];
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t n = 0; n < CHAINS * LENGTH; n++) {
    snprintf(name, sizeof name, "tower%u/op%u", n % CHAINS, n / CHAINS);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, 10));
    if (n >= CHAINS) MUST(tfc_cost_builder_edge(b, n - CHAINS, 0, n, 1000, TFC_LIVE_ABSENT));
  }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  l.latency_us = 500;
  i.machine = even_machine(4, NULL, &l);
  MUST(tfc_problem_create(i.graph, i.machine, objective, &i.problem));
  return i;
}

static void test_planted_optimum(void **state) {
  (void)state;
  static const enum tfc_search_method good[] = {TFC_METHOD_NAMES, TFC_METHOD_FRESH, TFC_METHOD_CLUSTERS,
                                                TFC_METHOD_REGROUP, TFC_METHOD_COMBINE};
  for (int objective = 0; objective < 2; objective++) {
    struct instance i = chains((tfc_objective)objective);
    const struct tfc_problem *p = i.problem;
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
      struct tfc_random r;
      tfc_random_init(&r, 5 + k);
      struct tfc_search_job j = job(p, good[k], &r, 6000);
      if (good[k] == TFC_METHOD_REGROUP || good[k] == TFC_METHOD_CLUSTERS || good[k] == TFC_METHOD_COMBINE)
        for (uint32_t u = 0; u < p->unit_count; u++) j.solution.device[u] = j.other.device[u] = 0; // one device
      j.score = score_of(p, &j.solution);
      run_and_check(p, &j);
      // From a random start alone it mostly ends in another valley.
      if (good[k] != TFC_METHOD_FRESH || objective) assert_int_equal(j.score.value, 240000000);
      job_free(&j);
    }
    instance_free(&i);
  }
}

static struct instance medium(uint64_t seed, tfc_objective objective) {
  struct tfc_random r;
  tfc_random_init(&r, seed);
  for (;;) {
    struct instance i = random_instance(&r, 80, 3, 0, objective);
    if (i.problem->net_count >= 40) return i;
    instance_free(&i);
  }
}

// Fresh starts: units from far hotter than the job asks, or clusters first.
static void test_fresh_starts(void **state) {
  (void)state;
  uint32_t units = 0, clusters = 0;
  struct tfc_random r;
  tfc_random_init(&r, 6);
  for (int objective = 0; objective < 2; objective++) {
    struct instance i = random_instance(&r, 16, 2, 0, (tfc_objective)objective);
    struct tfc_search_job j = job(i.problem, TFC_METHOD_FRESH, &r, 60000);
    run_and_check(i.problem, &j);
    for (uint32_t k = 0; k < noted_count; k++) {
      if (noted[k].o.squarings) {
        units++;
        assert_in_range(noted[k].o.squarings, 3, 5);
        assert_true(noted[k].o.hot >= 0.03 - 1e-9 && noted[k].o.hot <= 0.3 && !noted[k].o.cluster);
        is_near(noted[k].o.cold, 0.0002);
      } else if (noted[k].o.hot > 0.2) {
        clusters++;
        is_near(noted[k].o.hot, 0.3), is_near(noted[k].o.cold, 0.003);
        assert_non_null(noted[k].o.cluster);
      }
      assert_true(noted[k].budget.evaluations <= 2000 + 16 * 2 * 100 * 8);
    }
    job_free(&j);
    instance_free(&i);
  }
  assert_true(units > 0 && clusters > 0);
}

// Tests with which options each method calls annealing.
static void test_what_is_asked(void **state) {
  (void)state;
  struct tfc_random r;
  uint32_t regions_least = 99, regions_most = 0;
  tfc_random_init(&r, 6);
  for (uint64_t seed = 1; seed <= 12; seed++) {
    const bool step = seed % 2;
    struct instance i = medium(seed, step ? TFC_OBJECTIVE_STEP : TFC_OBJECTIVE_THROUGHPUT);
    const struct tfc_problem *p = i.problem;
    // Annealing on units is one run with all of the budget.
    for (int hot = 0; hot < 2; hot++) {
      struct tfc_search_job j = job(p, hot ? TFC_METHOD_HOT : TFC_METHOD_ANNEAL, &r, 700);
      run_and_check(p, &j);
      assert_int_equal(noted_count, 1);
      assert_true(noted[0].budget.evaluations == (step ? 697 : 700) && noted[0].o.orders == step && noted[0].o.kinds);
      is_near(noted[0].o.hot, 0.05), is_near(noted[0].o.cold, 0.0005), is_near(noted[0].o.critical, 0.5);
      assert_null(noted[0].o.cluster);
      assert_in_range(noted[0].o.regions, 3, 11);
      if (noted[0].o.regions < regions_least) regions_least = noted[0].o.regions;
      if (noted[0].o.regions > regions_most) regions_most = noted[0].o.regions;
      job_free(&j);
    }
    // Rounds: equal parts of the budget, each half as hot as the last, down to a hundredth.
    struct tfc_search_job j = job(p, TFC_METHOD_ANNEAL, &r, 900);
    j.rounds = 3;
    run_and_check(p, &j);
    assert_int_equal(noted_count, 3);
    for (int k = 0; k < 3; k++) {
      is_near(noted[k].o.hot, 0.05 / (1 << k)), is_near(noted[k].o.cold, 0.0005 / (1 << k));
      assert_true(noted[k].o.orders && noted[k].o.kinds && noted[k].o.regions == 10);
      is_near(noted[k].o.critical, 0.5);
      assert_in_range(noted[k].budget.evaluations, 290, 301);
      // it begins at the best placement so far
      if (k) assert_false(tfc_score_better(noted[k - 1].before, noted[k].before));
    }
    job_free(&j);
    // Levels: larger clusters first, hotter first; the last level has single units and all that is left.
    for (int both = 0; both < 2; both++) {
      tfc_device_id pair[128];
      j = job(p, both ? TFC_METHOD_COMBINE : TFC_METHOD_CLUSTERS, &r, 1500);
      for (uint32_t u = 0; u < p->unit_count; u++)
        pair[u] = (tfc_device_id)(j.solution.device[u] * 3 + (both ? j.other.device[u] : 0));
      labels = pair;
      run_and_check(p, &j);
      labels = NULL;
      assert_true(noted_count >= 2 && noted_count <= 4);
      assert_false(noted[0].mixed_pair);
      for (uint32_t k = 0; k < noted_count; k++) {
        const bool last = k + 1 == noted_count;
        const uint64_t left = (step ? 1497 : 1500) - noted[k].spent;
        is_near(noted[k].o.hot, 0.05 / (last ? 4 : k + 1));
        assert_true(!noted[k].o.cluster == last && !noted[k].apart);
        assert_int_equal(noted[k].budget.evaluations, last ? left : (uint64_t)((double)left * 0.4) + 1);
      }
      job_free(&j);
    }
    // Groups by name on one device; single units where the groups are hardly larger.
    j = job(p, TFC_METHOD_REGROUP, &r, 1500);
    run_and_check(p, &j);
    assert_true(noted_count >= 2);
    for (uint32_t k = 0; k < noted_count; k++) {
      assert_true(noted[k].o.hot >= 0.004 - 1e-9 && noted[k].o.hot <= 0.04 && !noted[k].apart);
      is_near(noted[k].o.cold, 0.0003);
      if (noted[k].o.cluster)
        assert_true(noted[k].o.cluster_count <= p->unit_count / 2 &&
                    noted[k].budget.evaluations <= 300 + 4 * noted[k].o.cluster_count);
    }
    job_free(&j);
    // The policy and annealing on units share a job in blocks, while the temperature falls; if the policy finds no more
    // moves, annealing gets all that is left.
    for (int all = 0; all < 2; all++) {
      takes_all = all;
      j = job(p, TFC_METHOD_POLICY, &r, 800);
      noted_count = 0, asked = 0;
      assert_ok(tfc_search_job_run(p, &j));
      assert_true(noted_count >= 1 && noted[0].o.orders && !noted[0].o.cluster);
      assert_true(j.by_policy.gained == 0 && !j.by_policy.fits);
      is_near(noted[0].o.critical, 0.5);
      if (all) {
        assert_true(asked + noted_count <= 8 && given.evaluations > 0);
      } else { // it used one evaluation, and was not asked again: seven blocks for annealing
        assert_true(asked == 1 && noted_count == 7 && given.evaluations == (step ? 100 : 101));
        for (uint32_t k = 0; k < noted_count; k++) {
          assert_true(noted[k].o.hot <= 0.05 && noted[k].o.cold >= 0.0005 * (1 - 1e-9));
          assert_true(noted[k].o.cold < noted[k].o.hot && (!k || noted[k].o.hot < noted[k - 1].o.hot));
          assert_in_range(noted[k].budget.evaluations, 112, 116);
        }
        is_near(noted[noted_count - 1].o.cold, 0.0005);
      }
      job_free(&j);
    }
    // policy_first: one block of the policy's moves, then annealing with all that is left, also of that block.
    takes_all = false;
    for (int all = 0; all < 2; all++) {
      spends = all;
      j = job(p, TFC_METHOD_POLICY, &r, 800);
      j.policy_first = true;
      noted_count = 0, asked = 0;
      assert_ok(tfc_search_job_run(p, &j));
      const uint64_t own = step ? 800 - TFC_SETTLE_MOST : 800, used = all ? given.evaluations : 1;
      assert_true(asked == 1 && noted_count == 1);
      assert_int_equal(given.evaluations, own * 4 / 5 + 1);
      assert_int_equal(noted[0].budget.evaluations, own - used);
      is_near(noted[0].o.hot, 0.05 * pow(0.01, (double)used / (double)own));
      is_near(noted[0].o.cold, 0.0005);
      job_free(&j);
    }
    spends = false;
    instance_free(&i);
  }
  assert_true(regions_least <= 5 && regions_most >= 9);
}

// Packing uses annealing for three tasks. To divide the units into parts, which packing also does in other ways: by
// loads, with a price of memory. To place the parts: by loads in two of three calls, for throughput in all. To place
// the units at the end: for the step also with orders of operations. The first two tasks get one, two or four times the
// evaluations for a problem of their size; no task gets more than are left.
static void test_what_packing_asks(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 19);
  for (int objective = 0; objective < 2; objective++) {
    const bool step = objective == TFC_OBJECTIVE_STEP;
    uint32_t finds[3] = {0}, parts[3] = {0}, by_loads = 0, all_parts = 0, refines = 0, cut = 0;
    double least[2] = {INFINITY, INFINITY}, most[2] = {0};
    for (int k = 0; k < 10; k++) {
      struct instance i = random_instance(&r, 14, 3, RICH_LIMITS, (tfc_objective)objective);
      const struct tfc_problem *p = i.problem;
      const uint64_t size = (uint64_t)p->unit_count * p->device_count, all = step ? 30000 : 300000;
      struct tfc_search_job j = job(p, TFC_METHOD_PACK, &r, all);
      run_and_check(p, &j);
      for (uint32_t n = 0; n < noted_count; n++) {
        const struct tfc_anneal_options *o = &noted[n].o;
        const uint64_t asked_for = noted[n].budget.evaluations,
                       left = all - (step ? TFC_SETTLE_MOST : 0) - noted[n].spent;
        assert_true(asked_for > 0 && asked_for <= left && o->regions == 0 && !o->kinds && o->critical <= 0);
        if (o->hot < 0.01) { // over units
          is_near(o->hot, 0.003), is_near(o->cold, 0.0002);
          assert_true(!o->cluster && o->orders == step && o->price <= 0 && !o->by_loads);
          const uint64_t enough = step ? 300 + 3 * size : 2000 + 40 * size;
          assert_int_equal(asked_for, enough < left ? enough : left);
          refines++;
          continue;
        }
        const bool over_parts = o->hot > 0.1;
        uint64_t enough = 0;
        if (over_parts) {
          const uint64_t own = (uint64_t)o->cluster_count * p->device_count;
          is_near(o->hot, 0.2), is_near(o->cold, 0.001);
          assert_non_null(o->cluster);
          enough = o->by_loads ? 2000 + 200 * own : 300 + 20 * own;
          by_loads += o->by_loads, all_parts++;
        } else {
          is_near(o->hot, 0.05), is_near(o->cold, 0.0005);
          assert_true(!o->cluster && o->by_loads);
        }
        assert_false(o->orders);
        least[over_parts] = fmin(least[over_parts], o->price), most[over_parts] = fmax(most[over_parts], o->price);
        uint32_t times = 0;
        if (over_parts) {
          while (times < 3 && asked_for != enough << times) times++;
        } else {
          while (times < 3 && asked_for != 2000 + (100 * size << times)) times++;
        }
        if (times < 3)
          ++*(over_parts ? &parts[times] : &finds[times]);
        else // fewer are left
          cut++, assert_true(over_parts ? asked_for == left : asked_for < 2000 + (100 * size << 2));
      }
      job_free(&j);
      instance_free(&i);
    }
    for (int times = 0; times < 3; times++) assert_true(finds[times] > 0 && parts[times] > 0);
    assert_true(refines > 20 && cut < 40);
    if (step) // five standard deviations
      assert_true(fabs(by_loads - all_parts * 2.0 / 3) < 5 * sqrt(all_parts * 2.0 / 9));
    else
      assert_int_equal(by_loads, all_parts);
    // Prices are drawn evenly on a logarithmic scale: from 0.3 to 3 for dividing, from 0.3 to 9 for placing parts.
    assert_true(least[0] >= 0.3 && least[0] < 0.45 && most[0] <= 3 && most[0] > 2);
    assert_true(least[1] >= 0.3 && least[1] < 0.45 && most[1] <= 9 && most[1] > 6);
  }
}

// The worth of the policy's moves, and of annealing, is the gain divided by the effort; 0.15 of the greater worth is
// added to both. Each is drawn in proportion to that.
static void test_draws_by_worth(void **state) {
  (void)state;
  enum { DRAWS = 20000 };
  static const struct {
    struct shares shares;
    double policy; // the chance of its moves
  } cases[] = {{{{0, 0}, {0, 0}}, 0.5},
               {{{1, 0}, {5, 0}}, 1.15 / 1.3},
               {{{0, 1}, {0, 5}}, 0.15 / 1.3},
               {{{0.1, 0.1}, {0.25, 0.5}}, 1.15 / 1.8}, // 0.4 and 0.2: with 0.06 each, 0.46 of 0.72
               {{{0.1, 0.4}, {0.5, 0.5}}, 0.4 / 1.55},  // 0.2 and 0.8, with 0.12 each: 0.32 of 1.24
               {{{0, 0}, {3, 3}}, 0.5}};
  struct tfc_random r;
  tfc_random_init(&r, 3);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    uint32_t policy_drawn = 0;
    for (int n = 0; n < DRAWS; n++) policy_drawn += draw_share(&cases[k].shares, &r) == BY_POLICY;
    const double off = policy_drawn - DRAWS * cases[k].policy;
    if (fabs(off) > 5 * sqrt(DRAWS * cases[k].policy * (1 - cases[k].policy))) fail_msg("case %zu: %g more", k, off);
  }
}

// The policy is stuck if it used less than half of its block, unless the clock ended the block.
static void test_stuck(void **state) {
  (void)state;
  const double past = tfc_now_s() - 1, later = past + 1e6;
  static const struct {
    uint64_t evaluations, used;
    int clock; // -1: over, 0: none, 1: far away
    bool stuck;
  } cases[] = {{101, 50, 0, true},  {101, 51, 0, false}, {100, 49, 0, true},  {100, 50, 0, false},
               {1, 0, 0, true},     {1, 1, 0, false},    {100, 0, -1, false}, {100, 49, 1, true},
               {100, 50, 1, false}, {0, 1000, 1, true},  {0, 1000, -1, false}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const struct tfc_budget block = {.evaluations = cases[k].evaluations,
                                     .deadline = cases[k].clock ? cases[k].clock < 0 ? past : later : 0};
    if (is_stuck(&block, cases[k].used) != cases[k].stuck) fail_msg("case %zu", k);
  }
}

// Of the eight blocks of a job, the policy and annealing get one each; the one that gains more gets most of the others.
// If only one gains, 0.15 of its worth is added to the worth of both, so it is drawn with a chance of 1.15 in 1.3.
static void test_blocks_go_to_who_gains(void **state) {
  (void)state;
  enum { JOBS = 60 };
  struct tfc_random r;
  tfc_random_init(&r, 77);
  struct instance i = random_instance(&r, 60, 3, 0, TFC_OBJECTIVE_STEP);
  spends = true;
  for (int way = 0; way < 2; way++) { // the policy alone, annealing alone
    uint32_t by_policy = 0, blocks = 0;
    wins = way == 0;
    for (int k = 0; k < JOBS; k++) {
      struct tfc_search_job j = job(i.problem, TFC_METHOD_POLICY, &r, 1600);
      if (wins) j.score.value /= 1000; // nothing that annealing finds is better
      asked = noted_count = 0;
      assert_ok(tfc_search_job_run(i.problem, &j));
      by_policy += asked, blocks += asked + noted_count;
      job_free(&j);
    }
    const double share = (double)by_policy / blocks, wanted = (1 + 6 * (wins ? 1.15 : 0.15) / 1.3) / 8;
    if (fabs(share - wanted) > 0.12) fail_msg("way %d: %g of the blocks, not %g", way, share, wanted);
  }
  spends = wins = false;
  instance_free(&i);
}

// In a job that the policy shares with annealing, the policy's gain is what its own moves gained below the best
// placement when the job was planned: nothing of the way from a worse one to there, and nothing that annealing found.
static void test_who_gained(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 31);
  struct instance i = random_instance(&r, 60, 3, 0, TFC_OBJECTIVE_STEP);
  const struct tfc_problem *p = i.problem;
  struct tfc_solution good = {0}, trial = {0};
  MUST(tfc_solution_init(&good, p));
  MUST(tfc_solution_init(&trial, p));
  struct tfc_score best = TFC_SCORE_NONE;
  for (int k = 0; k < 200; k++) {
    random_devices(&r, p, trial.device);
    const struct tfc_score score = score_of(p, &trial);
    if (!tfc_score_better(score, best)) continue;
    best = score;
    memcpy(good.device, trial.device, p->unit_count * sizeof *good.device);
  }
  for (int k = 0; k < 6; k++) {
    struct tfc_search_job j = job(p, TFC_METHOD_POLICY, &r, 1600);
    while (j.score.value <= best.value + 4) { // begins at a worse placement
      random_devices(&r, p, j.solution.device);
      j.score = score_of(p, &j.solution);
    }
    const int64_t start = j.score.value, middle = (start + best.value) / 2;
    gift = k < 5 ? &good : NULL, gift_score = best, gift_units = p->unit_count, asked = 0, taken = 0;
    // as good as the start, in between, as good as the policy's placement, better than that, above a memory limit
    const int64_t before[] = {start, middle, best.value, best.value / 2, start, start};
    j.before = (struct tfc_score){k == 4 ? 5 : 0, before[k]};
    if (k == 4) j.score.excess = 7;
    assert_ok(tfc_search_job_run(p, &j));
    assert_true(asked > 0 && !tfc_score_better(best, j.score));
    assert_int_equal(j.by_policy.gained, k == 0 ? start - best.value : k == 1 ? middle - best.value : 0);
    assert_int_equal(j.by_policy.fits, k == 4);
    assert_int_equal(j.by_policy.evaluations, taken);
    assert_true(j.evaluations > taken && j.by_policy.seconds >= 0);
    job_free(&j);
  }
  gift = NULL;
  tfc_solution_deinit(&good);
  tfc_solution_deinit(&trial);
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_stuck),
                                     cmocka_unit_test(test_what_packing_asks),
                                     cmocka_unit_test(test_draws_by_worth),
                                     cmocka_unit_test(test_who_gained),
                                     cmocka_unit_test(test_blocks_go_to_who_gains),
                                     cmocka_unit_test(test_parts_of_budgets),
                                     cmocka_unit_test(test_targets),
                                     cmocka_unit_test(test_scatter),
                                     cmocka_unit_test(test_starts),
                                     cmocka_unit_test(test_starts_that_agree),
                                     cmocka_unit_test(test_small_optima),
                                     cmocka_unit_test(test_planted_optimum),
                                     cmocka_unit_test(test_fresh_starts),
                                     cmocka_unit_test(test_what_is_asked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
