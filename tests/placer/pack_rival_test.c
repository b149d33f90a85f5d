// Tests packing as a rival: into which parts the graph is divided, and that the best of what was tried is returned.
#include "tests/placer/methods.h"

#include "placer/search/communities.h"
#include "placer/search/parts.h"

static double found_with[8];
static uint32_t resolution_count, packings;
static struct tfc_score best_packed;
static bool each_alone; // in the last packing, each unit is a part of its own
static uint32_t targets[16], target_count;
static uint32_t noted_find(const struct tfc_problem *p, struct tfc_random *random,
                           const struct tfc_community_options *o, uint32_t *community) {
  assert_true(o->power == 1 && o->fan == 0.5);
  found_with[resolution_count++ % 8] = o->resolution;
  return tfc_communities_find(p, random, o, community);
}
static uint32_t noted_coarsen(const struct tfc_problem *p, struct tfc_random *random, const tfc_device_id *device,
                              uint32_t target, uint32_t *cluster) {
  targets[target_count++ % 16] = target;
  return tfc_local_coarsen(p, random, device, target, cluster);
}
static bool noted_pack(const struct tfc_parts *parts, struct tfc_random *random, bool thorough, tfc_device_id *home) {
  const bool fits = tfc_parts_pack(parts, random, thorough, home);
  struct tfc_solution s = {.device = malloc(sizeof *s.device * parts->p->unit_count)};
  assert_int_equal(thorough, packings % 2 == 0); // by work, then by memory
  each_alone = true;
  for (uint32_t u = 0; u < parts->p->unit_count; u++) {
    s.device[u] = home[parts->of[u]];
    each_alone = each_alone && parts->of[u] == u;
  }
  const struct tfc_score score = score_of(parts->p, &s);
  if (!packings++ || tfc_score_better(score, best_packed)) best_packed = score;
  free(s.device);
  return fits;
}

#define tfc_local_coarsen noted_coarsen
#define tfc_communities_find noted_find
#define tfc_parts_pack noted_pack
#define tfc_algo_pack own_pack // the library has it, too
#include "placer/algo/pack.c"
#undef tfc_local_coarsen
#undef tfc_communities_find
#undef tfc_parts_pack

static void test_packing(void **state) {
  (void)state;
  static const uint64_t tight[] = {505, 505, 505}, roomy[] = {5000, 5000, 5000};
  static const double expected[] = {1, 0.4, 2, 4};
  for (int k = 0; k < 2; k++) {
    struct instance i = equal_nodes(150, 3, true, 10, k ? tight : roomy, TFC_OBJECTIVE_STEP);
    struct tfc_solution s = {0};
    uint64_t used = 0;
    MUST(tfc_solution_init(&s, i.problem));
    resolution_count = target_count = packings = 0;
    assert_true(tfc_communities_tight(i.problem) == (k == 1));
    assert_ok(own_pack.propose(i.problem, NULL, &(struct tfc_budget){.threads = 1}, &s, &used));
    assert_int_equal(resolution_count, k ? 4 : 0); // communities only where memory is nearly full
    for (uint32_t c = 0; c < resolution_count; c++) assert_true(found_with[c] == expected[c]);
    // Clusters: six, four times as many, and so on, until three ways fit. With room, the whole chain is one that does.
    assert_true(target_count >= 1 && targets[0] == 6);
    for (uint32_t c = 1; c < target_count; c++) assert_int_equal(targets[c], 4 * targets[c - 1]);
    if (!k) assert_int_equal(target_count, 2);
    if (!k) assert_int_equal(packings, 6);
    // The best of all that were tried, in the best order for it.
    const struct tfc_score score = score_of(i.problem, &s);
    assert_true(!tfc_score_better(best_packed, score) && score.excess == 0);
    tfc_solution_deinit(&s);
    instance_free(&i);
  }
  // So few operations, apart or in a chain, are not coarsened: parts are pieces, then single units.
  for (int chain = 0; chain < 2; chain++) {
    struct instance i = equal_nodes(6, 3, chain, 0, NULL, TFC_OBJECTIVE_STEP);
    struct tfc_solution s = {0};
    uint64_t used = 0;
    MUST(tfc_solution_init(&s, i.problem));
    target_count = packings = 0, each_alone = false;
    assert_ok(own_pack.propose(i.problem, NULL, &(struct tfc_budget){.threads = 1}, &s, &used));
    assert_int_equal(target_count, 0);
    assert_int_equal(packings, 4);
    assert_true(each_alone);
    assert_int_equal(score_of(i.problem, &s).value, chain ? 60000000 : 20000000); // a third each, or all on one device
    tfc_solution_deinit(&s);
    instance_free(&i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_packing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
