#include "rl/train.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rl/tuner.h"
#include "runtime/base/file.h"
#include "runtime/base/parallel.h"

enum { POPULATION = 32, FEW_LESSONS = 12, KEPT_HEADS = 2, PASSES = 2 };
#define WORST 3.0 // reward for a placement that is illegal or does not fit, as a logarithm

struct trainer {
  const struct tfc_train_options *o;
  struct tfc_scene **scene;         // [lesson]
  struct tfc_rollout **rollout;     // [lesson]
  struct tfc_simulator **simulator; // [lesson]
  tfc_device_id **device;           // [lesson]
  double *best;                     // [lesson] logarithm of the best step seen
  float mean[TFC_WEIGHTS], wide[TFC_WEIGHTS];
  uint32_t generation, pass, lesson; // how far training has come
  uint32_t heads_of[PASSES];         // candidates at the end of a pass
  struct candidate *candidates;
  uint32_t candidate_count;
  double *table; // [candidate * lesson_count + lesson] of `choose`
};
struct candidate {
  float weights[TFC_WEIGHTS];
  uint32_t source; // TFC_NONE: common
};

static void say(const struct trainer *t, const char *format, double a, double b, double c) {
  char line[160];
  if (!t->o->say) return;
  snprintf(line, sizeof line, format, a, b, c);
  t->o->say(t->o->user, line);
}

// Returns the logarithm of the step time under the weights, with greedy choices.
static double attempt(struct trainer *t, uint32_t lesson, const float *weights) {
  struct tfc_random random;
  struct tfc_verdict v = {0};
  tfc_random_init(&random, lesson);
  const struct tfc_rollout_options o = {.random = &random};
  tfc_rollout_run(t->rollout[lesson], weights, &o, t->device[lesson]);
  tfc_simulate(t->simulator[lesson], t->device[lesson], NULL, TFC_TIME_MAX, &v);
  if (!v.legal || v.excess || v.value <= 0) return t->best[lesson] + WORST;
  const double value = log((double)v.value);
  if (value < t->best[lesson]) t->best[lesson] = value;
  return value;
}

// --- Saving and reading the state of training ----------------------------------------------------------------------

static json_t *numbers(const float *x) {
  json_t *list = json_array();
  for (int i = 0; i < TFC_WEIGHTS; i++) json_array_append_new(list, json_real((double)x[i]));
  return list;
}

static tfc_status save(const struct trainer *t) {
  if (!t->o->state) return NULL;
  json_t *root = json_object(), *list = json_array();
  json_object_set_new(root, "lessons", json_integer(t->o->lesson_count));
  json_object_set_new(root, "seed", json_integer((json_int_t)t->o->seed));
  json_object_set_new(root, "generation", json_integer(t->generation));
  json_object_set_new(root, "pass", json_integer(t->pass));
  json_object_set_new(root, "lesson", json_integer(t->lesson));
  json_object_set_new(root, "mean", numbers(t->mean));
  json_object_set_new(root, "wide", numbers(t->wide));
  for (uint32_t i = 0; i < t->candidate_count; i++) {
    json_t *x = json_object();
    json_object_set_new(x, "source", json_integer(t->candidates[i].source));
    json_object_set_new(x, "weights", numbers(t->candidates[i].weights));
    json_array_append_new(list, x);
  }
  json_object_set_new(root, "candidates", list);
  json_t *best = json_array(), *heads_of = json_array();
  for (uint32_t i = 0; i < t->o->lesson_count; i++) json_array_append_new(best, json_real(t->best[i]));
  for (int i = 0; i < PASSES; i++) json_array_append_new(heads_of, json_integer(t->heads_of[i]));
  json_object_set_new(root, "best", best);
  json_object_set_new(root, "heads_of", heads_of);
  char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
  json_decref(root);
  if (!text) return tfc_status_no_memory("saving what was trained");
  tfc_status s = tfc_file_write(t->o->state, tfc_str_from(text));
  free(text);
  return s;
}

static bool read_numbers(const json_t *list, float *out) {
  if (json_array_size(list) != TFC_WEIGHTS) return false;
  for (size_t i = 0; i < TFC_WEIGHTS; i++) out[i] = (float)json_number_value(json_array_get(list, i));
  return true;
}

static tfc_status add_candidate(struct trainer *t, const float *weights, uint32_t source) {
  struct candidate *more = realloc(t->candidates, (t->candidate_count + 1u) * sizeof *more);
  if (!more) return tfc_status_no_memory("training");
  t->candidates = more;
  memcpy(more[t->candidate_count].weights, weights, sizeof more->weights);
  more[t->candidate_count++].source = source;
  return NULL;
}

