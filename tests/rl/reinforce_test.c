// The policy learns from what the evaluator says: on an unrolled recurrent grid (layers × time, a heavy hand-over
// between neighbours) its last samples are clearly better than its first, for every seed.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>

#include "placer/placer.h"
#include "rl/rl.h"

enum { layers = 4, steps = 10, samples = 200 };

static void make_grid(uint64_t memory, struct tfc_cost_graph **out) { // memory: of each cell
  struct tfc_cost_builder *b = NULL;
  uint32_t kind, ids[layers][steps];
  assert_ok(tfc_cost_builder_create(&b));
  assert_ok(tfc_cost_builder_kind(b, TFC_STR("cpu"), &kind));
  for (int l = 0; l < layers; l++)
    for (int t = 0; t < steps; t++) {
      char name[32];
      snprintf(name, sizeof name, "cell%d/%d", l, t);
      assert_ok(tfc_cost_builder_node(b, tfc_str_from(name), &ids[l][t]));
      assert_ok(tfc_cost_builder_time(b, ids[l][t], kind, 1000));
      tfc_cost_builder_memory(b, ids[l][t], memory);
      if (t) assert_ok(tfc_cost_builder_edge(b, ids[l][t - 1], 0, ids[l][t], 4000000, TFC_LIVE_ABSENT));
      if (l) assert_ok(tfc_cost_builder_edge(b, ids[l - 1][t], 0, ids[l][t], 4000000, TFC_LIVE_ABSENT));
    }
  assert_ok(tfc_cost_builder_finish(b, out));
  tfc_cost_builder_free(b);
}

static struct tfc_machine *make_machine(void) {
  struct tfc_machine *m = NULL;
  static const char text[] = "format: tfc-machine\nversion: 1\ndevices:\n"
                             "  - {name: \"cpu:0\", kind: cpu, count: 4}\n"
                             "links:\n  - {from: \"*\", to: \"*\", latency: 20us, bandwidth: 4GB/s}\n";
  assert_ok(tfc_machine_parse(tfc_str_from(text), "grid.yaml", &m));
  return m;
}

struct curve {
  double values[samples];
  uint64_t fitting;
  uint64_t count;
};

static void watch(void *user, const struct tfc_sample *sample) {
  struct curve *c = user;
  assert_int_equal(sample->index, c->count);
  c->fitting += sample->result->state == TFC_RESULT_OK;
  if (c->count < samples) c->values[c->count++] = (double)sample->result->value;
}

static double mean(const double *values, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += values[i];
  return sum / count;
}

static double deviation_of_mean(const double *values, int count) {
  double m = mean(values, count), sum = 0;
  for (int i = 0; i < count; i++) sum += (values[i] - m) * (values[i] - m);
  return sqrt(sum / (count - 1) / count);
}

static void learns(void **state) {
  (void)state;
  struct tfc_cost_graph *graph = NULL;
  struct tfc_machine *machine = make_machine();
  struct tfc_problem *problem = NULL;
  struct tfc_evaluator *evaluator = NULL;
  make_grid(0, &graph);
  assert_ok(tfc_problem_create(graph, machine, TFC_OBJECTIVE_STEP, &problem));
  assert_ok(tfc_evaluator_simulated(problem, 1, &evaluator));
  for (uint64_t seed = 1; seed <= 5; seed++) {
    struct curve curve = {0};
    struct tfc_solution best = {0};
    uint64_t evaluations = 0;
    assert_ok(tfc_solution_init(&best, problem));
    struct tfc_reinforce_options options = {
        .rules = {.cutoff = TFC_TIME_MAX}, .entropy_bonus = -1, .watch = watch, .user = &curve};
    struct tfc_budget budget = {.evaluations = samples, .seed = seed, .threads = 1};
    assert_ok(tfc_reinforce(problem, evaluator, &budget, &options, &best, &evaluations));
    assert_int_equal(evaluations, samples);
    assert_int_equal(curve.count, samples);
    const double *first = curve.values, *last = curve.values + samples - 20;
    double gain = mean(first, 20) - mean(last, 20);
    double noise = 2 * hypot(deviation_of_mean(first, 20), deviation_of_mean(last, 20));
    print_message("seed %d: first 20 %.2f ms, last 20 %.2f ms\n", (int)seed, 1e-9 * mean(first, 20),
                  1e-9 * mean(last, 20));
    assert_true(gain > noise);
    tfc_solution_deinit(&best);
  }
  tfc_evaluator_free(evaluator);
  tfc_problem_free(problem);
  tfc_machine_free(machine);
  tfc_cost_graph_free(graph);
}

