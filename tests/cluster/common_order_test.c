// The common order of edges between tasks: the longest path first, as far as a task can have begun it, and updates of
// variables between the same nodes as in the canonical order.
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

// Task 0 has a short and a long path; the long one begins at a node with a larger number. Task 1 has one that is ready
// at once, however short it is.
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
  ranks[tfc_graph_find(g, TFC_STR("short"))] = 1; // with a task of its own it need not wait for them
  assert_ok(tfc_cluster_order(g, ranks, 2, position));
  assert_true(at(g, position, "short") < at(g, position, "longer"));
  tfc_graph_release(g);
}

// A read that nothing orders behind an update sees the value before it, though the update is ready earlier, in another
// task.
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
