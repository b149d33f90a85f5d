// Tests each stage of training by itself, against plain implementations: the start, a generation, saving, and the
// choice of heads.
#include "tests/rl/shared.h"

#include <math.h>
#include <unistd.h>

#include "rl/train.c"

enum { LESSONS = 5 };

struct rig {
  struct grid grid[LESSONS];
  struct tfc_lesson lessons[LESSONS];
  struct tfc_train_options o;
  struct trainer t;
};
static void rig_make(struct rig *r, uint32_t count) {
  *r = (struct rig){0};
  for (uint32_t i = 0; i < count; i++) {
    grid_make(2 + i % 3, 3 + i, 0, FOUR_ALIKE, "cell", 1, &r->grid[i]);
    r->lessons[i] = (struct tfc_lesson){r->grid[i].problem, i / 2}; // every two lessons are from one source
  }
  r->o = (struct tfc_train_options){.lessons = r->lessons, .lesson_count = count, .seed = 3, .threads = 1};
  r->t.o = &r->o;
  assert_ok(prepare(&r->t));
}
static void rig_free(struct rig *r) {
  struct trainer *t = &r->t;
  for (uint32_t i = 0; i < r->o.lesson_count; i++) {
    tfc_simulator_free(t->simulator[i]), tfc_rollout_free(t->rollout[i]), tfc_scene_free(t->scene[i]);
    free(t->device[i]);
    grid_free(&r->grid[i]);
  }
  free(t->simulator), free(t->rollout), free(t->scene), free(t->device), free(t->best), free(t->candidates);
  free(t->table);
}

static double step_of(struct rig *r, uint32_t lesson, const float *weights) {
  tfc_device_id device[64];
  struct tfc_verdict v = {0};
  struct tfc_random random;
  tfc_random_init(&random, 1);
  tfc_rollout_run(r->t.rollout[lesson], weights, &(struct tfc_rollout_options){.random = &random}, device);
  tfc_simulate(r->t.simulator[lesson], device, NULL, TFC_TIME_MAX, &v);
  return log((double)v.value);
}

static void begins(void **state) {
  (void)state;
  struct rig r;
  rig_make(&r, 3);
  for (int i = 0; i < TFC_WEIGHTS; i++) {
    const bool first = i == TFC_FEATURE_FINISH || i == TFC_FEATURE_DELAY;
    assert_true(r.t.mean[i] == (first ? -2.0f : 0.0f)); // training starts from list scheduling
    assert_true(r.t.wide[i] == (i < TFC_FEATURE_COUNT ? 1.0f : 0.4f));
  }
  for (uint32_t k = 0; k < 3; k++) {
    const double first = log((double)r.grid[k].problem->total_fastest + 1), got = attempt(&r.t, k, r.t.mean);
    assert_true(fabs(got - step_of(&r, k, r.t.mean)) < 1e-12);
    assert_true(fabs(r.t.best[k] - fmin(first, got)) < 1e-12);
  }
  struct tfc_policy *p = NULL;
  r.t.wide[0] = 0.5f, r.t.wide[1] = 0.01f;
  assert_ok(make_common(&r.t, &p));
  assert_int_equal(p->head_count, 1);
  assert_memory_equal(p->head[0], r.t.mean, sizeof r.t.mean);
  assert_true(p->spread[0] == 1.0f && p->spread[1] == 0.15f);
  tfc_policy_free(p);
  rig_free(&r);
}