static tfc_status load(struct trainer *t) {
  tfc_status s = NULL;
  json_t *root = NULL;
  json_error_t error;
  struct tfc_file file = {0};
  if (!t->o->state || access(t->o->state, F_OK) != 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_file_map(t->o->state, &file));
  root = json_loadb((const char *)file.data, file.size, 0, &error);
  if (!root || json_integer_value(json_object_get(root, "lessons")) != t->o->lesson_count ||
      (uint64_t)json_integer_value(json_object_get(root, "seed")) != t->o->seed ||
      !read_numbers(json_object_get(root, "mean"), t->mean) || !read_numbers(json_object_get(root, "wide"), t->wide))
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: not the state of this training; remove it to begin anew", t->o->state);
  t->generation = (uint32_t)json_integer_value(json_object_get(root, "generation"));
  t->pass = (uint32_t)json_integer_value(json_object_get(root, "pass"));
  t->lesson = (uint32_t)json_integer_value(json_object_get(root, "lesson"));
  for (uint32_t i = 0; i < t->o->lesson_count; i++)
    t->best[i] = json_number_value(json_array_get(json_object_get(root, "best"), i));
  for (size_t i = 0; i < PASSES; i++)
    t->heads_of[i] = (uint32_t)json_integer_value(json_array_get(json_object_get(root, "heads_of"), i));
  const json_t *list = json_object_get(root, "candidates");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *x = json_array_get(list, i);
    float weights[TFC_WEIGHTS];
    if (!read_numbers(json_object_get(x, "weights"), weights))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: candidate %zu has not its weights", t->o->state, i);
    TFC_TRY(s, add_candidate(t, weights, (uint32_t)json_integer_value(json_object_get(x, "source"))));
  }
out:
  json_decref(root);
  tfc_file_unmap(&file);
  return s;
}

// --- Cross-entropy: one head for all lessons ------------------------------------------------------------------------

struct generation {
  struct trainer *t;
  float (*weights)[TFC_WEIGHTS];
  uint32_t lesson[FEW_LESSONS], count;
  double *value; // [POPULATION * FEW_LESSONS]
};
static void try_lesson(void *user, uint32_t i) {
  struct generation *g = user;
  for (uint32_t k = 0; k < POPULATION; k++) g->value[k * FEW_LESSONS + i] = attempt(g->t, g->lesson[i], g->weights[k]);
}

