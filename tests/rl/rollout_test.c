// Tests rollouts: the features of small graphs are those worked out by hand, some changes of a problem must not change
// features, and every rollout keeps all constraints.
#include "tests/rl/shared.h"

#include <math.h>

#include "placer/model/machine_yaml.h"
#include "tests/placer/instances.h"

// --- by hand ---------------------------------------------------------------------------------------------------------

struct seen {
  uint32_t count, unit[8];
  float feature[8][TFC_FEATURE_COUNT][2];
  uint32_t device[8];
};
static void watch(void *user, const struct tfc_choice *c) {
  struct seen *s = user;
  assert_int_equal(c->device_count, 2);
  assert_true(s->count < 8);
  s->unit[s->count] = c->unit, s->device[s->count] = c->device;
  for (uint32_t f = 0; f < TFC_FEATURE_COUNT; f++)
    for (uint32_t d = 0; d < 2; d++) s->feature[s->count][f][d] = c->may[d] ? c->feature[f * 2 + d] : NAN;
  s->count++;
}

static void expect(float x, double y) {
  assert_true(fabs((double)x - y) <= 1e-5);
}

// a (10 us) feeds b (20 us) and c (10 us), whose bytes take 4 us on the link; d (10 us) reads both.
static void features_by_hand(void **state) {
  (void)state;
  static const char machine[] =
      "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, count: 2}\n"
      "links:\n  - {from: \"*\", to: \"*\", latency: 0us, bandwidth: 1GB/s}\n";
  struct tfc_cost_builder *b = NULL;
  struct grid g = {0};
  uint32_t kind, id[4];
  const double us[4] = {10, 20, 10, 10};
  assert_ok(tfc_cost_builder_create(&b));
  assert_ok(tfc_cost_builder_kind(b, TFC_STR("acc"), &kind));
  for (uint32_t i = 0; i < 4; i++) {
    assert_ok(tfc_cost_builder_node(b, (tfc_str){&"abcd"[i], 1}, &id[i]));
    assert_ok(tfc_cost_builder_time(b, id[i], kind, us[i]));
  }
  assert_ok(tfc_cost_builder_edge(b, id[0], 0, id[1], 4000, TFC_LIVE_ABSENT));
  assert_ok(tfc_cost_builder_edge(b, id[0], 0, id[2], 4000, TFC_LIVE_ABSENT));
  assert_ok(tfc_cost_builder_edge(b, id[1], 0, id[3], 4000, TFC_LIVE_ABSENT));
  assert_ok(tfc_cost_builder_edge(b, id[2], 0, id[3], 4000, TFC_LIVE_ABSENT));
  assert_ok(tfc_cost_builder_finish(b, &g.graph));
  tfc_cost_builder_free(b);
  assert_ok(tfc_machine_parse(tfc_str_from(machine), "m", &g.machine));
  assert_ok(tfc_problem_create(g.graph, g.machine, TFC_OBJECTIVE_STEP, &g.problem));
  struct tfc_scene *scene = NULL;
  struct tfc_rollout *rollout = NULL;
  struct seen seen = {0};
  float weights[TFC_WEIGHTS] = {0};
  tfc_device_id device[4];
  weights[TFC_FEATURE_FINISH] = -1; // earliest finish
  assert_ok(tfc_scene_create(g.problem, &scene));
  assert_ok(tfc_rollout_create(scene, &rollout));
  const struct tfc_rollout_options o = {.watch = watch, .user = &seen};
  assert_true(tfc_rollout_run(rollout, weights, &o, device));
  // a may only go to device 0, since the devices are equal and empty. Then b (its path is longer), c and d.
  assert_int_equal(seen.count, 3);
  assert_int_equal(seen.unit[0], 1);
  assert_int_equal(seen.unit[1], 2);
  assert_int_equal(seen.unit[2], 3);
  const double span = 40 + 1e-6; // us: the critical path a b d
  const float(*f)[2] = seen.feature[0];
  double size = 20 + 4 + 1e-4 * span;
  expect(f[TFC_FEATURE_START][0], 0);
  expect(f[TFC_FEATURE_START][1], 4 / (4 + size)); // from 14 on instead of from 10
  expect(f[TFC_FEATURE_FINISH][1], 4 / (4 + size));
  expect(f[TFC_FEATURE_DELAY][1], (64 * 4 / span) / (64 * 4 / span + 1));
  expect(f[TFC_FEATURE_FETCH][0], 0);
  expect(f[TFC_FEATURE_FETCH][1], 4 / (4 + 20 + 1e-6 * span));
  expect(f[TFC_FEATURE_MISSING][1], 1);
  expect(f[TFC_FEATURE_INPUTS][0], 1);
  expect(f[TFC_FEATURE_INPUTS][1], 0);
  expect(f[TFC_FEATURE_LATEST][0], 1);
  expect(f[TFC_FEATURE_CHAIN][0], 1);
  expect(f[TFC_FEATURE_UNUSED][0], 0);
  expect(f[TFC_FEATURE_UNUSED][1], 1);
  expect(f[TFC_FEATURE_LOAD][0], 10.0 / 25); // of 50 us on two devices
  expect(f[TFC_FEATURE_SPEED][1], 0);
  assert_int_equal(seen.device[0], 0);
  // c: b is on device 0 until 30, so device 1 has it from 14 on; half of a's readers are on device 0.
  f = seen.feature[1];
  size = 10 + 4 + 1e-4 * span;
  expect(f[TFC_FEATURE_START][0], 16 / (16 + size));
  expect(f[TFC_FEATURE_START][1], 0);
  expect(f[TFC_FEATURE_WAIT][0], 20 / (20 + size));
  expect(f[TFC_FEATURE_IDLE][1], 14 / (14 + size));
  expect(f[TFC_FEATURE_SIBLINGS][0], 0.5);
  expect(f[TFC_FEATURE_LAST][0], 1);
  assert_int_equal(seen.device[1], 1);
  // For d: the result of c is on device 0 at 28, and that of b at 30. So d can start at 30 on device 0, and at 34 on
  // device 1, when b's result has arrived there.
  f = seen.feature[2];
  size = 10 + 8 + 1e-4 * span;
  expect(f[TFC_FEATURE_START][0], 0);
  expect(f[TFC_FEATURE_START][1], 4 / (4 + size));
  expect(f[TFC_FEATURE_INPUTS][0], 0.5);
  expect(f[TFC_FEATURE_INPUTS][1], 0.5);
  expect(f[TFC_FEATURE_LATEST][0], 1);
  assert_int_equal(seen.device[2], 0);
  tfc_rollout_free(rollout);
  tfc_scene_free(scene);
  grid_free(&g);
}

