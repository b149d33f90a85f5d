// The policy inside local search: which units each kind of move frees, how the bandit's arms are chosen and credited,
// and that the result is not worse than the start and has the value that the simulator gives.
#include "tests/rl/shared.h"

#include <math.h>

#include "rl/improve.c"

static bool beside(const struct tfc_problem *p, uint32_t u, uint32_t v) {
  for (uint32_t net = 0; net < p->net_count; net++) {
    const uint32_t from = p->unit[p->graph->producer[p->net_tensor[net]]];
    bool a = from == u, b = from == v;
    for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++)
      a |= p->net_unit[k] == u, b |= p->net_unit[k] == v;
    if (a && b) return true; // one unit makes the tensor and the other reads it, or both read it
  }
  return false;
}

struct rig {
  struct grid grid;
  struct tfc_policy *policy;
  struct tfc_tuner *tuner;
  struct improver m;
};
static void rig_make(struct rig *r) {
  *r = (struct rig){0};
  grid_make(5, 12, 0, FOUR_ALIKE, "cell", 1, &r->grid);
  assert_ok(tfc_policy_untrained(2, &r->policy));
  assert_ok(tfc_tuner_create(r->grid.problem, r->policy, 2, 1, &r->tuner));
  assert_ok(tfc_tuner_run(r->tuner, &(struct tfc_budget){.evaluations = 32, .threads = 1}));
  r->m = (struct improver){.p = r->grid.problem, .tuner = r->tuner};
  tfc_random_init(&r->m.random, 5);
  assert_ok(prepare(&r->m));
}
static void rig_free(struct rig *r) {
  tfc_rollout_free(r->m.rollout);
  tfc_delta_free(r->m.delta);
  free(r->m.kept), free(r->m.freed), free(r->m.by_order), free(r->m.trial), free(r->m.moves);
  tfc_tuner_free(r->tuner);
  tfc_policy_free(r->policy);
  grid_free(&r->grid);
}

static void ways(void **state) {
  (void)state;
  struct rig r;
  rig_make(&r);
  const struct tfc_problem *p = r.grid.problem;
  const struct tfc_scene *scene = r.tuner->scene;
  tfc_device_id device[64];
  uint32_t position[64], full[WAYS] = {0}, next = 0;
  bool listed[64] = {0};
  for (uint32_t u = 0; u < p->unit_count; u++) device[u] = (tfc_device_id)(u * 7 % 4);
  tfc_delta_reset(r.m.delta, device, NULL, NULL);
  for (uint32_t i = 0; i < p->node_count; i++) { // units by their first node in the scene's order
    const uint32_t u = p->unit[scene->order[i]];
    if (!listed[u]) listed[u] = true, assert_int_equal(r.m.by_order[next], u), position[u] = next++;
  }
  for (uint32_t round = 0; round < 600; round++) {
    const uint32_t way = round % WAYS, wanted = 1 + round % 9;
    choose_units(&r.m, way, wanted);
    assert_in_range(r.m.count, 1, wanted);
    full[way] += r.m.count == wanted;
    uint32_t free_units = 0;
    for (uint32_t u = 0; u < p->unit_count; u++) free_units += !r.m.kept[u];
    assert_int_equal(free_units, r.m.count); // units of the move before are not free any more
    const uint32_t first = r.m.freed[0];
    for (uint32_t i = 0; i < r.m.count; i++) {
      const uint32_t u = r.m.freed[i];
      assert_false(r.m.kept[u]);
      if (way == 0) assert_int_equal(position[u], (position[first] + i) % p->unit_count); // a window
      if (way == 2) assert_int_equal(device[u], device[first]);
      if (way == 3) assert_int_equal(scene->kind[u], scene->kind[first]);
      bool near = way != 1 || i == 0;
      for (uint32_t k = 0; k < i; k++) near = near || beside(p, u, r.m.freed[k]);
      assert_true(near);
    }
    if (way == 2 && r.m.count > 1) { // the next units in the order
      for (uint32_t at = (position[first] + 1) % p->unit_count, i = 1; i < r.m.count; at = (at + 1) % p->unit_count)
        if (device[r.m.by_order[at]] == device[first]) assert_int_equal(r.m.freed[i++], r.m.by_order[at]);
    }
  }
  assert_true(full[0] == 150 && full[1] > 120 && full[2] > 140 && full[3] > 60);
  rig_free(&r);
}

