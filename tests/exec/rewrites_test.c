// Tests which operations rewrites remove from small graphs, which they leave, and that what runs after what stays.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/exec/session.h"
#include "runtime/graph/import.h"

#define NODE(name, op, rest) "node { name: '" name "' op: '" op "' " rest " }\n"
#define IN(name) " input: '" name "'"
#define ATTR(key, value) " attr { key: '" key "' value { " value " } }"
#define T ATTR("T", "type: DT_FLOAT")
#define X(name, dims) NODE(name, "Placeholder", ATTR("dtype", "type: DT_FLOAT") ATTR("shape", "shape { " dims " }"))
#define DIM(n) "dim { size: " #n " } "
#define NUMBER(name, value)                                                                                            \
  NODE(name, "Const",                                                                                                  \
       ATTR("dtype", "type: DT_FLOAT")                                                                                 \
           ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape { } float_val: " value " }"))
#define PAIR(name, a, b)                                                                                               \
  NODE(name, "Const",                                                                                                  \
       ATTR("dtype", "type: DT_INT32")                                                                                 \
           ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: " a " int_val: " b " }"))

// Runs a step of the graph, with and without rewrites. The results are the same; of the operations named in `watched`
// (divided by blanks) only those in `left` run with rewrites, and all without them. Placeholders get 1, 2, 3, ... .
static void check(const char *text, const char *fetch_names, const char *watched, const char *left) {
  struct tfc_tensor values[2][4] = {{{0}}};
  uint32_t fetch_count = 0;
  for (int plain = 0; plain < 2; plain++) {
    struct tfc_graph *g = NULL;
    struct tfc_device_set set = {0};
    struct tfc_session *session = NULL;
    struct tfc_plan *plan = NULL;
    struct tfc_output feeds[4], fetches[4];
    struct tfc_tensor fed[4] = {{0}};
    uint32_t feed_count = 0;
    char names[200], ran[1000] = " ";
    assert_ok(tfc_graph_parse(tfc_str_from(text), "small", NULL, &g));
    assert_ok(tfc_devices_open("1", NULL, 0, &set));
    assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = plain}, &session));
    for (uint32_t i = 0; i < g->node_count; i++) {
      const struct tfc_attr *shape = tfc_node_attr(g, &g->nodes[i], "shape");
      if (!tfc_str_is(g->nodes[i].op, "Placeholder")) continue;
      feeds[feed_count] = (struct tfc_output){i, 0};
      assert_ok(tfc_tensor_create(TFC_FLOAT, shape->shape, &fed[feed_count]));
      for (int64_t k = 0; k < tfc_tensor_elements(&fed[feed_count]); k++)
        ((float *)fed[feed_count].data)[k] = (float)(k + 1);
      feed_count++;
    }
    const uint32_t init = tfc_graph_find(g, TFC_STR("init"));
    if (init != TFC_NONE)
      assert_ok(
          tfc_session_run(session, &(struct tfc_run_spec){.targets = &init, .target_count = 1}, NULL, NULL, NULL));
    fetch_count = 0;
    snprintf(names, sizeof names, "%s", fetch_names);
    for (char *name = strtok(names, " "); name; name = strtok(NULL, " "))
      fetches[fetch_count++] = (struct tfc_output){tfc_graph_find(g, tfc_str_from(name)), 0};
    const struct tfc_run_spec spec = {
        .feeds = feeds, .feed_count = feed_count, .fetches = fetches, .fetch_count = fetch_count};
    assert_ok(tfc_plan_create(session, &spec, &plan));
    assert_ok(tfc_plan_run(plan, fed, values[plain], NULL));
    const struct tfc_plan_info *info = tfc_plan_info(plan);
    for (uint32_t n = 0; n < g->node_count; n++) // as part of another operation, too
      for (uint32_t i = 0; i < info->op_count; i++)
        if (info->ops[i].node == info->runs_in[n])
          snprintf(ran + strlen(ran), sizeof ran - strlen(ran), "%.*s ", TFC_STR_ARG(g->nodes[n].name));
    snprintf(names, sizeof names, "%s", watched);
    for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
      char word[40], all[200];
      snprintf(word, sizeof word, " %s ", name);
      snprintf(all, sizeof all, " %s ", plain ? watched : left);
      if (!strstr(ran, word) != !strstr(all, word))
        fail_msg("%s rewrites,%s %s:%s", plain ? "without" : "with", word, strstr(ran, word) ? "runs" : "does not run",
                 ran);
    }
    tfc_plan_free(plan);
    tfc_session_free(session);
    for (uint32_t i = 0; i < feed_count; i++) tfc_tensor_release(&fed[i]);
    tfc_devices_close(&set);
    tfc_graph_release(g);
  }
  for (uint32_t i = 0; i < fetch_count; i++) {
    assert_int_equal(values[0][i].size, values[1][i].size);
    assert_memory_equal(values[0][i].data, values[1][i].data, values[0][i].size);
    tfc_tensor_release(&values[0][i]);
    tfc_tensor_release(&values[1][i]);
  }
}