// --- changes that change no feature ----------------------------------------------------------------------------------

static int64_t best_of(const struct grid *g, uint64_t evaluations, uint32_t threads) {
  struct tfc_policy *policy = NULL;
  struct tfc_tuner *t = NULL;
  assert_ok(tfc_policy_untrained(3, &policy));
  assert_ok(tfc_tuner_create(g->problem, policy, 7, threads, &t));
  const struct tfc_budget budget = {.evaluations = evaluations, .threads = threads};
  assert_ok(tfc_tuner_run(t, &budget));
  assert_int_equal(t->told, evaluations);
  const int64_t best = t->elite[0].score.value;
  tfc_tuner_free(t);
  tfc_policy_free(policy);
  return best;
}

static void names_and_order_change_nothing(void **state) {
  (void)state;
  static const char slow_last[] = "format: tfc-machine\nversion: 1\ndevices:\n"
                                  "  - {name: \"acc:0\", kind: acc, count: 2}\n"
                                  "  - {name: \"slow:0\", kind: acc, slowdown: [1.7]}\n"
                                  "links:\n  - {from: \"*\", to: \"*\", latency: 5us, bandwidth: 20GB/s}\n";
  static const char others[] = "format: tfc-machine\nversion: 1\ndevices:\n"
                               "  - {name: \"z\", kind: acc}\n  - {name: \"y\", kind: acc}\n"
                               "  - {name: \"x\", kind: acc, slowdown: [1.7]}\n"
                               "links:\n  - {from: \"*\", to: \"*\", latency: 5us, bandwidth: 20GB/s}\n";
  struct grid a = {0}, b = {0}, c = {0};
  grid_make(5, 11, 0, slow_last, "cell", 1, &a);
  grid_make(5, 11, 0, others, "quite/another/name", 1, &b);
  grid_make(5, 11, 0, slow_last, "cell", 17, &c); // nodes in another order
  const int64_t best = best_of(&a, 120, 1);
  assert_int_equal(best, best_of(&b, 120, 1));
  assert_int_equal(best, best_of(&c, 120, 1));
  assert_int_equal(best, best_of(&a, 120, 4)); // the number of threads changes nothing either
  grid_free(&a), grid_free(&b), grid_free(&c);
}