// Forty cells of 1 MB on four devices of 11 MB: samples hardly ever fit as they are drawn (in 200 of them, none), and
// are repaired, so that there is something to learn from.
static void learns_where_little_fits(void **state) {
  (void)state;
  struct tfc_cost_graph *graph = NULL;
  struct tfc_machine *machine = make_machine();
  struct tfc_problem *problem = NULL;
  struct tfc_evaluator *evaluator = NULL;
  make_grid(1000000, &graph);
  assert_ok(tfc_machine_limit(machine, TFC_STR("cpu:*"), 11000000));
  assert_ok(tfc_problem_create(graph, machine, TFC_OBJECTIVE_STEP, &problem));
  assert_ok(tfc_evaluator_simulated(problem, 1, &evaluator));
  double gain = 0;
  for (uint64_t seed = 1; seed <= 5; seed++) {
    struct curve curve = {0};
    struct tfc_solution best = {0};
    uint64_t evaluations = 0;
    assert_ok(tfc_solution_init(&best, problem));
    struct tfc_reinforce_options options = {
        .rules = {.cutoff = TFC_TIME_MAX}, .entropy_bonus = -1, .watch = watch, .user = &curve};
    struct tfc_budget budget = {.evaluations = samples, .seed = seed, .threads = 1};
    assert_ok(tfc_reinforce(problem, evaluator, &budget, &options, &best, &evaluations));
    print_message("seed %d: %d of %d samples fit, first 20 %.2f ms, last 20 %.2f ms\n", (int)seed, (int)curve.fitting,
                  samples, 1e-9 * mean(curve.values, 20), 1e-9 * mean(curve.values + samples - 20, 20));
    assert_true(curve.fitting >= samples * 9 / 10);
    gain += mean(curve.values, 20) - mean(curve.values + samples - 20, 20);
    tfc_solution_deinit(&best);
  }
  assert_true(gain > 0);
  tfc_evaluator_free(evaluator);
  tfc_problem_free(problem);
  tfc_machine_free(machine);
  tfc_cost_graph_free(graph);
}

// Actors partition the units, and what they may not use is never chosen.
static void actors_partition(void **state) {
  (void)state;
  struct tfc_cost_graph *graph = NULL;
  struct tfc_machine *machine = make_machine();
  struct tfc_problem *problem = NULL;
  struct tfc_actors *actors = NULL;
  make_grid(0, &graph);
  assert_ok(tfc_cost_graph_pin(graph, "cell0/0", TFC_STR("cpu:3"), NULL));
  assert_ok(tfc_problem_create(graph, machine, TFC_OBJECTIVE_STEP, &problem));
  assert_ok(tfc_actors_create(problem, NULL, 8, &actors));
  assert_true(actors->actor_count >= 1 && actors->actor_count <= 8);
  uint32_t pinned = TFC_NONE;
  for (uint32_t u = 0; u < actors->unit_count; u++) {
    assert_true(actors->actor[u] < actors->actor_count);
    if (!tfc_problem_allows(problem, u, 0)) pinned = actors->actor[u];
  }
  assert_true(pinned != TFC_NONE);
  assert_true(actors->forbidden[pinned * 4] < -10 && actors->forbidden[pinned * 4 + 3] >= 0);
  tfc_actors_free(actors);
  tfc_problem_free(problem);
  tfc_machine_free(machine);
  tfc_cost_graph_free(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(actors_partition), cmocka_unit_test(learns),
                                     cmocka_unit_test(learns_where_little_fits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
