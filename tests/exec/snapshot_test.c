// Tests that restoring a snapshot restores everything that it holds: values of both kinds of variables, even if they
// have moved to other devices; variables that had no value; variables that were made later; and the state of random
// generators. Also compares the memory of static plans with sizes worked out by hand.
#include "tests/common/test.h"

#include <math.h>
#include <string.h>

#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/import.h"

#define IN(name) " input: \"" name "\""
#define NODE(name, op, ...) "node { name: \"" name "\" op: \"" op "\"" __VA_ARGS__ " }\n"
#define ATTR(key, value) " attr { key: \"" key "\" value { " value " } }"
#define FLOAT(key) ATTR(key, "type: DT_FLOAT")
#define VECTOR ATTR("shape", "shape { dim { size: 3 } }")
static const char text[] = NODE("x", "Placeholder", FLOAT("dtype") VECTOR) NODE(
    "a", "VarHandleOp", FLOAT("dtype") VECTOR ATTR("shared_name", "s: \"a\"")) NODE("b", "VariableV2",
                                                                                    FLOAT("dtype") VECTOR)
    NODE("late", "VariableV2", FLOAT("dtype") VECTOR) NODE("set_a", "AssignVariableOp", IN("a") IN("x") FLOAT("dtype"))
        NODE("set_b", "Assign", IN("b") IN("x") FLOAT("T")) NODE("set_late", "Assign", IN("late") IN("x") FLOAT("T"))
            NODE("add_a", "AssignAddVariableOp", IN("a") IN("x") FLOAT("dtype")) NODE("read_a", "ReadVariableOp",
                                                                                      IN("a") FLOAT("dtype"))
                NODE("read_b", "Identity", IN("b") FLOAT("T")) NODE("read_late", "Identity", IN("late") FLOAT("T"))
                    NODE("dims", "Const",
                         ATTR("dtype", "type: DT_INT32")
                             ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 3 }"))
                        NODE("noise", "RandomUniform",
                             IN("dims") FLOAT("dtype") ATTR("T", "type: DT_INT32") ATTR("seed", "i: 7"));

static struct tfc_graph *graph;
static struct tfc_device_set set;
static struct tfc_session *session;

static int set_up(void **state) {
  (void)state;
  assert_ok(tfc_graph_parse(tfc_str_from(text), "snapshot", NULL, &graph));
  assert_ok(tfc_devices_open("cpu:0-1", NULL, 0, &set));
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &set}, &session));
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(graph);
  return 0;
}

static void put(const char *target, const float value[3], uint16_t device) {
  uint16_t placement[32];
  for (int i = 0; i < 32; i++) placement[i] = device;
  uint32_t node = tfc_graph_find(graph, tfc_str_from(target));
  struct tfc_output x = {tfc_graph_find(graph, TFC_STR("x")), 0};
  struct tfc_tensor feed = {TFC_FLOAT, TFC_SHAPE(3), (void *)(uintptr_t)value, 12, NULL};
  const struct tfc_run_spec spec = {
      .feeds = &x, .feed_count = 1, .targets = &node, .target_count = 1, .placement = placement};
  assert_ok(tfc_session_run(session, &spec, &feed, NULL, NULL));
}
static tfc_status get(const char *fetch, float out[3]) {
  struct tfc_output o = {tfc_graph_find(graph, tfc_str_from(fetch)), 0};
  struct tfc_tensor got = {0};
  TFC_RETURN_IF_ERROR(
      tfc_session_run(session, &(struct tfc_run_spec){.fetches = &o, .fetch_count = 1}, NULL, &got, NULL));
  memcpy(out, got.data, 12);
  tfc_tensor_release(&got);
  return NULL;
}
static void assert_is(const char *fetch, const float value[3]) {
  float got[3];
  assert_ok(get(fetch, got));
  assert_memory_equal(got, value, sizeof got);
}

// A plan of every kind says which variables the session has for it, and how large they are.
static void variables_of_plans(void **state) {
  (void)state;
  const uint32_t targets[] = {tfc_graph_find(graph, TFC_STR("read_a")), tfc_graph_find(graph, TFC_STR("read_b"))};
  for (int dynamic = 0; dynamic < 2; dynamic++) {
    struct tfc_plan *plan = NULL;
    const struct tfc_run_spec spec = {.targets = targets, .target_count = 2, .dynamic = dynamic};
    assert_ok(tfc_plan_create(session, &spec, &plan));
    const struct tfc_plan_info *info = tfc_plan_info(plan);
    assert_true(info->is_static == !dynamic);
    assert_int_equal(info->variable_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
      const tfc_str op = graph->nodes[info->variables[i].node].op;
      assert_true(tfc_str_is(op, "VarHandleOp") || tfc_str_is(op, "VariableV2"));
      assert_int_equal(info->variables[i].device, 0);
      assert_int_equal(info->variables[i].bytes, 12);
    }
    assert_true(info->variables[0].node != info->variables[1].node);
    tfc_plan_free(plan);
  }
}