// --- constraints -----------------------------------------------------------------------------------------------------

static void keeps_constraints(void **state) {
  (void)state;
  uint32_t fits = 0, limited = 0;
  for (uint64_t number = 0; number < 150; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 5000 + number);
    const uint32_t rich = number % 4 == 0 ? 0 : (uint32_t)pick(&r, RICH_ALL + 1);
    struct instance i = random_instance(&r, 2 + (uint32_t)pick(&r, 60), 1 + (uint32_t)pick(&r, 5), rich,
                                        number % 2 ? TFC_OBJECTIVE_THROUGHPUT : TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    struct tfc_scene *scene = NULL;
    struct tfc_rollout *rollout = NULL;
    struct tfc_simulator *sim = NULL;
    struct tfc_policy *policy = NULL;
    tfc_device_id *device = calloc(p->unit_count, sizeof *device), *before = calloc(p->unit_count, sizeof *before);
    bool *kept = calloc(p->unit_count, sizeof *kept);
    assert_ok(tfc_policy_untrained(number, &policy));
    assert_ok(tfc_scene_create(p, &scene));
    assert_ok(tfc_rollout_create(scene, &rollout));
    assert_ok(tfc_simulator_create(p, &sim));
    struct tfc_rollout_options o = {.random = &r, .temperature = number % 3 ? 0 : 0.3};
    for (int k = 0; k < 4; k++) {
      const bool fine = tfc_rollout_run(rollout, k ? policy->head[k] : NULL, &o, device);
      struct tfc_verdict v = {0};
      tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &v);
      for (uint32_t u = 0; u < p->unit_count; u++)
        assert_true(device[u] < p->device_count && tfc_problem_allows(p, u, device[u]));
      if (!p->has_missing_links || fine) assert_true(v.legal);
      if (fine && !p->has_live) assert_true(v.feasible);
      if (p->has_limits && !p->has_live) limited++, fits += fine;
      // Units that are to be kept stay where they are.
      memcpy(before, device, sizeof *device * p->unit_count);
      for (uint32_t u = 0; u < p->unit_count; u++) kept[u] = u % 3 != 0;
      o.kept = kept;
      tfc_rollout_run(rollout, policy->head[0], &o, device);
      for (uint32_t u = 0; u < p->unit_count; u++) assert_true(!kept[u] || device[u] == before[u]);
      o.kept = NULL;
    }
    free(device), free(before), free(kept);
    tfc_policy_free(policy);
    tfc_simulator_free(sim);
    tfc_rollout_free(rollout);
    tfc_scene_free(scene);
    instance_free(&i);
  }
  assert_true(limited > 20 && fits * 10 >= limited * 7);
}

// --- what saves time changes nothing ---------------------------------------------------------------------------------

