// Tests that what only control edges and variables put in order stays in this order when rewrites remove, merge, divide
// or copy operations: updates of variables and tables beside what reads them, and checks that fail.
#include "tests/common/test.h"

#include <math.h>
#include <string.h>

#include "runtime/exec/session.h"
#include "runtime/graph/import.h"

#define NODE(name, op, rest) "node { name: '" name "' op: '" op "' " rest " }\n"
#define IN(name) " input: '" name "'"
#define ATTR(key, value) " attr { key: '" key "' value { " value " } }"
#define FLOAT(key) ATTR(key, "type: DT_FLOAT")
#define T FLOAT("T")
#define DIM(n) "dim { size: " #n " } "
#define X(name, dims) NODE(name, "Placeholder", FLOAT("dtype") ATTR("shape", "shape { " dims " }"))
#define CONST(name, type, dims, value)                                                                                 \
  NODE(name, "Const",                                                                                                  \
       ATTR("dtype", "type: " type) ATTR("value", "tensor { dtype: " type " tensor_shape { " dims " } " value " }"))
#define VARIABLE(name, dims)                                                                                           \
  NODE(name, "VarHandleOp", FLOAT("dtype") ATTR("shape", "shape { " dims " }") ATTR("shared_name", "s: '" name "'"))
#define INIT(name, value) NODE("init", "AssignVariableOp", IN(name) IN(value) FLOAT("dtype"))
#define VALUE(name) NODE("value", "ReadVariableOp", IN(name) FLOAT("dtype"))

static tfc_status step(struct tfc_session *session, const struct tfc_graph *g, const char *fetch, const char *target,
                       const struct tfc_output *feeds, uint32_t feed_count, const struct tfc_tensor *fed,
                       struct tfc_tensor *out) {
  const uint32_t id = tfc_graph_find(g, tfc_str_from(target));
  const struct tfc_output fetched = {tfc_graph_find(g, tfc_str_from(fetch)), 0};
  const struct tfc_run_spec spec = {.feeds = feeds,
                                    .feed_count = feed_count,
                                    .fetches = &fetched,
                                    .fetch_count = *fetch != 0,
                                    .targets = &id,
                                    .target_count = *target != 0};
  return tfc_session_run(session, &spec, fed, out, NULL);
}

// Runs a step of the graph, with and without rewrites. `feed`: all elements of all placeholders. `fails`: the step
// does. Otherwise the first element of `fetch` (where it is not empty) is `expected`; and the variable that `value`
// reads has the element `after` then.
struct expected {
  const char *fetch, *target;
  float feed, fetched;
  bool fails;
  float after; // NaN: there is no `value`
};
static void check(const char *text, const struct expected *e) {
  for (int plain = 0; plain < 2; plain++) {
    struct tfc_graph *g = NULL;
    struct tfc_device_set set = {0};
    struct tfc_session *session = NULL;
    struct tfc_output feeds[4];
    struct tfc_tensor fed[4] = {{0}}, out = {0};
    uint32_t feed_count = 0;
    assert_ok(tfc_graph_parse(tfc_str_from(text), "effects", NULL, &g));
    assert_ok(tfc_devices_open("1", NULL, 0, &set));
    assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = plain}, &session));
    for (uint32_t i = 0; i < g->node_count; i++) {
      if (!tfc_str_is(g->nodes[i].op, "Placeholder")) continue;
      feeds[feed_count] = (struct tfc_output){i, 0};
      assert_ok(tfc_tensor_create(TFC_FLOAT, tfc_node_attr(g, &g->nodes[i], "shape")->shape, &fed[feed_count]));
      for (int64_t k = 0; k < tfc_tensor_elements(&fed[feed_count]); k++) ((float *)fed[feed_count].data)[k] = e->feed;
      feed_count++;
    }
    if (tfc_graph_find(g, TFC_STR("init")) != TFC_NONE) assert_ok(step(session, g, "", "init", NULL, 0, NULL, NULL));
    tfc_status s = step(session, g, e->fetch, e->target, feeds, feed_count, fed, &out);
    assert_int_equal(s != NULL, e->fails);
    tfc_status_free(s);
    if (*e->fetch && !e->fails) assert_true(*(float *)out.data == e->fetched);
    tfc_tensor_release(&out);
    if (!isnan(e->after)) {
      assert_ok(step(session, g, "value", "", NULL, 0, NULL, &out));
      assert_true(*(float *)out.data == e->after);
      tfc_tensor_release(&out);
    }
    tfc_session_free(session);
    for (uint32_t i = 0; i < feed_count; i++) tfc_tensor_release(&fed[i]);
    tfc_devices_close(&set);
    tfc_graph_release(g);
  }
}

