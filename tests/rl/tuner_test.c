// Tests the tuner with known rewards: it keeps the best samples, sorted; it does not learn from ignored ones; weights
// move to where rewards are better. Also tests that algorithms return the best placement that they found.
#include "tests/rl/shared.h"

#include <math.h>

#include "tests/placer/instances.h"

// Returns the squared distance from the wanted weights, at most some hundreds, as a value of a score.
static int64_t far_off(const float *weights, const double *wanted) {
  double sum = 0;
  for (int i = 0; i < TFC_WEIGHTS; i++) {
    const double off = (double)weights[i] - wanted[i];
    sum += off * off;
  }
  return (int64_t)(1e9 * sum) + 1;
}

// If rewards are larger near certain weights, the tuner moves towards these. A search that keeps the worst samples, or
// draws around a fixed point, would not.
static void learns_from_what_it_is_told(void **state) {
  (void)state;
  struct grid g = {0};
  grid_make(3, 5, 0, FOUR_ALIKE, "cell", 1, &g);
  for (uint64_t seed = 1; seed <= 3; seed++) {
    struct tfc_policy *policy = NULL;
    struct tfc_tuner *t = NULL;
    struct tfc_random r;
    double wanted[TFC_WEIGHTS];
    int64_t first = 0, best = INT64_MAX;
    uint64_t told = 0;
    tfc_random_init(&r, 100 + seed);
    assert_ok(tfc_policy_untrained(seed, &policy));
    for (int i = 0; i < TFC_WEIGHTS; i++) wanted[i] = (double)policy->head[0][i] + 3 * tfc_random_normal(&r);
    assert_ok(tfc_tuner_create(g.problem, policy, seed, 1, &t));
    for (int round = 0; round < 60; round++) {
      assert_ok(tfc_tuner_ask(t, TFC_TUNER_TRIALS));
      assert_int_equal(t->trial_count, TFC_TUNER_TRIALS);
      for (uint32_t i = 0; i < t->trial_count; i++) {
        struct tfc_trial *x = &t->trial[i];
        x->score = (struct tfc_score){0, far_off(x->weights, wanted)};
        if (!told) first = x->score.value;
        if (x->score.value < best) best = x->score.value;
        told++;
      }
      tfc_tuner_tell(t);
      assert_int_equal(t->told, told);
      assert_int_equal(t->elite[0].score.value, best);
      for (uint32_t i = 0; i < t->elite_count; i++) {
        assert_int_equal(t->elite[i].score.value, far_off(t->elite[i].weights, wanted));
        assert_true(!i || t->elite[i - 1].score.value < t->elite[i].score.value);
      }
      assert_true(t->elite_count <= TFC_TUNER_ELITE);
    }
    assert_int_equal(t->elite_count, TFC_TUNER_ELITE);
    print_message("seed %d: %.3f of the first distance\n", (int)seed, sqrt((double)best / (double)first));
    assert_true((double)best < 0.75 * (double)first); // square distances
    // The best head is noted, and is the first of the learned policy.
    struct tfc_policy *learned = NULL;
    assert_ok(tfc_policy_learn(policy, t));
    assert_ok(tfc_policy_learned(policy, &learned));
    assert_memory_equal(learned->head[0], t->elite[0].weights, sizeof t->elite[0].weights);
    tfc_policy_free(learned);
    tfc_tuner_free(t);
    tfc_policy_free(policy);
  }
  grid_free(&g);
}

// Scores are the simulator's. Samples that the caller ignores are neither kept nor counted. Placements that fit in
// memory come before faster ones that do not.
static void keeps_what_was_best(void **state) {
  (void)state;
  struct grid g = {0};
  struct tfc_policy *policy = NULL;
  struct tfc_tuner *t = NULL;
  struct tfc_simulator *sim = NULL;
  grid_make(4, 6, 0, FOUR_ALIKE, "cell", 1, &g);
  assert_ok(tfc_policy_untrained(5, &policy));
  assert_ok(tfc_tuner_create(g.problem, policy, 5, 2, &t));
  assert_ok(tfc_simulator_create(g.problem, &sim));
  assert_ok(tfc_tuner_ask(t, 12));
  assert_int_equal(t->trial_count, 12);
  for (uint32_t i = 0; i < 12; i++) {
    struct tfc_verdict v = {0};
    tfc_simulate(sim, t->trial[i].device, NULL, TFC_TIME_MAX, &v);
    assert_int_equal(t->trial[i].score.value, v.value);
    assert_int_equal(t->trial[i].score.excess, v.excess);
    t->trial[i].score = (struct tfc_score){i < 4 ? 10 - i : 0, 1000 + (i * 7) % 12};
    if (i == 4) t->trial[i].score = TFC_SCORE_NONE; // this trial is not legal
    t->trial[i].ignored = i == 11;                  // 1000 + 5
  }
  t->trial[10].score.value = 1; // this would be the best trial
  t->trial[10].ignored = true;
  tfc_tuner_tell(t);
  assert_int_equal(t->told, 10);
  assert_int_equal(t->elite_count, 10);
  // 5: 1011, 6: 1006, 7: 1001, 8: 1008, 9: 1003
  static const int64_t fits[] = {1001, 1003, 1006, 1008, 1011};
  for (int i = 0; i < 5; i++) {
    assert_int_equal(t->elite[i].score.excess, 0);
    assert_int_equal(t->elite[i].score.value, fits[i]);
  }
  for (uint32_t i = 0; i < 4; i++)
    assert_int_equal(t->elite[5 + i].score.excess, 7 + i); // those that exceed the limit least come first
  assert_int_equal(t->elite[9].score.value, TFC_TIME_MAX);
  tfc_simulator_free(sim);
  tfc_tuner_free(t);
  tfc_policy_free(policy);
  grid_free(&g);
}