// A rollout that has placed parts of other placements anew, and a scene without tables of speeds and transfers, place
// units as a new rollout does with the tables.
static void shortcuts_change_nothing(void **state) {
  (void)state;
  uint32_t tables = 0, moved = 0;
  for (uint64_t number = 0; number < 24; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 900 + number);
    const uint32_t devices = 2 + (uint32_t)(number % 7);
    struct instance i =
        random_instance(&r, 120 + (uint32_t)pick(&r, 200), devices, number % 3 ? 0 : RICH_ALL / 2, TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    struct tfc_scene *scene = NULL, *plain = NULL;
    struct tfc_rollout *old = NULL, *other = NULL;
    struct tfc_policy *policy = NULL;
    tfc_device_id *base = calloc(p->unit_count, sizeof *base), *a = calloc(p->unit_count, sizeof *a),
                  *b = calloc(p->unit_count, sizeof *b);
    bool *kept = calloc(p->unit_count, sizeof *kept);
    assert_ok(tfc_policy_untrained(number, &policy));
    assert_ok(tfc_scene_create(p, &scene));
    assert_ok(tfc_scene_create(p, &plain));
    tables += scene->wire != NULL;
    free(plain->wire), free(plain->speed);
    plain->wire = NULL, plain->speed = NULL;
    assert_ok(tfc_rollout_create(scene, &old));
    assert_ok(tfc_rollout_create(plain, &other));
    tfc_rollout_run(old, policy->head[0], &(struct tfc_rollout_options){.random = &r}, base);
    for (int turn = 0; turn < 40; turn++) {
      const uint32_t from = (uint32_t)pick(&r, p->unit_count), count = 1 + (uint32_t)pick(&r, p->unit_count);
      const bool whole = turn % 10 == 9;
      struct tfc_random one, two, three;
      tfc_random_init(&one, (uint64_t)turn), two = one, three = one;
      struct tfc_rollout_options o = {.random = &one, .temperature = turn % 2 ? 0 : 0.1, .kept = whole ? NULL : kept};
      struct tfc_rollout *fresh = NULL;
      tfc_device_id *c = calloc(p->unit_count, sizeof *c);
      for (uint32_t u = 0; u < p->unit_count; u++) kept[u] = u < from || u >= from + count;
      memcpy(a, base, sizeof *a * p->unit_count), memcpy(b, a, sizeof *a * p->unit_count);
      memcpy(c, a, sizeof *a * p->unit_count);
      const bool fine = tfc_rollout_run(old, policy->head[turn % 20], &o, a);
      o.random = &two;
      assert_int_equal(tfc_rollout_run(other, policy->head[turn % 20], &o, b), fine);
      assert_ok(tfc_rollout_create(scene, &fresh));
      o.random = &three;
      assert_int_equal(tfc_rollout_run(fresh, policy->head[turn % 20], &o, c), fine);
      assert_memory_equal(a, b, sizeof *a * p->unit_count);
      assert_memory_equal(a, c, sizeof *a * p->unit_count);
      moved += memcmp(a, base, sizeof *a * p->unit_count) != 0;
      if (turn % 3 == 0) memcpy(base, a, sizeof *a * p->unit_count); // the next turns begin with another placement
      tfc_rollout_free(fresh);
      free(c);
    }
    free(base), free(a), free(b), free(kept);
    tfc_policy_free(policy);
    tfc_rollout_free(old), tfc_rollout_free(other);
    tfc_scene_free(scene), tfc_scene_free(plain);
    instance_free(&i);
  }
  assert_true(tables > 4 && moved > 400);
}

// --- algorithms ------------------------------------------------------------------------------------------------------

static int64_t run_algo(const struct grid *g, const struct tfc_algo *algo, const struct tfc_policy *policy,
                        uint64_t evaluations, uint64_t seed) {
  struct tfc_evaluator *evaluator = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_solution found = {0};
  struct tfc_verdict v = {0};
  uint64_t used = 0;
  const struct tfc_budget budget = {
      .evaluations = evaluations, .seed = seed, .threads = 1, .guide = policy ? &policy->guide : NULL};
  assert_ok(tfc_evaluator_simulated(g->problem, 1, &evaluator));
  assert_ok(tfc_simulator_create(g->problem, &sim));
  assert_ok(tfc_solution_init(&found, g->problem));
  assert_ok(algo->propose(g->problem, evaluator, &budget, &found, &used));
  assert_int_equal(used, evaluations);
  tfc_simulate(sim, found.device, found.rank, TFC_TIME_MAX, &v);
  assert_true(v.legal);
  tfc_solution_deinit(&found);
  tfc_simulator_free(sim);
  tfc_evaluator_free(evaluator);
  return v.value;
}