// A table's key is looked up before it is inserted, though the insertion is listed first, and only something between
// them that no longer runs says so.
#define LOOKUP                                                                                                         \
  NODE("table", "MutableHashTableV2", ATTR("key_dtype", "type: DT_INT64") ATTR("value_dtype", "type: DT_FLOAT"))       \
  CONST("k", "DT_INT64", DIM(1), "int64_val: 7")                                                                       \
  CONST("v", "DT_FLOAT", DIM(1), "float_val: 42")                                                                      \
  CONST("none", "DT_FLOAT", "", "float_val: -1")                                                                       \
  NODE("insert", "LookupTableInsertV2",                                                                                \
       IN("table") IN("k") IN("v") IN("^between") ATTR("Tin", "type: DT_INT64") FLOAT("Tout"))                         \
  NODE("find", "LookupTableFindV2", IN("table") IN("k") IN("none") ATTR("Tin", "type: DT_INT64") FLOAT("Tout"))
static void tables(void **state) {
  (void)state;
  const struct expected none = {.fetch = "find", .target = "insert", .fetched = -1, .after = NAN};
  check(LOOKUP NODE("between", "Identity", IN("find") T), &none);
  check(LOOKUP NODE("same", "Identity", IN("find") T) NODE("between", "Identity", IN("same") T), &none);
  check(LOOKUP NODE("same", "Identity", IN("find") T) NODE("between", "NoOp", IN("^same")), &none);
  check(LOOKUP NODE("between", "Neg", IN("find") T), &none);
  check(LOOKUP NODE("neg", "Neg", IN("find") T) NODE("between", "Exp", IN("neg") T), &none);
}

// A check that fails: the update that has to wait for it does not happen.
#define CHECKED(op, last)                                                                                              \
  X("x", DIM(4))                                                                                                       \
  CONST("zero", "DT_FLOAT", "", "float_val: 0")                                                                        \
  CONST("one", "DT_FLOAT", "", "float_val: 1")                                                                         \
  VARIABLE("v", "")                                                                                                    \
  INIT("v", "zero")                                                                                                    \
  NODE("count", "AssignAddVariableOp", IN("v") IN("one") IN("^" last) FLOAT("dtype"))                                  \
  NODE("check", op, IN("x") T ATTR("message", "s: 'broken'"))                                                          \
  NODE("same", "Identity", IN("check") T)                                                                              \
  NODE("neg", "Neg", IN("check") T)                                                                                    \
  VALUE("v")
static void checks(void **state) {
  (void)state;
  const struct expected broken = {.fetch = "", .target = "count", .feed = NAN, .fails = true, .after = 0};
  const struct expected whole = {.fetch = "", .target = "count", .feed = 1, .after = 1};
#define BOTH(text)                                                                                                     \
  check(text, &broken);                                                                                                \
  check(text, &whole)
  BOTH(CHECKED("CheckNumerics", "check"));
  BOTH(CHECKED("CheckNumericsV2", "check"));
  BOTH(CHECKED("CheckNumerics", "same"));
  BOTH(CHECKED("CheckNumericsV2", "same"));
  BOTH(CHECKED("CheckNumerics", "neg"));
  BOTH(CHECKED("CheckNumericsV2", "neg"));
}

// What waits for an assertion that fails is read past a repetition, or computed again.
#define FAILS(of)                                                                                                      \
  CONST("false", "DT_BOOL", "", "bool_val: false")                                                                     \
  NODE("a", "Assert", IN("false") IN(of) ATTR("T", "list { type: DT_FLOAT }"))
static void assertions(void **state) {
  (void)state;
  const struct expected stays = {.fetch = "", .target = "assign", .feed = 2, .fails = true, .after = 1};
  check(X("row", DIM(1) DIM(4)) X("whole", DIM(3) DIM(4)) VARIABLE("v", DIM(3) DIM(4))
            CONST("times", "DT_INT32", DIM(2), "int_val: 3 int_val: 1")
                CONST("ones", "DT_FLOAT", DIM(3) DIM(4), "float_val: 1") INIT("v", "ones")
                    NODE("tile", "Tile", IN("row") IN("times") IN("^a") T ATTR("Tmultiples", "type: DT_INT32"))
                        NODE("y", "Pow", IN("tile") IN("whole") T)
                            NODE("assign", "AssignVariableOp", IN("v") IN("y") FLOAT("dtype")) FAILS("row") VALUE("v"),
        &stays);
  const struct expected read_twice = {.fetch = "e", .target = "assign", .feed = 2, .fails = true, .after = 1};
  check(X("x", DIM(4) DIM(4)) CONST("two", "DT_FLOAT", "", "float_val: 2")
            CONST("ones", "DT_FLOAT", DIM(4) DIM(4), "float_val: 1") VARIABLE("v", DIM(4) DIM(4)) INIT("v", "ones")
                NODE("y", "Mul", IN("x") IN("two") IN("^a") T) NODE("t", "Tanh", IN("y") T) NODE("e", "Exp", IN("t") T)
                    NODE("m", "MatMul", IN("x") IN("x") T) NODE("r", "AddV2", IN("y") IN("m") T)
                        NODE("q", "Tanh", IN("r") T) NODE("assign", "AssignVariableOp", IN("v") IN("q") FLOAT("dtype"))
                            FAILS("x") VALUE("v"),
        &read_twice);
}

