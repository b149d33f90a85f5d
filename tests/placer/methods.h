// What the suites of single methods of placer/algo share: problems, scores, and a stand-in for annealing that writes
// down what it is asked. Each suite is made of the method's own file, in which the functions that it calls are
// replaced.
#ifndef TFC_TESTS_PLACER_METHODS_H
#define TFC_TESTS_PLACER_METHODS_H

#include "tests/common/test.h"

#include "placer/search/anneal.h"
#include "placer/search/local.h"
#include "tests/placer/instances.h"

static struct asked {
  struct tfc_anneal_options o;
  struct tfc_budget budget;
  struct tfc_score before;
  double now;
  bool mixed; // a cluster has units of several devices
} asked[32];
static uint32_t asked_count;
static uint64_t too_much; // evaluations that annealing uses above those that it may
static inline tfc_status noted_anneal(const struct tfc_problem *p, const struct tfc_budget *budget,
                                      const struct tfc_anneal_options *o, struct tfc_solution *solution,
                                      struct tfc_score *score, uint64_t *evaluations) {
  struct asked *a = &asked[asked_count++];
  assert_true(asked_count < sizeof asked / sizeof *asked);
  *a = (struct asked){.o = *o, .budget = *budget, .before = *score, .now = tfc_now_s()};
  for (uint32_t u = 0; o->cluster && u < p->unit_count; u++)
    for (uint32_t v = 0; v < u; v++)
      a->mixed = a->mixed || (o->cluster[u] == o->cluster[v] && solution->device[u] != solution->device[v]);
  *evaluations += budget->evaluations + too_much;
  *score = score_of(p, solution);
  return NULL;
}
static inline bool equal(struct tfc_score a, struct tfc_score b) {
  return !tfc_score_better(a, b) && !tfc_score_better(b, a);
}
static inline void is_near(double x, double expected) {
  if (!(fabs(x - expected) <= 1e-9 * fabs(expected))) fail_msg("%.17g, not %.17g", x, expected);
}

// The best of the named algorithms, each with its best order.
static inline struct tfc_score best_of(const struct tfc_problem *p, const char *const *names, uint32_t count,
                                       uint64_t seed) {
  struct tfc_score best = TFC_SCORE_NONE;
  struct tfc_simulator *sim = NULL;
  assert_ok(tfc_simulator_create(p, &sim));
  for (uint32_t k = 0; k < count; k++) {
    struct tfc_solution s = {0};
    struct tfc_score score;
    uint64_t used = 0;
    assert_ok(tfc_solution_init(&s, p));
    tfc_status failed = tfc_algo_find(tfc_str_from(names[k]))
                            ->propose(p, NULL, &(struct tfc_budget){.seed = seed, .threads = 1}, &s, &used);
    if (!failed) {
      assert_ok(tfc_local_settle(p, sim, &s, &score, &used));
      if (tfc_score_better(score, best)) best = score;
    }
    tfc_status_free(failed);
    tfc_solution_deinit(&s);
  }
  tfc_simulator_free(sim);
  return best;
}

static inline struct instance drawn(uint64_t number, uint32_t nodes, uint32_t rich, tfc_objective objective) {
  struct tfc_random r;
  tfc_random_init(&r, 31000 + number);
  return random_instance(&r, nodes, 2 + (uint32_t)pick(&r, 3), rich, objective);
}

// A problem of `count` equal operations, in a chain or apart; `memory` bytes each.
static inline struct instance equal_nodes(uint32_t count, uint32_t devices, bool chain, uint64_t memory,
                                          const uint64_t *limits, tfc_objective objective) {
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  struct tfc_link l = tfc_link_default();
  uint32_t acc, node;
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t n = 0; n < count; n++) {
    char name[16];
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, 10));
    tfc_cost_builder_memory(b, node, memory);
    if (n && chain) MUST(tfc_cost_builder_edge(b, n - 1, 0, n, 1000, TFC_LIVE_ABSENT));
  }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  l.bandwidth = 1e9;
  i.machine = even_machine(devices, limits, &l);
  MUST(tfc_problem_create(i.graph, i.machine, objective, &i.problem));
  return i;
}

#endif
