// The common order of edges between tasks: of the nodes that are ready in a task the one with the longest path comes
// first, and updates of variables are between the same nodes as in the canonical order.
#include "runtime/cluster/common_order.h"
#include "tests/common/test.h"

#include "runtime/graph/import.h"

static struct tfc_graph *read(const char *text) {
  struct tfc_graph *g = NULL;
  assert_ok(tfc_graph_parse(tfc_str_from(text), "order.pbtxt", NULL, &g));
  return g;
}

static uint32_t at(const struct tfc_graph *g, const uint32_t *position, const char *name) {
  const uint32_t node = tfc_graph_find(g, tfc_str_from(name));
  assert_true(node != TFC_NONE);
  return position[node];
}

#define FLOAT "attr { key: 'T' value { type: DT_FLOAT } }"
#define PRODUCT(name, a, b) "node { name: '" name "' op: 'MatMul' input: '" a "' input: '" b "' " FLOAT " }"
#define PLACEHOLDER(name)                                                                                              \
  "node { name: '" name "' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }"                           \
  " attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 32 } } } } }"

// Task 0 has a short path, of one node, and a long one, whose first node has a larger number. Task 1 has a single node:
// it starts at once, before the long path's second node, since its task has nothing else to do.
static void test_longest_path_first(void **state) {
  (void)state;
  struct tfc_graph *g = read(PLACEHOLDER("x") PRODUCT("short", "x", "x") PRODUCT("long", "x", "x") PRODUCT(
      "longer", "long", "x") PRODUCT("longest", "longer", "x") PRODUCT("other", "x", "x"));
  uint32_t ranks[6] = {0}, position[6];
  ranks[tfc_graph_find(g, TFC_STR("other"))] = 1;
  assert_ok(tfc_cluster_order(g, ranks, 2, position));
  assert_true(at(g, position, "long") < at(g, position, "short"));
  assert_true(at(g, position, "longer") < at(g, position, "short"));
  assert_true(at(g, position, "other") < at(g, position, "longer"));
  ranks[tfc_graph_find(g, TFC_STR("short"))] = 1; // now it does not wait for the long path: task 1 runs it
  assert_ok(tfc_cluster_order(g, ranks, 2, position));
  assert_true(at(g, position, "short") < at(g, position, "longer"));
  tfc_graph_release(g);
}

// No edge orders the read and the update. The read sees the value before the update, although the update is ready
// earlier: the read waits for products of another task.
static void test_updates_come_late(void **state) {
  (void)state;
  struct tfc_graph *g = read(
      PLACEHOLDER("x") "node { name: 'v' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } }"
                       " attr { key: 'shape' value { shape { dim { size: 32 } dim { size: 32 } } } } }"
                       "node { name: 'update' op: 'AssignAdd' input: 'v' input: 'x' " FLOAT " }"
                       "node { name: 'after' op: 'Neg' input: 'update' " FLOAT " }" PRODUCT("a", "x", "x")
                           PRODUCT("b", "a", "x") "node { name: 'read' op: 'Add' input: 'v' input: 'b' " FLOAT " }");
  uint32_t ranks[7] = {0}, position[7];
  ranks[tfc_graph_find(g, TFC_STR("a"))] = ranks[tfc_graph_find(g, TFC_STR("b"))] = 1;
  assert_ok(tfc_cluster_order(g, ranks, 2, position));
  assert_true(at(g, position, "read") < at(g, position, "update"));
  assert_true(at(g, position, "update") < at(g, position, "after"));
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_longest_path_first),
                                     cmocka_unit_test(test_updates_come_late)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