// Products of a variable before and after its update are added up: they are no single operation.
static void products_around_an_update(void **state) {
  (void)state;
  const struct expected sum = {.fetch = "s", .target = "", .feed = 1, .fetched = 2 + 22, .after = 11};
#define AROUND(last)                                                                                                   \
  X("x", DIM(2) DIM(2))                                                                                                \
  CONST("start", "DT_FLOAT", DIM(2) DIM(2), "float_val: 1")                                                            \
  CONST("d", "DT_FLOAT", DIM(2) DIM(2), "float_val: 10")                                                               \
  VARIABLE("w", DIM(2) DIM(2))                                                                                         \
  INIT("w", "start")                                                                                                   \
  NODE("r1", "ReadVariableOp", IN("w") FLOAT("dtype"))                                                                 \
  NODE("m1", "MatMul", IN("x") IN("r1") T)                                                                             \
  NODE("u", "AssignAddVariableOp", IN("w") IN("d") IN("^m1") FLOAT("dtype"))                                           \
  NODE("r2", "ReadVariableOp", IN("w") IN("^u") FLOAT("dtype"))                                                        \
  NODE("m2", "MatMul", IN("x") IN("r2") T)                                                                             \
  NODE("s", "AddN", last T ATTR("N", "i: 2"))                                                                          \
  VALUE("w")
  check(AROUND(IN("m1") IN("m2")), &sum);
  check(AROUND(IN("m2") IN("m1")), &sum);
}

// A long sum of products in pieces, on one of two devices: every piece reads the variable, so that its update comes
// after the last one, wherever the order of operations has it.
static void pieces_before_an_update(void **state) {
  (void)state;
  enum { M = 1024, TERMS = 3 };
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor x = {0}, out[3] = {{0}};
#define SQUARE DIM(1024) DIM(1024)
#define TERM(i) NODE("a" #i, "Abs", IN("x") T) NODE("m" #i, "MatMul", IN("r") IN("a" #i) T)
  const char *text = X("x", SQUARE) CONST("ones", "DT_FLOAT", SQUARE, "float_val: 1") VARIABLE("w", SQUARE)
      INIT("w", "ones") NODE("r", "ReadVariableOp", IN("w") FLOAT("dtype")) TERM(0) TERM(1) TERM(2)
          NODE("u", "AssignAddVariableOp", IN("w") IN("ones") FLOAT("dtype"))
              NODE("sum", "AddN", IN("m0") IN("m1") IN("m2") T ATTR("N", "i: 3"))
                  NODE("r2", "ReadVariableOp", IN("w") IN("^u") FLOAT("dtype")) NODE("b", "MatMul", IN("r2") IN("x") T)
                      NODE("c", "MatMul", IN("b") IN("x") T) NODE("d", "MatMul", IN("c") IN("x") T)
                          NODE("far", "Neg", IN("x") T);
  assert_ok(tfc_graph_parse(tfc_str_from(text), "pieces", NULL, &g));
  assert_ok(tfc_devices_open("2", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  uint16_t placement[32] = {0};
#define ID(name) tfc_graph_find(g, TFC_STR(name))
  placement[ID("far")] = 1;
  const uint32_t init = ID("init"), update = ID("u");
  const struct tfc_run_spec first = {.targets = &init, .target_count = 1, .placement = placement};
  assert_ok(tfc_session_run(session, &first, NULL, NULL, NULL));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(M, M), &x));
  for (int i = 0; i < M * M; i++) ((float *)x.data)[i] = 1;
  const struct tfc_output feed = {ID("x"), 0}, fetches[] = {{ID("sum"), 0}, {ID("far"), 0}, {ID("d"), 0}};
  const struct tfc_run_spec spec = {.feeds = &feed,
                                    .feed_count = 1,
                                    .fetches = fetches,
                                    .fetch_count = 3,
                                    .targets = &update,
                                    .target_count = 1,
                                    .placement = placement};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_plan_run(plan, &x, out, NULL));
  const struct tfc_plan_info *info = tfc_plan_info(plan);
  assert_true(info->continued_count > 0); // there are pieces
  uint32_t last_piece = 0, at = TFC_NONE;
  for (uint32_t i = 0; i < info->op_count; i++) {
    if (info->ops[i].node == update) at = i;
    if (info->ops[i].node == ID("sum")) last_piece = i;
  }
  assert_true(at != TFC_NONE && last_piece < at);
  for (int i = 0; i < M * M; i++) assert_true(((float *)out[0].data)[i] == TERMS * M);
  tfc_plan_free(plan);
  for (int i = 0; i < 3; i++) tfc_tensor_release(&out[i]);
  tfc_tensor_release(&x);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tables),
      cmocka_unit_test(checks),
      cmocka_unit_test(assertions),
      cmocka_unit_test(products_around_an_update),
      cmocka_unit_test(pieces_before_an_update),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