struct best {
  uint64_t excess;
  int64_t value;
};
static void found(void *user, uint64_t excess, int64_t value) {
  struct best *b = user;
  if (excess < b->excess || (excess == b->excess && value < b->value)) *b = (struct best){excess, value};
}

// The tuner returns the best sample, not the last one or another one.
static void the_best_is_returned(void **state) {
  (void)state;
  for (uint64_t memory = 0; memory <= 1000000; memory += 1000000) {
    struct grid g = {0};
    struct tfc_policy *policy = NULL;
    struct tfc_simulator *sim = NULL;
    grid_make(4, 10, memory, FOUR_ALIKE, "cell", 1, &g);
    if (memory) {
      tfc_problem_free(g.problem);
      assert_ok(tfc_machine_limit(g.machine, TFC_STR("acc:*"), 12 * memory));
      assert_ok(tfc_problem_create(g.graph, g.machine, TFC_OBJECTIVE_STEP, &g.problem));
    }
    assert_ok(tfc_policy_untrained(2, &policy));
    assert_ok(tfc_simulator_create(g.problem, &sim));
    for (const struct tfc_algo *const *a = tfc_rl_algos(); *a; a++)
      for (uint64_t seed = 1; seed <= 3; seed++) {
        struct tfc_evaluator *evaluator = NULL;
        struct tfc_solution solution = {0};
        struct best best = {UINT64_MAX, TFC_TIME_MAX};
        uint64_t used = 0;
        const struct tfc_budget budget = {.evaluations = 100,
                                          .seed = seed,
                                          .threads = 1,
                                          .guide = &policy->guide,
                                          .found = found,
                                          .found_user = &best};
        assert_ok(tfc_evaluator_simulated(g.problem, 1, &evaluator));
        assert_ok(tfc_solution_init(&solution, g.problem));
        assert_ok((*a)->propose(g.problem, evaluator, &budget, &solution, &used));
        struct tfc_verdict v = {0};
        tfc_simulate(sim, solution.device, solution.rank, TFC_TIME_MAX, &v);
        assert_true(v.legal && v.feasible);
        if (best.value != TFC_TIME_MAX && v.value > best.value)
          fail_msg("%s: %lld was found, %lld returned", (*a)->name, (long long)best.value, (long long)v.value);
        tfc_solution_deinit(&solution);
        tfc_evaluator_free(evaluator);
      }
    tfc_simulator_free(sim);
    tfc_policy_free(policy);
    grid_free(&g);
  }
}

// `rl` spends part of its budget on placing parts of the best placement again. The result is better than that of the
// complete rollouts before, not worse than that of more complete rollouts, different from theirs, and within the
// budget.
static void parts_are_placed_anew(void **state) {
  (void)state;
  struct tfc_random r;
  struct tfc_policy *policy = NULL;
  double first = 0, whole = 0, parts = 0;
  uint32_t others = 0;
  tfc_random_init(&r, 4);
  struct instance i = random_instance(&r, 300, 4, 0, TFC_OBJECTIVE_STEP);
  assert_ok(tfc_policy_untrained(9, &policy));
  for (uint64_t seed = 1; seed <= 6; seed++) {
    struct tfc_tuner *t = NULL;
    struct tfc_solution solution = {0};
    struct best best = {UINT64_MAX, TFC_TIME_MAX};
    uint64_t used = 0;
    const struct tfc_budget budget = {
        .evaluations = 200, .seed = seed, .threads = 1, .guide = &policy->guide, .found = found, .found_user = &best};
    assert_ok(tfc_solution_init(&solution, i.problem));
    assert_ok(tfc_rl_algos()[0]->propose(i.problem, NULL, &budget, &solution, &used));
    assert_ok(tfc_tuner_create(i.problem, policy, seed, 1, &t));
    assert_ok(tfc_tuner_run(t, &(struct tfc_budget){.evaluations = 120, .threads = 1}));
    assert_true(used > 120 && used <= 200);
    assert_true(best.value <= t->elite[0].score.value);
    first += (double)t->elite[0].score.value;
    assert_ok(tfc_tuner_run(t, &(struct tfc_budget){.evaluations = 80, .threads = 1}));
    whole += (double)t->elite[0].score.value, parts += (double)best.value;
    others += best.value != t->elite[0].score.value;
    tfc_tuner_free(t);
    tfc_solution_deinit(&solution);
  }
  print_message("%.4f of the first rollouts, %.4f of going on with them\n", parts / first, parts / whole);
  assert_true(parts < 0.99 * first && parts < 1.02 * whole && others >= 4);
  tfc_policy_free(policy);
  instance_free(&i);
}