// Only a control edge keeps `side` and what it reads in the step.
static void unused(void **state) {
  (void)state;
#define SIDE                                                                                                           \
  X("x", DIM(4))                                                                                                       \
  NODE("before", "Tanh", IN("x") T)                                                                                    \
  NODE("side", "Rsqrt", IN("before") T)                                                                                \
  NODE("y", "Floor", IN("x") IN("^side") T)
  check(SIDE, "y", "before side", "");
  check(SIDE, "y side", "before side", "before side"); // fetched
  check(SIDE, "y before", "before side", "before");
  // Read by another operation that is needed.
  check(SIDE NODE("z", "Ceil", IN("before") T), "y z", "before side", "before");
  // What checks something stays, with what it reads: the step is to fail.
  check(X("x", DIM(4)) NODE("before", "Tanh", IN("x") T)
            NODE("side", "CheckNumerics", IN("before") T ATTR("message", "s: 'm'"))
                NODE("y", "Floor", IN("x") IN("^side") T),
        "y", "before side", "before side");
  // The order around a removed operation stays: `read` comes behind `count`, though only `side` says so.
  check(X("x", DIM(4)) NUMBER("zero", "0") NUMBER("one", "1")
            NODE("v", "VarHandleOp", ATTR("dtype", "type: DT_FLOAT") ATTR("shape", "shape { }"))
                NODE("init", "AssignVariableOp", IN("v") IN("zero") ATTR("dtype", "type: DT_FLOAT"))
                    NODE("count", "AssignAddVariableOp", IN("v") IN("one") ATTR("dtype", "type: DT_FLOAT"))
                        NODE("before", "Tanh", IN("x") T) NODE("side", "Rsqrt", IN("before") IN("^count") T)
                            NODE("read", "ReadVariableOp", IN("v") IN("^side") ATTR("dtype", "type: DT_FLOAT"))
                                NODE("y", "Floor", IN("read") T),
        "y", "side", "");
}

// A row that is repeated to be combined with a whole matrix: the other operation repeats it itself.
static void repeated(void **state) {
  (void)state;
#define TILE(a, b)                                                                                                     \
  PAIR("times", a, b) NODE("tile", "Tile", IN("row") IN("times") T ATTR("Tmultiples", "type: DT_INT32"))
#define ADD(a, b) NODE("y", "Pow", IN(a) IN(b) T)
  check(X("row", DIM(1) DIM(4)) X("whole", DIM(3) DIM(4)) TILE("3", "1") ADD("tile", "whole"), "y", "tile", "");
  check(X("row", DIM(1) DIM(4)) X("whole", DIM(3) DIM(4)) TILE("3", "1") ADD("whole", "tile"), "y", "tile", "");
  check(X("row", DIM(3) DIM(1)) X("whole", DIM(3) DIM(4)) TILE("1", "4") ADD("tile", "whole"), "y", "tile", "");
  // Beside another row, or a number, the result would be smaller.
  check(X("row", DIM(1) DIM(4)) X("other", DIM(1) DIM(4)) TILE("3", "1") ADD("tile", "other"), "y", "tile", "tile");
  check(X("row", DIM(1) DIM(4)) X("other", "") TILE("3", "1") ADD("tile", "other"), "y", "tile", "tile");
  // Two rows that are repeated to four are no broadcast.
  check(X("row", DIM(2) DIM(4)) X("whole", DIM(4) DIM(4)) TILE("2", "1") ADD("tile", "whole"), "y", "tile", "tile");
  check(X("row", DIM(1) DIM(4)) X("whole", DIM(3) DIM(4)) TILE("3", "1") ADD("tile", "whole"), "y tile", "tile",
        "tile");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(unused), cmocka_unit_test(repeated)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