static void comes_back(void **state) {
  (void)state;
  static const float one[] = {1, 2, 3}, two[] = {10, 20, 30}, sum[] = {11, 22, 33}, three[] = {-1, -2, -3};
  struct tfc_snapshot *empty = NULL, *snapshot = NULL;
  float got[3], first[3][3], again[3];
  assert_ok(tfc_session_snapshot(session, &empty)); // taken before any variable was used
  put("set_a", one, 0);
  put("set_b", two, 0);
  assert_ok(get("noise", first[0])); // the generator is at its second number
  assert_ok(tfc_session_snapshot(session, &snapshot));
  for (int round = 0; round < 3; round++) {
    for (int i = 1; i < 3; i++) assert_ok(get("noise", first[i]));
    put("add_a", two, 1); // on another device, too
    assert_is("read_a", sum);
    put("set_b", three, (uint16_t)(round % 2));
    put("set_late", three, 0);
    assert_is("read_b", three);
    assert_is("read_late", three);
    assert_ok(tfc_session_restore(session, snapshot));
    assert_is("read_a", one);
    assert_is("read_b", two);
    assert_fails(get("read_late", got), TFC_FAILED_PRECONDITION, "late");
    for (int i = 1; i < 3; i++) {
      assert_ok(get("noise", again));
      assert_memory_equal(again, first[i], sizeof again);
      assert_true(memcmp(again, first[0], sizeof again) != 0);
    }
    assert_ok(tfc_session_restore(session, snapshot));
  }
  assert_ok(tfc_session_restore(session, empty)); // at that time, no variable had a value
  assert_fails(get("read_a", got), TFC_FAILED_PRECONDITION, "a");
  assert_fails(get("read_b", got), TFC_FAILED_PRECONDITION, "b");
  assert_ok(get("noise", again));
  assert_memory_equal(again, first[0], sizeof again);
  tfc_snapshot_free(snapshot);
  tfc_snapshot_free(empty);
}

// --- Places in memory ------------------------------------------------------------------------------------------------
enum { BLOCK = 4096 }; // bytes of a tensor of 1024 floats

// Computes s = p + q with p = -x and q = exp(x). `which`: which of p and q is read after that (0: none, 1: p, 2: q, 3:
// both).
static struct tfc_output later(struct tfc_builder *b, struct tfc_output x, int which) {
  struct tfc_output p = tfc_add1(b, "Neg", x), q = tfc_add1(b, "Exp", x), s = tfc_add2(b, "AddV2", p, q), y = s;
  if (which & 1) y = tfc_add2(b, "Mul", y, p);
  if (which & 2) y = tfc_add2(b, "Sub", y, q);
  return y;
}
static struct tfc_output square(struct tfc_builder *b, struct tfc_output x, int which) {
  (void)which;
  struct tfc_output p = tfc_add1(b, "Neg", x);
  return tfc_add2(b, "Mul", p, p);
}
static uint64_t peak(struct tfc_output (*make)(struct tfc_builder *, struct tfc_output, int), int which, float *out) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_session *s = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor value = {0}, sum = {0};
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(1024));
  struct tfc_output y = tfc_add2(b, "Sum", make(b, x, which), tfc_add_i32_vector(b, (int32_t[]){0}, 1));
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = true}, &s));
  const struct tfc_shape shape = TFC_SHAPE(1024);
  const struct tfc_run_spec spec = {
      .feeds = &x, .feed_count = 1, .feed_shapes = &shape, .fetches = &y, .fetch_count = 1};
  assert_ok(tfc_plan_create(s, &spec, &plan));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &shape, &value));
  for (int i = 0; i < 1024; i++) ((float *)value.data)[i] = (float)(i % 7) / 8;
  for (int i = 0; i < 2; i++) {
    tfc_tensor_release(&sum);
    assert_ok(tfc_plan_run(plan, &value, &sum, NULL));
  }
  *out = *(const float *)sum.data;
  uint64_t bytes = tfc_plan_info(plan)->peak_bytes[0];
  tfc_tensor_release(&value);
  tfc_tensor_release(&sum);
  tfc_plan_free(plan);
  tfc_session_free(s);
  tfc_graph_release(g);
  tfc_builder_free(b);
  return bytes;
}

// An output overwrites an input that no later operation reads; in `square`, one operation reads the same input twice.
// In `later`, the sum s overwrites p or q, unless both are read after s: then the plan needs a third block.
static void in_place(void **state) {
  (void)state;
  float got;
  double sums[4] = {0}, squares = 0;
  for (int i = 0; i < 1024; i++) {
    double x = (i % 7) / 8.0, p = -x, q = (double)expf((float)x), s = p + q;
    const double values[] = {s, s * p, s - q, s * p - q};
    for (int k = 0; k < 4; k++) sums[k] += values[k];
    squares += p * p;
  }
  const uint64_t one = peak(square, 0, &got);
  assert_true(fabs((double)got - squares) < 1e-3 * fabs(squares));
  assert_int_equal(one, BLOCK + 64); // the sum, a scalar, takes 64 bytes, the smallest block
  for (int k = 0; k < 4; k++) {
    assert_int_equal(peak(later, k, &got), (k == 3 ? 3 : 2) * BLOCK);
    assert_true(fabs((double)got - sums[k]) < 1e-3 * (1 + fabs(sums[k])));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(variables_of_plans), cmocka_unit_test(comes_back),
                                     cmocka_unit_test(in_place)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