// Every algorithm makes as many evaluations as it is given, and the same seed gives the same answer.
static void algorithms(void **state) {
  (void)state;
  struct grid g = {0};
  struct tfc_policy *policy = NULL;
  grid_make(4, 10, 0, FOUR_ALIKE, "cell", 1, &g);
  assert_ok(tfc_policy_untrained(1, &policy));
  for (const struct tfc_algo *const *a = tfc_rl_algos(); *a; a++) {
    const int64_t value = run_algo(&g, *a, policy, 150, 5);
    assert_int_equal(value, run_algo(&g, *a, policy, 150, 5));
    assert_true(run_algo(&g, *a, policy, 20, 5) >= value);
  }
  assert_true(policy->notes->head_count > 0);
  struct tfc_evaluator *evaluator = NULL;
  struct tfc_solution found = {0};
  uint64_t used = 0;
  const struct tfc_budget none = {.evaluations = 5, .threads = 1};
  assert_ok(tfc_evaluator_simulated(g.problem, 1, &evaluator));
  assert_ok(tfc_solution_init(&found, g.problem));
  assert_fails(tfc_algo_rl.propose(g.problem, evaluator, &none, &found, &used), TFC_FAILED_PRECONDITION, "no policy");
  tfc_solution_deinit(&found);
  tfc_evaluator_free(evaluator);
  tfc_policy_free(policy);
  grid_free(&g);
}

// `auto` uses a policy if there is one; budgets are kept, and the answer does not depend on the number of threads: not
// the placement, not its value, not what the policy did.
static void searches_ask_it(void **state) {
  (void)state;
  static const uint64_t budgets[] = {200, 6000};
  for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++) {
    struct grid g = {0};
    struct tfc_policy *policy[2] = {NULL};
    struct tfc_search_outcome out[2] = {0};
    grid_make(4, 12, 0, FOUR_ALIKE, "cell", 1, &g);
    for (uint32_t k = 0; k < 2; k++) {
      assert_ok(tfc_policy_untrained(1, &policy[k]));
      const struct tfc_search_options o = {
          .evaluations = budgets[b], .seed = 3, .threads = 1 + 3 * k, .settings.guide = &policy[k]->guide};
      assert_ok(tfc_search(g.problem, &o, &out[k]));
      assert_true(out[k].evaluations <= budgets[b] + 3); // the last order of operations is chosen from three
      assert_true(policy[k]->notes->head_count > 0);
      // In a short search a policy whose samples gained nothing, as this one's, proposes no moves.
      assert_true((out[k].learned.moves.count > 0) == (budgets[b] > 200));
    }
    assert_true(out[0].value == out[1].value && out[0].evaluations == out[1].evaluations);
    assert_string_equal(out[0].algorithm, out[1].algorithm);
    assert_memory_equal(out[0].best.device, out[1].best.device, g.problem->unit_count * sizeof *out[0].best.device);
    const struct tfc_search_turns *one = &out[0].learned.moves, *four = &out[1].learned.moves;
    assert_true(one->count == four->count && one->wins == four->wins && one->evaluations == four->evaluations);
    assert_memory_equal(&one->gained, &four->gained, sizeof one->gained);
    for (uint32_t k = 0; k < 2; k++) {
      tfc_search_outcome_deinit(&out[k]);
      tfc_policy_free(policy[k]);
    }
    grid_free(&g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(features_by_hand),  cmocka_unit_test(names_and_order_change_nothing),
      cmocka_unit_test(keeps_constraints), cmocka_unit_test(shortcuts_change_nothing),
      cmocka_unit_test(algorithms),        cmocka_unit_test(searches_ask_it)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
