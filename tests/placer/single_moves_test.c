// Moves of single units are what the second simulator (reference.h) says of the placement with that one change, started
// in the same order; and no better one is left out.
#include "placer/simulate/single_moves.h"

#include "placer/simulate/simulate.h"
#include "tests/common/rows.h"
#include "tests/common/test.h"
#include "tests/placer/instances.h"
#include "tests/placer/reference.h"

struct checked {
  uint32_t wins, none;
};

static void check_one(struct tfc_random *r, const struct instance *i, struct checked *out) {
  const struct tfc_problem *p = i->problem;
  struct tfc_solution solution = {0};
  struct tfc_simulator *sim = NULL;
  struct tfc_timeline t = {0};
  struct tfc_single_moves moves = {0};
  struct reference_result now, then;
  uint32_t *device = calloc(p->node_count, sizeof *device);
  double *order = calloc(p->node_count, sizeof *order);
  bool *on_path = calloc(p->unit_count, sizeof *on_path);
  assert_ok(tfc_solution_init(&solution, p));
  assert_ok(tfc_simulator_create(p, &sim));
  random_devices(r, p, solution.device);
  for (uint32_t n = 0; n < p->node_count; n++) device[n] = solution.device[p->unit[n]], order[n] = i->graph->order[n];
  reference_simulate(i->graph, i->machine, p->objective, device, order, &now);
  assert_ok(tfc_single_moves_find(p, &solution, &moves));
  if (!now.legal) {
    assert_int_equal(moves.list.count, 0);
    assert_int_equal(moves.tried, 0);
    goto out;
  }
  assert_int_equal(moves.value, now.value);
  assert_ok(tfc_simulate_timeline(sim, solution.device, NULL, &t));
  for (uint32_t n = 0; n < p->node_count; n++) order[n] = t.sequence[n];
  for (uint32_t k = 0; k < t.path_count; k++)
    if (t.path[k] < p->node_count && t.end[t.path[k]] > t.start[t.path[k]]) on_path[p->unit[t.path[k]]] = true;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    int64_t most = 0;
    for (uint32_t d = 0; d < p->device_count && on_path[u]; d++) {
      if (!tfc_problem_allows(p, u, d)) continue;
      for (uint32_t n = 0; n < p->node_count; n++) device[n] = p->unit[n] == u ? d : solution.device[p->unit[n]];
      reference_simulate(i->graph, i->machine, p->objective, device, order, &then);
      if (then.legal && then.excess <= now.excess && now.value - then.value > most) most = now.value - then.value;
    }
    const struct tfc_single_move *found = NULL;
    for (size_t k = 0; k < moves.list.count; k++)
      if (moves.list.data[k].unit == u) found = &moves.list.data[k];
    assert_int_equal(found ? found->won : 0, most);
    if (!found) {
      out->none++;
      continue;
    }
    out->wins++;
    assert_int_equal(found->from, solution.device[u]);
    assert_int_equal(p->unit[found->node], u);
    assert_int_equal(found->nodes, p->first_member[u + 1] - p->first_member[u]);
    for (uint32_t n = 0; n < p->node_count; n++) device[n] = p->unit[n] == u ? found->to : solution.device[p->unit[n]];
    reference_simulate(i->graph, i->machine, p->objective, device, order, &then);
    assert_int_equal(now.value - then.value, found->won);
  }
  for (size_t k = 1; k < moves.list.count; k++) assert_true(moves.list.data[k - 1].won >= moves.list.data[k].won);
out:
  tfc_single_moves_deinit(&moves);
  tfc_timeline_deinit(&t);
  tfc_simulator_free(sim);
  tfc_solution_deinit(&solution);
  free(device), free(order), free(on_path);
}

static void test_all_of_the_path(void **state) {
  (void)state;
  static const uint32_t kinds[] = {0, RICH_GROUPS, RICH_WIRES | RICH_GROUPS, RICH_ALL};
  struct checked seen = {0};
  for (uint64_t number = 0; number < 240; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 91000 + number);
    struct instance i = random_instance(&r, 1 + (uint32_t)pick(&r, 24), 1 + (uint32_t)pick(&r, 4), kinds[number % 4],
                                        number % 5 ? TFC_OBJECTIVE_STEP : TFC_OBJECTIVE_THROUGHPUT);
    check_one(&r, &i, &seen);
    instance_free(&i);
  }
  assert_true(seen.wins > 100 && seen.none > 100);
}

// Of a large graph only the units that take longest in the path are tried.
static void test_large(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 4);
  struct instance i = random_instance(&r, 300000, 8, 0, TFC_OBJECTIVE_STEP);
  struct tfc_solution solution = {0};
  struct tfc_single_moves moves = {0};
  assert_ok(tfc_solution_init(&solution, i.problem));
  random_devices(&r, i.problem, solution.device);
  assert_ok(tfc_single_moves_find(i.problem, &solution, &moves));
  assert_in_range(moves.tried, 2, 3); // 16 simulations, 7 for each unit
  tfc_single_moves_deinit(&moves);
  tfc_solution_deinit(&solution);
  instance_free(&i);
}

static void holds(struct tfc_store *store, const char *sql, const char *expected) {
  assert_string_equal(test_rows(tfc_store_handle(store), sql), expected);
}

static void test_stored(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 8);
  struct instance i = random_instance(&r, 6, 2, 0, TFC_OBJECTIVE_STEP);
  struct tfc_store *store = NULL;
  struct tfc_single_moves moves = {.tried = 5, .value = 7000000};
  const uint32_t ids[] = {10, 11, 12, 13, 14, 15};
  int64_t run = 0, key = 0;
  assert_true(tfc_array_push(&moves.list, (struct tfc_single_move){9, 4, 2, 0, 1, 1500000}));
  assert_ok(tfc_store_open_memory(&store));
  assert_ok(tfc_store_begin(store));
  assert_ok(tfc_store_add_run(store, &(struct tfc_store_run){.graph = "g"}, &run));
  assert_ok(tfc_store_add_placement(
      store, run, &(struct tfc_store_placement){.role = "heuristic", .name = "x", .state = "ok", .label = "modelled"},
      NULL, 0, &key));
  assert_ok(tfc_single_moves_write(&moves, i.problem, ids, store, key));
  assert_ok(tfc_store_commit(store));
  char expected[64];
  snprintf(expected, sizeof expected, "%u 12 4 0 1 1.5", i.problem->unit[2]);
  holds(store,
        "SELECT unit_id || ' ' || node_id || ' ' || operations || ' ' || source || ' ' || target || ' ' || won_us"
        " FROM single_move",
        expected);
  holds(store, "SELECT units || ' ' || value_us FROM moves_tried", "5 7.0");
  tfc_single_moves_deinit(&moves);
  tfc_store_close(store);
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_of_the_path), cmocka_unit_test(test_large),
                                     cmocka_unit_test(test_stored)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