struct ranking {
  double value;
  uint32_t index;
};
static int compare_rankings(const void *a, const void *b) {
  const struct ranking *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

static void run_generation(struct generation *g) {
  struct trainer *t = g->t;
  struct tfc_random random;
  struct ranking order[POPULATION];
  tfc_random_init(&random, t->o->seed * 1000003 + t->generation);
  g->count = t->o->lesson_count < FEW_LESSONS ? t->o->lesson_count : FEW_LESSONS;
  for (uint32_t i = 0; i < g->count;) { // choose different lessons
    g->lesson[i] = (uint32_t)tfc_random_below(&random, t->o->lesson_count);
    bool is_new = true;
    for (uint32_t k = 0; k < i; k++) is_new &= g->lesson[k] != g->lesson[i];
    i += is_new;
  }
  for (uint32_t k = 0; k < POPULATION; k++)
    for (int i = 0; i < TFC_WEIGHTS; i++)
      g->weights[k][i] = t->mean[i] + (k ? t->wide[i] * (float)tfc_random_normal(&random) : 0);
  tfc_parallel(g->count, t->o->threads, try_lesson, g);
  for (uint32_t k = 0; k < POPULATION; k++) order[k] = (struct ranking){0, k};
  for (uint32_t i = 0; i < g->count; i++) {
    double mean = 0;
    for (uint32_t k = 0; k < POPULATION; k++) mean += g->value[k * FEW_LESSONS + i] / POPULATION;
    for (uint32_t k = 0; k < POPULATION; k++) // limits the influence of each lesson
      order[k].value += fmin(0.5, fmax(-0.5, g->value[k * FEW_LESSONS + i] - mean)) / g->count;
  }
  qsort(order, POPULATION, sizeof *order, compare_rankings);
  enum { BEST = POPULATION / 4 };
  for (int i = 0; i < TFC_WEIGHTS; i++) {
    double mean = 0, square = 0;
    for (int k = 0; k < BEST; k++) mean += (double)g->weights[order[k].index][i] / BEST;
    for (int k = 0; k < BEST; k++) square += pow((double)g->weights[order[k].index][i] - mean, 2) / BEST;
    // moves only part of the way, because few lessons are noisy
    t->mean[i] = (float)(0.7 * (double)t->mean[i] + 0.3 * mean);
    t->wide[i] = (float)fmax(0.03, 0.85 * (double)t->wide[i] + 0.15 * sqrt(square));
  }
}

static tfc_status learn_common(struct trainer *t) {
  tfc_status s = NULL;
  const uint32_t generations = t->o->generations ? t->o->generations : 150;
  struct generation g = {.t = t};
  g.weights = calloc(POPULATION, sizeof *g.weights);
  g.value = calloc(POPULATION * FEW_LESSONS, sizeof *g.value);
  if (!g.weights || !g.value) TFC_TRY(s, tfc_status_no_memory("training"));
  while (t->generation < generations) {
    if (t->o->cancel && atomic_load(t->o->cancel)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
    run_generation(&g);
    t->generation++;
    if (t->generation % 10 == 0 || t->generation == generations) {
      double sum = 0;
      for (uint32_t i = 0; i < t->o->lesson_count; i++) sum += attempt(t, i, t->mean) - t->best[i];
      say(t, "generation %.0f: %.4f above the best seen, in the mean of logarithms%.0s", t->generation,
          sum / t->o->lesson_count, 0);
      TFC_TRY(s, save(t));
    }
  }
out:
  free(g.weights), free(g.value);
  return s;
}

// --- A head for each lesson ----------------------------------------------------------------------------------------

static tfc_status learn_own(struct trainer *t, const struct tfc_policy *from) {
  tfc_status s = NULL;
  struct tfc_tuner *tuner = NULL;
  const uint32_t i = t->lesson;
  const struct tfc_budget budget = {.evaluations = t->o->rollouts ? t->o->rollouts : 300, .cancel = t->o->cancel};
  TFC_TRY(s, tfc_tuner_create(t->o->lessons[i].problem, from, t->o->seed * 31 + i, t->o->threads, &tuner));
  TFC_TRY(s, tfc_tuner_run(tuner, &budget));
  for (uint32_t k = 0; k < KEPT_HEADS && k < tuner->elite_count; k++)
    TFC_TRY(s, add_candidate(t, tuner->elite[k].weights, t->o->lessons[i].source));
  if (tuner->elite_count && !tuner->elite[0].score.excess)
    t->best[i] = fmin(t->best[i], log((double)tuner->elite[0].score.value));
out:
  tfc_tuner_free(tuner);
  return s;
}

struct choosing {
  struct trainer *t;
  uint32_t count;
};
static void fill_column(void *user, uint32_t lesson) {
  struct choosing *c = user;
  struct trainer *t = c->t;
  for (uint32_t k = 0; k < c->count; k++)
    t->table[(size_t)k * t->o->lesson_count + lesson] = attempt(t, lesson, t->candidates[k].weights);
}

static tfc_status choose(struct trainer *t, uint32_t candidates, struct tfc_policy **out) {
  const uint32_t lessons = t->o->lesson_count, wanted = t->o->heads ? t->o->heads : 20;
  tfc_status s = NULL;
  struct tfc_policy *p = NULL;
  struct choosing c = {.t = t, .count = candidates};
  double *reached = malloc(sizeof *reached * lessons), total = 0;
  bool *taken = calloc(candidates + 1u, sizeof *taken);
  free(t->table);
  t->table = malloc(sizeof *t->table * candidates * lessons);
  if (!t->table || !reached || !taken) TFC_TRY(s, tfc_status_no_memory("training"));
  tfc_parallel(lessons, t->o->threads, fill_column, &c);
  TFC_TRY(s, tfc_policy_create(wanted < candidates ? wanted : candidates, &p));
  for (uint32_t i = 0; i < lessons; i++) reached[i] = t->best[i] + 1;
  for (uint32_t h = 0; h < p->head_count; h++) {
    uint32_t best = TFC_NONE;
    double gain = -INFINITY;
    for (uint32_t k = 0; k < candidates; k++) {
      double sum = 0;
      // a lesson on which the head was tuned does not show how good it is on other graphs
      for (uint32_t i = 0; i < lessons && !taken[k]; i++)
        if (t->candidates[k].source != t->o->lessons[i].source)
          sum += fmax(0, reached[i] - t->table[(size_t)k * lessons + i]);
      if (!taken[k] && sum > gain) gain = sum, best = k;
    }
    taken[best] = true;
    memcpy(p->head[h], t->candidates[best].weights, sizeof p->head[h]);
    for (uint32_t i = 0; i < lessons; i++)
      if (t->candidates[best].source != t->o->lessons[i].source)
        reached[i] = fmin(reached[i], t->table[(size_t)best * lessons + i]);
  }
  for (int i = 0; i < TFC_WEIGHTS; i++) {
    double mean = 0, square = 0;
    for (uint32_t h = 0; h < p->head_count; h++) mean += (double)p->head[h][i] / p->head_count;
    for (uint32_t h = 0; h < p->head_count; h++) square += pow((double)p->head[h][i] - mean, 2) / p->head_count;
    p->spread[i] = (float)fmax(0.05, sqrt(square));
  }
  for (uint32_t i = 0; i < lessons; i++) total += reached[i] - t->best[i];
  say(t, "%.0f of %.0f heads: %.4f above the best seen, in the mean of logarithms", p->head_count, candidates,
      total / lessons);
  *out = p, p = NULL;
out:
  tfc_policy_free(p);
  free(reached), free(taken);
  return s;
}

static tfc_status make_common(const struct trainer *t, struct tfc_policy **out) {
  TFC_RETURN_IF_ERROR(tfc_policy_create(1, out));
  memcpy((*out)->head[0], t->mean, sizeof t->mean);
  for (int i = 0; i < TFC_WEIGHTS; i++) (*out)->spread[i] = (float)fmax(0.15, 2 * (double)t->wide[i]);
  return NULL;
}

static tfc_status prepare(struct trainer *t) {
  const uint32_t lessons = t->o->lesson_count;
  t->scene = calloc(lessons, sizeof(struct tfc_scene *));
  t->rollout = calloc(lessons, sizeof(struct tfc_rollout *));
  t->simulator = calloc(lessons, sizeof(struct tfc_simulator *));
  t->device = calloc(lessons, sizeof(tfc_device_id *));
  t->best = calloc(lessons, sizeof *t->best);
  if (!t->scene || !t->rollout || !t->simulator || !t->device || !t->best) return tfc_status_no_memory("training");
  for (uint32_t i = 0; i < lessons; i++) {
    const struct tfc_problem *p = t->o->lessons[i].problem;
    t->best[i] = log((double)p->total_fastest + 1);
    t->device[i] = calloc((size_t)p->unit_count + 1, sizeof(tfc_device_id));
    if (!t->device[i]) return tfc_status_no_memory("training");
    TFC_RETURN_IF_ERROR(tfc_scene_create(p, &t->scene[i]));
    TFC_RETURN_IF_ERROR(tfc_rollout_create(t->scene[i], &t->rollout[i]));
    TFC_RETURN_IF_ERROR(tfc_simulator_create(p, &t->simulator[i]));
  }
  for (int i = 0; i < TFC_WEIGHTS; i++) t->wide[i] = i < TFC_FEATURE_COUNT ? 1.0f : 0.4f;
  t->mean[TFC_FEATURE_FINISH] = t->mean[TFC_FEATURE_DELAY] = -2; // start from list scheduling
  return NULL;
}

tfc_status tfc_train(const struct tfc_train_options *o, struct tfc_policy **out) {
  tfc_status s = NULL;
  struct trainer t = {.o = o};
  struct tfc_policy *from = NULL;
  if (!o->lesson_count) return tfc_status_make(TFC_INVALID_ARGUMENT, "there is nothing to train on");
  TFC_TRY(s, prepare(&t));
  TFC_TRY(s, load(&t));
  TFC_TRY(s, learn_common(&t));
  TFC_TRY(s, make_common(&t, &from));
  for (uint32_t pass = 0; pass < PASSES; pass++) {
    if (pass == t.pass) {
      if (!t.candidate_count) TFC_TRY(s, add_candidate(&t, t.mean, TFC_NONE));
      for (; t.lesson < o->lesson_count; t.lesson++) {
        if (o->cancel && atomic_load(o->cancel)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
        TFC_TRY(s, learn_own(&t, from));
        if (o->cancel && atomic_load(o->cancel)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
        if (t.lesson % 8 == 7) TFC_TRY(s, save(&t));
      }
      t.heads_of[pass] = t.candidate_count;
      t.pass++, t.lesson = 0;
      TFC_TRY(s, save(&t));
    }
    tfc_policy_free(from);
    from = NULL;
    TFC_TRY(s, choose(&t, t.heads_of[pass], &from));
  }
  *out = from, from = NULL;
out:
  tfc_policy_free(from);
  for (uint32_t i = 0; i < o->lesson_count; i++) {
    if (t.simulator) tfc_simulator_free(t.simulator[i]);
    if (t.rollout) tfc_rollout_free(t.rollout[i]);
    if (t.scene) tfc_scene_free(t.scene[i]);
    if (t.device) free(t.device[i]);
  }
  free(t.scene), free(t.rollout), free(t.simulator), free(t.device), free(t.best), free(t.candidates), free(t.table);
  return s;
}
