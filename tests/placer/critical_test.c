// Tests what directs the moves of annealing (the slack of a step, and kinds of units), and annealing with such moves.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "placer/model/machine_yaml.h"
#include "placer/search/anneal.h"
#include "placer/search/kinds.h"
#include "placer/search/local.h"
#include "placer/search/slack.h"
#include "tests/placer/instances.h"

#define US INT64_C(1000000) // ps in a microsecond

static const char two[] = "format: tfc-machine\nversion: 1\ndevices:\n"
                          "  - {name: \"acc:0\", kind: acc, count: 2}\n"
                          "links:\n  - {from: \"*\", to: \"*\", latency: 1us, bandwidth: 1GB/s}\n";

struct made {
  struct tfc_cost_graph *graph;
  struct tfc_machine *machine;
  struct tfc_problem *problem;
};
static struct made finish(struct tfc_cost_builder *b) {
  struct made m = {0};
  assert_ok(tfc_cost_builder_finish(b, &m.graph));
  tfc_cost_builder_free(b);
  assert_ok(tfc_machine_parse(tfc_str_from(two), "two.yaml", &m.machine));
  assert_ok(tfc_problem_create(m.graph, m.machine, TFC_OBJECTIVE_STEP, &m.problem));
  return m;
}
static void made_free(struct made *m) {
  tfc_problem_free(m->problem);
  tfc_machine_free(m->machine);
  tfc_cost_graph_free(m->graph);
}

// a (10 us) is read by b (30 us) on its device and by c (5 us) on the other device; d (10 us) reads both results. b
// decides when d starts, at 40 us: c ends at 16 us, and its result needs 1 us and a microsecond per 1,000 bytes to the
// first device.
static void slack_by_hand(void **state) {
  (void)state;
  enum { A, B, C, D, COUNT };
  static const double time[COUNT] = {10, 30, 5, 10};
  static const int64_t late[COUNT] = {0, 10 * US, 33 * US, 40 * US};
  struct tfc_cost_builder *b = NULL;
  struct tfc_delta *delta = NULL;
  struct tfc_slack slack;
  struct tfc_verdict v = {0};
  uint32_t kind, id[COUNT];
  assert_ok(tfc_cost_builder_create(&b));
  assert_ok(tfc_cost_builder_kind(b, TFC_STR("acc"), &kind));
  for (int i = 0; i < COUNT; i++) {
    assert_ok(tfc_cost_builder_node(b, tfc_str_from((char[]){(char)('a' + i), 0}), &id[i]));
    assert_ok(tfc_cost_builder_time(b, id[i], kind, time[i]));
  }
  assert_ok(tfc_cost_builder_edge(b, id[A], 0, id[B], 0, TFC_LIVE_ABSENT));
  assert_ok(tfc_cost_builder_edge(b, id[A], 1, id[C], 0, TFC_LIVE_ABSENT));
  assert_ok(tfc_cost_builder_edge(b, id[B], 0, id[D], 0, TFC_LIVE_ABSENT));
  assert_ok(tfc_cost_builder_edge(b, id[C], 0, id[D], 1000, TFC_LIVE_ABSENT));
  struct made m = finish(b);
  tfc_device_id device[COUNT] = {0};
  device[m.problem->unit[C]] = 1;
  assert_ok(tfc_delta_create(m.problem, &delta));
  tfc_delta_reset(delta, device, NULL, &v);
  assert_int_equal(v.value, 50 * US);
  assert_ok(tfc_slack_init(&slack, m.problem));
  for (int twice = 0; twice < 2; twice++) { // nothing is left over from the first time
    tfc_slack_compute(&slack, device, tfc_delta_start(delta), tfc_delta_end(delta), v.value, 0);
    for (int i = 0; i < COUNT; i++) assert_int_equal(slack.late[i], late[i]);
    assert_int_equal(slack.count, 3);
    for (uint32_t i = 0; i < slack.count; i++) assert_true(slack.critical[i] != C);
    assert_int_equal(slack.before[A], TFC_NONE);
    assert_int_equal(slack.before[B], A);
    assert_int_equal(slack.before[C], TFC_NONE);
    assert_int_equal(slack.before[D], B);
  }
  tfc_slack_compute(&slack, device, tfc_delta_start(delta), tfc_delta_end(delta), v.value, 0.5);
  assert_int_equal(slack.count, 4); // a slack of up to 22 of 50 us counts as none
  tfc_slack_deinit(&slack);
  tfc_delta_free(delta);
  made_free(&m);
}