// The next mean comes from the best quarter of the samples. In the rating of a sample, a lesson counts by at most a
// half more or less than the lesson's mean.
static void generations(void **state) {
  (void)state;
  struct rig r;
  struct generation g = {.t = &r.t};
  rig_make(&r, LESSONS);
  g.weights = calloc(POPULATION, sizeof *g.weights), g.value = calloc(POPULATION * FEW_LESSONS, sizeof *g.value);
  for (int round = 0; round < 3; round++) {
    float mean[TFC_WEIGHTS], wide[TFC_WEIGHTS];
    double rating[POPULATION] = {0}, spread = 0;
    uint32_t order[POPULATION];
    bool seen[LESSONS] = {0};
    memcpy(mean, r.t.mean, sizeof mean), memcpy(wide, r.t.wide, sizeof wide);
    run_generation(&g);
    r.t.generation++;
    assert_int_equal(g.count, LESSONS);
    assert_memory_equal(g.weights[0], mean, sizeof mean); // one of the samples is the mean itself
    for (uint32_t k = 1; k < POPULATION; k++)
      for (int i = 0; i < TFC_WEIGHTS; i++)
        spread += pow((double)((g.weights[k][i] - mean[i]) / wide[i]), 2) / ((POPULATION - 1.0) * TFC_WEIGHTS);
    assert_true(fabs(spread - 1) < 0.1);
    for (uint32_t i = 0; i < g.count; i++) {
      double all = 0;
      assert_true(g.lesson[i] < LESSONS && !seen[g.lesson[i]]);
      seen[g.lesson[i]] = true;
      for (uint32_t k = 0; k < POPULATION; k++) {
        assert_true(fabs(g.value[k * FEW_LESSONS + i] - step_of(&r, g.lesson[i], g.weights[k])) < 1e-12);
        all += g.value[k * FEW_LESSONS + i];
      }
      for (uint32_t k = 0; k < POPULATION; k++)
        rating[k] += fmax(-0.5, fmin(0.5, g.value[k * FEW_LESSONS + i] - all / POPULATION)) / LESSONS;
    }
    for (uint32_t k = 0; k < POPULATION; k++) {
      uint32_t at = k;
      for (; at > 0 && rating[order[at - 1]] > rating[k]; at--) order[at] = order[at - 1];
      order[at] = k;
    }
    for (int i = 0; i < TFC_WEIGHTS; i++) {
      double sum = 0, square = 0;
      for (int k = 0; k < 8; k++) sum += (double)g.weights[order[k]][i] / 8;
      for (int k = 0; k < 8; k++) square += pow((double)g.weights[order[k]][i] - sum, 2) / 8;
      assert_true(fabs((double)r.t.mean[i] - (0.7 * (double)mean[i] + 0.3 * sum)) < 1e-4);
      assert_true(fabs((double)r.t.wide[i] - fmax(0.03, 0.85 * (double)wide[i] + 0.15 * sqrt(square))) < 1e-4);
    }
  }
  free(g.weights), free(g.value);
  rig_free(&r);
}

