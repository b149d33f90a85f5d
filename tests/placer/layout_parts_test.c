// Tests the layout in space on random problems: pivots, directions, cuts and orders are computed again.
#include "tests/placer/methods.h"

#define score_of layout_score_of
#define tfc_algo_layout own_layout // the library has it, too
#include "placer/algo/layout.c"
#undef score_of

enum { UNITS = 40, FAR = 1000000 };
static int32_t plain_distance[UNITS][UNITS];

static void find_distances(const struct tfc_partition_graph *g) {
  const int32_t n = g->vertex_count;
  for (int32_t a = 0; a < n; a++) {
    for (int32_t b = 0; b < n; b++) plain_distance[a][b] = a == b ? 0 : FAR;
    for (int32_t e = g->first[a]; e < g->first[a + 1]; e++) plain_distance[a][g->to[e]] = 1;
  }
  for (int32_t k = 0; k < n; k++)
    for (int32_t a = 0; a < n; a++)
      for (int32_t b = 0; b < n; b++)
        if (plain_distance[a][k] + plain_distance[k][b] < plain_distance[a][b])
          plain_distance[a][b] = plain_distance[a][k] + plain_distance[k][b];
  for (int32_t a = 0; a < n; a++) { // what cannot be reached is one farther than all else
    int32_t most = 0;
    for (int32_t b = 0; b < n; b++)
      if (plain_distance[a][b] < FAR && plain_distance[a][b] > most) most = plain_distance[a][b];
    for (int32_t b = 0; b < n; b++)
      if (plain_distance[a][b] >= FAR) plain_distance[a][b] = -most - 1; // marked, so that paths do not use it
  }
  for (int32_t a = 0; a < n; a++)
    for (int32_t b = 0; b < n; b++) plain_distance[a][b] = abs(plain_distance[a][b]);
}

struct spot {
  int32_t key;
  uint32_t tie, what;
};
static int by_key(const void *a, const void *b) {
  const struct spot *x = a, *y = b;
  return x->key < y->key ? -1 : x->key > y->key ? 1 : x->tie < y->tie ? -1 : x->tie > y->tie;
}