// Chains of operations with the times 1, 2, 3, 1, 2, 3, ... us: units are of one kind if their times and those of the
// three units before and after them are the same, in whichever chain they are; the ends of chains are kinds of their
// own.
static void kinds_of_chains(void **state) {
  (void)state;
  enum { CHAINS = 3, LENGTH = 24 };
  struct tfc_cost_builder *b = NULL;
  struct tfc_kinds kinds;
  uint32_t kind, id[CHAINS][LENGTH];
  assert_ok(tfc_cost_builder_create(&b));
  assert_ok(tfc_cost_builder_kind(b, TFC_STR("acc"), &kind));
  for (int c = 0; c < CHAINS; c++)
    for (int i = 0; i < LENGTH; i++) {
      char name[32];
      snprintf(name, sizeof name, "%d/%d", c * 7 % 5, i * 5 % 31);
      assert_ok(tfc_cost_builder_node(b, tfc_str_from(name), &id[c][i]));
      assert_ok(tfc_cost_builder_time(b, id[c][i], kind, 1 + i % 3));
      if (i) assert_ok(tfc_cost_builder_edge(b, id[c][i - 1], 0, id[c][i], 400, TFC_LIVE_ABSENT));
    }
  struct made m = finish(b);
  const uint32_t *unit = m.problem->unit;
  assert_int_equal(m.problem->unit_count, CHAINS * LENGTH);
  assert_ok(tfc_kinds_find(&kinds, m.problem));
  for (int c = 0; c < CHAINS; c++)
    for (int i = 0; i < LENGTH; i++) {
      assert_int_equal(kinds.of[unit[id[c][i]]], kinds.of[unit[id[0][i]]]);
      for (int j = 0; j < i; j++) {
        const bool inside = j >= 3 && i < LENGTH - 4; // the last operation of a chain sends nothing
        assert_int_equal(kinds.of[unit[id[c][i]]] == kinds.of[unit[id[c][j]]], inside && i % 3 == j % 3);
      }
    }
  assert_int_equal(kinds.count, 3 + 3 + 4);
  for (uint32_t k = 0; k < kinds.count; k++)
    for (uint32_t i = kinds.first[k]; i < kinds.first[k + 1]; i++) {
      assert_int_equal(kinds.of[kinds.unit[i]], k);
      assert_int_equal(kinds.at[kinds.unit[i]], i);
    }
  tfc_kinds_deinit(&kinds);
  made_free(&m);
}

// The returned score is that of the resulting placement with its order, and is not worse than that of the start. The
// same seed gives the same answer.
static void directed_annealing(void **state) {
  (void)state;
  struct tfc_random random;
  uint32_t better = 0;
  tfc_random_init(&random, 5);
  for (int round = 0; round < 40; round++) {
    struct instance i = random_instance(&random, 60, 3, 0, TFC_OBJECTIVE_STEP);
    const struct tfc_problem *p = i.problem;
    const struct tfc_anneal_options options = {
        .hot = 0.02, .cold = 0.001, .orders = true, .critical = 0.8, .regions = 1 + round % 12, .kinds = true};
    struct tfc_simulator *sim = NULL;
    struct tfc_solution answer[2] = {0};
    struct tfc_score before, score[2];
    struct tfc_verdict v = {0};
    assert_ok(tfc_simulator_create(p, &sim));
    for (int k = 0; k < 2; k++) {
      uint64_t used = 0;
      struct tfc_random start;
      tfc_random_init(&start, (uint64_t)round);
      assert_ok(tfc_solution_init(&answer[k], p));
      tfc_local_any(p, &start, answer[k].device);
      tfc_simulate(sim, answer[k].device, NULL, TFC_TIME_MAX, &v);
      before = tfc_score_of(&v);
      const struct tfc_budget budget = {.evaluations = 300, .seed = (uint64_t)round, .threads = 1};
      assert_ok(tfc_local_anneal(p, &budget, &options, &answer[k], &score[k], &used));
      assert_true(used <= 300);
      tfc_simulate(sim, answer[k].device, answer[k].rank, TFC_TIME_MAX, &v);
      assert_int_equal(tfc_score_of(&v).value, score[k].value);
      assert_int_equal(tfc_score_of(&v).excess, score[k].excess);
      assert_false(tfc_score_better(before, score[k]));
      better += tfc_score_better(score[k], before);
    }
    assert_memory_equal(answer[0].device, answer[1].device, sizeof *answer[0].device * p->unit_count);
    for (int k = 0; k < 2; k++) tfc_solution_deinit(&answer[k]);
    tfc_simulator_free(sim);
    instance_free(&i);
  }
  assert_true(better > 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slack_by_hand),
      cmocka_unit_test(kinds_of_chains),
      cmocka_unit_test(directed_annealing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