// The entropy of equal placements is 0; if all devices are chosen equally often it is 1. Placements that cannot run, or
// do not fit, are counted as invalid.
static void says_how_its_samples_differ(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 3);
  struct instance i = random_instance(&r, 20, 4, 0, TFC_OBJECTIVE_STEP);
  struct tfc_policy *policy = NULL;
  struct tfc_tuner *t = NULL;
  assert_ok(tfc_policy_untrained(1, &policy));
  assert_ok(tfc_tuner_create(i.problem, policy, 1, 1, &t));
  assert_true(tfc_tuner_entropy(t) == 0);
  for (uint32_t round = 0; round < 4; round++) {
    assert_ok(tfc_tuner_ask(t, 4));
    for (uint32_t k = 0; k < 4; k++)
      for (uint32_t u = 0; u < i.problem->unit_count; u++) t->trial[k].device[u] = (tfc_device_id)round;
    if (round == 1) t->trial[0].score = TFC_SCORE_NONE, t->trial[1].score.excess = 5;
    tfc_tuner_tell(t);
    const double expected = log(round + 1) / log(4);
    if (fabs(tfc_tuner_entropy(t) - expected) > 1e-9) fail_msg("%g, not %g", tfc_tuner_entropy(t), expected);
  }
  assert_int_equal(t->invalid, 2);
  tfc_tuner_free(t);
  tfc_policy_free(policy);
  instance_free(&i);
}

// A run stops simulations of placements that are worse than all of the elite. It learns the same from them, and counts
// the same, as when every simulation goes on to its end.
static void stops_hopeless_simulations(void **state) {
  (void)state;
  uint32_t cut = 0;
  for (uint64_t number = 0; number < 6; number++) {
    struct tfc_random r;
    struct tfc_policy *policy = NULL;
    struct tfc_tuner *run = NULL, *whole = NULL;
    tfc_random_init(&r, 60 + number);
    struct instance i = random_instance(&r, 100, 3, number % 2 ? RICH_ALL : 0, TFC_OBJECTIVE_STEP);
    assert_ok(tfc_policy_untrained(number, &policy));
    assert_ok(tfc_tuner_create(i.problem, policy, number, 1, &run));
    assert_ok(tfc_tuner_create(i.problem, policy, number, 1, &whole));
    for (int k = 0; k < 20; k++) {
      assert_ok(tfc_tuner_run(run, &(struct tfc_budget){.evaluations = TFC_TUNER_TRIALS, .threads = 1}));
      for (int t = 0; t < TFC_TUNER_TRIALS; t++) cut += run->trial[t].cut;
      assert_ok(tfc_tuner_ask(whole, TFC_TUNER_TRIALS));
      for (int t = 0; t < TFC_TUNER_TRIALS; t++) assert_false(whole->trial[t].cut);
      tfc_tuner_tell(whole);
      assert_int_equal(run->told, whole->told);
      assert_int_equal(run->invalid, whole->invalid);
      assert_int_equal(run->elite_count, whole->elite_count);
      for (uint32_t e = 0; e < run->elite_count; e++) {
        assert_memory_equal(&run->elite[e].score, &whole->elite[e].score, sizeof run->elite[e].score);
        assert_memory_equal(run->elite[e].weights, whole->elite[e].weights, sizeof run->elite[e].weights);
      }
      assert_memory_equal(run->random.state, whole->random.state, sizeof run->random.state);
    }
    tfc_tuner_free(run), tfc_tuner_free(whole);
    tfc_policy_free(policy);
    instance_free(&i);
  }
  assert_true(cut > 200);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(says_how_its_samples_differ), cmocka_unit_test(learns_from_what_it_is_told),
      cmocka_unit_test(keeps_what_was_best),         cmocka_unit_test(the_best_is_returned),
      cmocka_unit_test(parts_are_placed_anew),       cmocka_unit_test(stops_hopeless_simulations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