static void arms(void **state) {
  (void)state;
  struct rig r;
  rig_make(&r);
  struct arm arm[4] = {{1, 2}, {3, 7}, {0, 92}, {4, 12}};
  // The arms have the worths 0.1, 0.2, 0 and 0.2; 0.03, which is 0.15 of the best, is added to each.
  static const double worth[] = {0.13, 0.23, 0.03, 0.23};
  double often[4] = {0};
  enum { rounds = 20000 };
  for (int k = 0; k < rounds; k++) often[pull(&r.m, arm, 4)] += 1.0 / rounds;
  for (int k = 0; k < 4; k++) assert_true(fabs(often[k] - worth[k] / 0.62) < 0.02);
  credit(&arm[0], 0.5);
  assert_true(fabs(arm[0].gained - 1.48) < 1e-12 && fabs(arm[0].pulls - 2.96) < 1e-12);
  for (int i = 0; i < WAYS; i++)
    assert_true(fabs(r.m.way[i].gained - 1e-3) < 1e-12 && fabs(r.m.way[i].pulls - 1) < 1e-12);
  // Weights are drawn around those of a head, with a deviation of a twentieth to a half of the policy's.
  double least = INFINITY, most = 0;
  for (int k = 0; k < 200; k++) {
    float weights[TFC_WEIGHTS];
    double square = 0;
    choose_weights(&r.m, 1, weights);
    for (int i = 0; i < TFC_WEIGHTS; i++)
      square += pow((double)(weights[i] - r.tuner->elite[1].weights[i]) / (double)r.policy->spread[i], 2) / TFC_WEIGHTS;
    least = fmin(least, sqrt(square)), most = fmax(most, sqrt(square));
  }
  assert_true(least > 0.012 && least < 0.03 && most > 0.35 && most < 0.65);
  rig_free(&r);
}

struct told {
  uint32_t count;
  int64_t last;
};
static void found(void *user, uint64_t excess, int64_t value) {
  struct told *t = user;
  assert_true(!excess && (!t->count || value < t->last)); // each reported placement is better than the one before
  t->count++, t->last = value;
}

static void improves(void **state) {
  (void)state;
  struct rig r;
  struct tfc_simulator *sim = NULL;
  uint32_t better = 0;
  rig_make(&r);
  assert_ok(tfc_simulator_create(r.grid.problem, &sim));
  for (uint64_t seed = 1; seed <= 5; seed++) {
    struct tfc_solution solution = {0};
    struct tfc_verdict v = {0};
    struct told told = {0};
    uint64_t used = 0;
    assert_ok(tfc_solution_init(&solution, r.grid.problem));
    for (uint32_t u = 0; u < r.grid.problem->unit_count; u++)
      solution.device[u] = (tfc_device_id)tfc_random_below(&r.m.random, 4);
    tfc_simulate(sim, solution.device, NULL, TFC_TIME_MAX, &v);
    struct tfc_score score = tfc_score_of(&v);
    const int64_t before = score.value;
    const struct tfc_budget budget = {
        .evaluations = 500, .seed = seed, .threads = 1, .found = found, .found_user = &told};
    assert_ok(tfc_improve(r.tuner, &budget, &solution, &score, &used));
    tfc_simulate(sim, solution.device, NULL, TFC_TIME_MAX, &v);
    assert_int_equal(v.value, score.value);
    assert_true(score.value <= before && used <= 500);
    if (told.count) assert_int_equal(told.last, score.value);
    better += (double)score.value < 0.85 * (double)before;
    tfc_solution_deinit(&solution);
  }
  assert_int_equal(better, 5);
  tfc_simulator_free(sim);
  rig_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(ways), cmocka_unit_test(arms), cmocka_unit_test(improves)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