static void test_layout(void **state) {
  (void)state;
  uint32_t ordered = 0;
  for (uint64_t number = 0; number < 24; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 5000 + number);
    struct instance i = random_instance(&r, 10 + (uint32_t)pick(&r, UNITS - 10), 2 + (uint32_t)pick(&r, 3),
                                        number % 2 ? (uint32_t)pick(&r, RICH_ALL + 1) : 0,
                                        number % 4 ? TFC_OBJECTIVE_STEP : TFC_OBJECTIVE_THROUGHPUT);
    const struct tfc_problem *p = i.problem;
    const uint32_t n = p->unit_count;
    struct tfc_partition_graph g;
    int32_t queue[UNITS], nearest[UNITS], distance[PIVOTS * UNITS];
    bool is_end[UNITS];
    assert_ok(tfc_partition_graph_make(p, &g));
    find_distances(&g);
    embed(&g, queue, nearest, is_end, distance);
    // Each pivot is the unit that is farthest from those before it; from the fourth on, among the ends that the third
    // sees. The first is farthest from unit 0.
    uint32_t pivots[PIVOTS];
    bool end[UNITS];
    for (int k = 0; k < PIVOTS; k++) {
      int32_t farthest = -1;
      for (uint32_t u = 0; k == 3 && u < n; u++) {
        end[u] = true;
        for (int32_t e = g.first[u]; e < g.first[u + 1]; e++)
          end[u] = end[u] && plain_distance[pivots[2]][g.to[e]] <= plain_distance[pivots[2]][u];
      }
      for (uint32_t u = 0; u < n; u++) {
        int32_t away = k ? INT32_MAX : plain_distance[0][u];
        for (int b = 0; b < k; b++)
          if (plain_distance[pivots[b]][u] < away) away = plain_distance[pivots[b]][u];
        if (k > 2 && !end[u]) continue;
        if (away > farthest) farthest = away, pivots[k] = u;
      }
      for (uint32_t u = 0; u < n; u++) assert_int_equal(distance[(uint32_t)k * n + u], plain_distance[pivots[k]][u]);
    }
    // Cuts along each pivot's distance, and along sums and differences of two, in this order; the first of the best.
    struct tfc_solution s = {0}, best = {0}, trial = {0};
    struct tfc_score best_score = TFC_SCORE_NONE;
    struct spot spots[UNITS];
    uint32_t order[UNITS], position[UNITS];
    uint64_t used = 0, tries = 0;
    MUST(tfc_solution_init(&s, p));
    MUST(tfc_solution_init(&best, p));
    MUST(tfc_solution_init(&trial, p));
    tfc_random_init(&r, 12);
    MUST(tfc_order_units(p, false, order));
    for (uint32_t k = 0; k < n; k++) position[order[k]] = k;
    int32_t key[UNITS][2 * PIVOTS * PIVOTS];
    uint32_t directions = 0;
    for (uint32_t a = 0; a < PIVOTS; a++)
      for (uint32_t b = a; b < PIVOTS; b++)
        for (int sign = 1; sign >= (a == b ? 1 : -1); sign -= 2) {
          for (uint32_t u = 0; u < n; u++)
            key[u][directions] = a == b ? plain_distance[pivots[a]][u]
                                        : plain_distance[pivots[a]][u] + sign * plain_distance[pivots[b]][u];
          directions++;
        }
    assert_int_equal(directions, 49);
    for (uint32_t d = 0; d < directions; d++, tries++) {
      for (uint32_t u = 0; u < n; u++) spots[u] = (struct spot){key[u][d], position[u], u};
      qsort(spots, n, sizeof *spots, by_key);
      for (uint32_t k = 0; k < n; k++) order[k] = spots[k].what;
      tfc_split_order(p, &r, order, trial.device);
      if (d && !tfc_score_better(score_of(p, &trial), best_score)) continue;
      best_score = score_of(p, &trial);
      MUST(tfc_solution_copy(&best, &trial, p));
    }
    const struct tfc_score cut = best_score;
    if (p->objective == TFC_OBJECTIVE_STEP) { // and orders along them, there and back, before or behind the path
      uint32_t path[UNITS];
      assert_true(p->node_count <= UNITS);
      MUST(tfc_solution_copy(&trial, &best, p));
      trial.rank = malloc(sizeof *trial.rank * p->node_count);
      MUST(tfc_local_rerank(p, trial.device, NULL, path));
      for (uint32_t d = 0; d < directions; d++)
        for (int way = 0; way < 4; way++, tries++) {
          int32_t along[UNITS];
          for (uint32_t u = 0; u < n; u++) along[u] = way % 2 ? -key[u][d] : key[u][d];
          if (way > 1) {
            MUST(tfc_local_rerank(p, trial.device, along, trial.rank));
          } else {
            for (uint32_t k = 0; k < p->node_count; k++) spots[k] = (struct spot){along[p->unit[k]], path[k], k};
            qsort(spots, p->node_count, sizeof *spots, by_key);
            for (uint32_t k = 0; k < p->node_count; k++) trial.rank[spots[k].what] = k;
          }
          if (!tfc_score_better(score_of(p, &trial), best_score)) continue;
          best_score = score_of(p, &trial);
          MUST(tfc_solution_copy(&best, &trial, p));
        }
    }
    ordered += tfc_score_better(best_score, cut);
    assert_ok(own_layout.propose(p, NULL, &(struct tfc_budget){.seed = 12, .threads = 1}, &s, &used));
    assert_int_equal(used, tries);
    assert_true(equal(score_of(p, &s), best_score));
    assert_memory_equal(s.device, best.device, sizeof *s.device * n);
    // A budget ends it, but not before there is a placement.
    for (uint64_t most = 1; most <= 60; most += 59) {
      used = 0;
      assert_ok(
          own_layout.propose(p, NULL, &(struct tfc_budget){.seed = 12, .threads = 1, .evaluations = most}, &s, &used));
      assert_int_equal(used, p->objective == TFC_OBJECTIVE_STEP || most < tries ? most : tries);
    }
    tfc_solution_deinit(&s), tfc_solution_deinit(&best), tfc_solution_deinit(&trial);
    tfc_partition_graph_free(&g);
    instance_free(&i);
  }
  assert_true(ordered > 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_layout)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