// Chooses one head after the other: each time the candidate that gains most on lessons of other sources.
static void chosen_heads(void **state) {
  (void)state;
  struct rig r;
  struct tfc_random random;
  struct tfc_policy *p = NULL;
  enum { CANDIDATES = 12, HEADS = 5 };
  double value[CANDIDATES][LESSONS], reached[LESSONS];
  bool taken[CANDIDATES] = {0};
  rig_make(&r, LESSONS);
  tfc_random_init(&random, 4);
  for (uint32_t k = 0; k < CANDIDATES; k++) {
    float weights[TFC_WEIGHTS];
    for (int i = 0; i < TFC_WEIGHTS; i++) weights[i] = (float)tfc_random_normal(&random);
    assert_ok(add_candidate(&r.t, weights, k == 0 ? TFC_NONE : k % 3));
    for (uint32_t i = 0; i < LESSONS; i++) value[k][i] = step_of(&r, i, weights);
  }
  r.o.heads = HEADS;
  for (uint32_t i = 0; i < LESSONS; i++) {
    r.t.best[i] = value[0][i]; // the best value so far
    for (uint32_t k = 1; k < CANDIDATES; k++) r.t.best[i] = fmin(r.t.best[i], value[k][i]);
    reached[i] = r.t.best[i] + 1;
  }
  assert_ok(choose(&r.t, CANDIDATES, &p));
  assert_int_equal(p->head_count, HEADS);
  for (uint32_t h = 0; h < HEADS; h++) {
    uint32_t best = TFC_NONE;
    double most = -1;
    for (uint32_t k = 0; k < CANDIDATES; k++) {
      double gain = 0;
      for (uint32_t i = 0; i < LESSONS; i++)
        if (r.t.candidates[k].source != i / 2) gain += fmax(0, reached[i] - value[k][i]);
      if (!taken[k] && gain > most) most = gain, best = k;
    }
    assert_memory_equal(p->head[h], r.t.candidates[best].weights, sizeof p->head[h]);
    taken[best] = true;
    for (uint32_t i = 0; i < LESSONS; i++)
      if (r.t.candidates[best].source != i / 2) reached[i] = fmin(reached[i], value[best][i]);
  }
  for (int i = 0; i < TFC_WEIGHTS; i++) {
    double mean = 0, square = 0;
    for (uint32_t h = 0; h < HEADS; h++) mean += (double)p->head[h][i] / HEADS;
    for (uint32_t h = 0; h < HEADS; h++) square += pow((double)p->head[h][i] - mean, 2) / HEADS;
    assert_true(fabs((double)p->spread[i] - fmax(0.05, sqrt(square))) < 1e-4);
  }
  tfc_policy_free(p);
  assert_ok(choose(&r.t, 3, &p)); // five heads are wanted, but there are only three candidates
  assert_int_equal(p->head_count, 3);
  tfc_policy_free(p);
  rig_free(&r);
}

static void saved_state(void **state) {
  (void)state;
  struct rig r, again;
  char path[] = "/tmp/tfc-train-XXXXXX";
  const int file = mkstemp(path);
  float weights[TFC_WEIGHTS];
  assert_true(file >= 0);
  close(file);
  rig_make(&r, 3), rig_make(&again, 3);
  assert_ok(save(&r.t)); // without a file name nothing is saved
  r.o.state = path, again.o.state = path;
  r.t.generation = 7, r.t.pass = 1, r.t.lesson = 2, r.t.heads_of[0] = 4, r.t.heads_of[1] = 6;
  for (int i = 0; i < TFC_WEIGHTS; i++)
    r.t.mean[i] = 0.1f * (float)i, r.t.wide[i] = 2 + 0.3f * (float)i, weights[i] = -0.7f * (float)i;
  for (int i = 0; i < 3; i++) r.t.best[i] = 1.0 / 3 + i;
  assert_ok(add_candidate(&r.t, weights, 5));
  weights[0] = 9;
  assert_ok(add_candidate(&r.t, weights, TFC_NONE));
  assert_ok(save(&r.t));
  assert_ok(load(&again.t));
  assert_true(again.t.generation == 7 && again.t.pass == 1 && again.t.lesson == 2);
  assert_true(again.t.heads_of[0] == 4 && again.t.heads_of[1] == 6);
  assert_memory_equal(again.t.mean, r.t.mean, sizeof r.t.mean);
  assert_memory_equal(again.t.wide, r.t.wide, sizeof r.t.wide);
  assert_memory_equal(again.t.best, r.t.best, 3 * sizeof *r.t.best);
  assert_int_equal(again.t.candidate_count, 2);
  for (int k = 0; k < 2; k++) {
    assert_int_equal(again.t.candidates[k].source, r.t.candidates[k].source);
    assert_memory_equal(again.t.candidates[k].weights, r.t.candidates[k].weights, sizeof weights);
  }
  again.o.seed++;
  assert_fails(load(&again.t), TFC_INVALID_ARGUMENT, "not the state of this training");
  again.o.seed--, again.o.lesson_count = 2;
  assert_fails(load(&again.t), TFC_INVALID_ARGUMENT, "not the state of this training");
  again.o.lesson_count = 3;
  unlink(path);
  rig_free(&r), rig_free(&again);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(begins), cmocka_unit_test(generations),
                                     cmocka_unit_test(chosen_heads), cmocka_unit_test(saved_state)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
