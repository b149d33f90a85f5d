// Tests optimizer updates that run the chain before them: they give the same bits as single operations, for both kinds
// of variables.
#include "tests/common/test.h"

#include <math.h>
#include <string.h>

#include "runtime/exec/session.h"
#include "runtime/graph/import.h"

#define IN(name) " input: \"" name "\""
#define NODE(name, op, ...) "node { name: \"" name "\" op: \"" op "\"" __VA_ARGS__ " }\n"
#define ATTR(key, value) " attr { key: \"" key "\" value { " value " } }"
#define FLOAT(key) ATTR(key, "type: DT_FLOAT")
#define SHAPE ATTR("shape", "shape { dim { size: 40 } dim { size: 33 } }")
#define NUMBER(name, value)                                                                                            \
  NODE(name, "Const", FLOAT("dtype") ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: " value " }"))
#define COMMON                                                                                                         \
  NODE("g", "Placeholder", FLOAT("dtype") SHAPE)                                                                       \
  NUMBER("rate", "0.1")                                                                                                \
  NUMBER("momentum", "0.9")                                                                                            \
  NUMBER("scale", "0.003")                                                                                             \
  NUMBER("half", "0.5")                                                                                                \
  NODE("dims", "Const",                                                                                                \
       ATTR("dtype", "type: DT_INT32")                                                                                 \
           ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 40 int_val: 33 }"))       \
  NODE("start", "Fill", IN("dims") IN("half") FLOAT("T") ATTR("index_type", "type: DT_INT32"))                         \
  NODE("nothing", "Fill", IN("dims") IN("scale") FLOAT("T") ATTR("index_type", "type: DT_INT32"))                      \
  NODE("decay", "Mul", IN("value") IN("scale") FLOAT("T"))                                                             \
  NODE("sum", "AddN", IN("g") IN("decay") FLOAT("T") ATTR("N", "i: 2"))

static const char resources[] = COMMON NODE("w", "VarHandleOp", FLOAT("dtype") SHAPE ATTR("shared_name", "s: \"w\""))
    NODE("a", "VarHandleOp", FLOAT("dtype") SHAPE ATTR("shared_name", "s: \"a\""))
        NODE("init_w", "AssignVariableOp", IN("w") IN("start") FLOAT("dtype"))
            NODE("init_a", "AssignVariableOp", IN("a") IN("nothing") FLOAT("dtype")) NODE("value", "ReadVariableOp",
                                                                                          IN("w") FLOAT("dtype"))
                NODE("train", "ResourceApplyMomentum", IN("w") IN("a") IN("rate") IN("sum") IN("momentum") FLOAT("T"));

static const char references[] = COMMON NODE("w", "VariableV2", FLOAT("dtype") SHAPE)
    NODE("a", "VariableV2", FLOAT("dtype") SHAPE) NODE("init_w", "Assign", IN("w") IN("start") FLOAT("T"))
        NODE("init_a", "Assign", IN("a") IN("nothing") FLOAT("T")) NODE("value", "Identity", IN("w") FLOAT("T"))
            NODE("train", "ApplyMomentum", IN("w") IN("a") IN("rate") IN("sum") IN("momentum") FLOAT("T"));

enum { ELEMENTS = 40 * 33, STEPS = 4 };

// Sets `out` to the variable after some steps. Returns how many operations a step has.
static uint32_t train(const char *text, bool no_rewrites, float *out) {
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor gradient = {0}, value = {0};
  assert_ok(tfc_graph_parse(tfc_str_from(text), "updates", NULL, &g));
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(
      tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites}, &session));
  uint32_t init[2] = {tfc_graph_find(g, TFC_STR("init_w")), tfc_graph_find(g, TFC_STR("init_a"))};
  uint32_t update = tfc_graph_find(g, TFC_STR("train"));
  struct tfc_output feed = {tfc_graph_find(g, TFC_STR("g")), 0}, fetch = {tfc_graph_find(g, TFC_STR("value")), 0};
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = init, .target_count = 2}, NULL, NULL, NULL));
  struct tfc_run_spec spec = {.feeds = &feed, .feed_count = 1, .targets = &update, .target_count = 1};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(40, 33), &gradient));
  for (int step = 0; step < STEPS; step++) {
    for (int i = 0; i < ELEMENTS; i++) ((float *)gradient.data)[i] = (float)(i % 19 - 9) * 0.37f / (float)(step + 1);
    assert_ok(tfc_plan_run(plan, &gradient, NULL, NULL));
  }
  uint32_t count = tfc_plan_info(plan)->op_count;
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.fetches = &fetch, .fetch_count = 1}, NULL, &value, NULL));
  assert_int_equal(value.size, ELEMENTS * sizeof(float));
  memcpy(out, value.data, value.size);
  tfc_tensor_release(&value);
  tfc_tensor_release(&gradient);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  return count;
}

static void decayed_momentum(void **state) {
  (void)state;
  static float fused[ELEMENTS], apart[ELEMENTS];
  const char *texts[] = {resources, references};
  for (int i = 0; i < 2; i++) {
    assert_true(train(texts[i], true, apart) >= 3);
    assert_int_equal(train(texts[i], false, fused), 1); // the product and the sum run with the update
    assert_memory_equal(fused, apart, sizeof fused);
    assert_true(fused[1] != 0.5f);
  }
}

// --- Chains that must not be fused with an update -------------------------------------------------------------------
#define SMALL ATTR("shape", "shape { dim { size: 96 } }")
#define WHOLE(name, value)                                                                                             \
  NODE(name, "Const",                                                                                                  \
       ATTR("dtype", "type: DT_INT32")                                                                                 \
           ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: " value " }"))
#define BASE                                                                                                           \
  NODE("g", "Placeholder", FLOAT("dtype") SMALL)                                                                       \
  NUMBER("rate", "0.1")                                                                                                \
  NUMBER("scale", "0.3")                                                                                               \
  NUMBER("half", "0.5")                                                                                                \
  WHOLE("dims", "96")                                                                                                  \
  NODE("start", "Fill", IN("dims") IN("half") FLOAT("T") ATTR("index_type", "type: DT_INT32"))                         \
  NODE("w", "VarHandleOp", FLOAT("dtype") SMALL ATTR("shared_name", "s: \"w\""))                                       \
  NODE("a", "VarHandleOp", FLOAT("dtype") SMALL ATTR("shared_name", "s: \"a\""))                                       \
  NODE("init_w", "AssignVariableOp", IN("w") IN("start") FLOAT("dtype"))                                               \
  NODE("init_a", "AssignVariableOp", IN("a") IN("start") FLOAT("dtype"))                                               \
  NODE("value", "ReadVariableOp", IN("w") FLOAT("dtype"))                                                              \
  NODE("other", "ReadVariableOp", IN("a") FLOAT("dtype"))

// Every element of the gradient reads the same element of the variable. All of them must read its old value, even those
// that are computed after that element was updated.
static const char one_element[] = BASE WHOLE("seven", "7") WHOLE("length", "1")
    NODE("part", "Slice", IN("value") IN("seven") IN("length") FLOAT("T") ATTR("Index", "type: DT_INT32"))
        NODE("decay", "Mul", IN("part") IN("scale") FLOAT("T")) NODE("sum", "AddV2", IN("g") IN("decay") FLOAT("T"))
            NODE("train", "ResourceApplyGradientDescent", IN("w") IN("rate") IN("sum") FLOAT("T"));

// The gradient reads another variable before that one is updated, and this update must run after the other update.
static const char in_between[] =
    BASE NODE("decay", "Mul", IN("other") IN("scale") FLOAT("T")) NODE("sum", "AddV2", IN("g") IN("decay") FLOAT("T"))
        NODE("bump", "AssignAddVariableOp", IN("a") IN("start") IN("^sum") FLOAT("dtype"))
            NODE("train", "ResourceApplyGradientDescent", IN("w") IN("rate") IN("sum") IN("^bump") FLOAT("T"));

// The same, but the learning rate is the other variable's value after its update. An update fused with its gradient
// would have to run both before and after the other update, so it must not be fused.
static const char around[] = BASE NUMBER("fifth", "0.2")
    NODE("axis", "Const",
         ATTR("dtype", "type: DT_INT32") ATTR("value", "tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 }"))
        NODE("decay", "Mul", IN("other") IN("scale") FLOAT("T")) NODE("sum", "AddV2", IN("g") IN("decay") FLOAT("T"))
            NODE("bump", "AssignAddVariableOp", IN("a") IN("start") IN("^sum") FLOAT("dtype"))
                NODE("later", "ReadVariableOp", IN("a") IN("^bump") FLOAT("dtype"))
                    NODE("top", "Max", IN("later") IN("axis") FLOAT("T") ATTR("Tidx", "type: DT_INT32"))
                        NODE("speed", "Mul", IN("top") IN("fifth") FLOAT("T"))
                            NODE("train", "ResourceApplyGradientDescent", IN("w") IN("speed") IN("sum") FLOAT("T"));

static void train_small(const char *text, bool no_rewrites, float *w, float *a) {
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor gradient = {0}, values[2] = {{0}};
  assert_ok(tfc_graph_parse(tfc_str_from(text), "updates", NULL, &g));
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(
      tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites}, &session));
  uint32_t init[2] = {tfc_graph_find(g, TFC_STR("init_w")), tfc_graph_find(g, TFC_STR("init_a"))};
  uint32_t update = tfc_graph_find(g, TFC_STR("train"));
  struct tfc_output feed = {tfc_graph_find(g, TFC_STR("g")), 0};
  struct tfc_output fetches[2] = {{tfc_graph_find(g, TFC_STR("value")), 0}, {tfc_graph_find(g, TFC_STR("other")), 0}};
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = init, .target_count = 2}, NULL, NULL, NULL));
  struct tfc_run_spec spec = {.feeds = &feed, .feed_count = 1, .targets = &update, .target_count = 1};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(96), &gradient));
  for (int step = 0; step < STEPS; step++) {
    for (int i = 0; i < 96; i++) ((float *)gradient.data)[i] = (float)(i % 19 - 9) * 0.37f / (float)(step + 1);
    assert_ok(tfc_plan_run(plan, &gradient, NULL, NULL));
  }
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.fetches = fetches, .fetch_count = 2}, NULL, values, NULL));
  memcpy(w, values[0].data, 96 * sizeof *w);
  memcpy(a, values[1].data, 96 * sizeof *a);
  for (int i = 0; i < 2; i++) tfc_tensor_release(&values[i]);
  tfc_tensor_release(&gradient);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
}

static void what_keeps_a_chain_apart(void **state) {
  (void)state;
  for (int k = 0; k < 3; k++) {
    float w[2][96], a[2][96], expected[96], before[96], other = 0.5f;
    for (int i = 0; i < 96; i++) expected[i] = 0.5f;
    for (int step = 0; step < STEPS; step++) { // computes the updates again, without tfc
      memcpy(before, expected, sizeof before);
      for (int i = 0; i < 96; i++) {
        float gradient = (float)(i % 19 - 9) * 0.37f / (float)(step + 1);
        expected[i] = before[i] - (k == 2 ? 0.2f * (other + 0.5f) : 0.1f) * (gradient + (k ? other : before[7]) * 0.3f);
      }
      if (k) other += 0.5f;
    }
    for (int plain = 0; plain < 2; plain++)
      train_small(k == 2 ? around : k ? in_between : one_element, plain, w[plain], a[plain]);
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    assert_memory_equal(a[0], a[1], sizeof a[0]);
    for (int i = 0; i < 96; i++) {
      if (!(fabsf(w[0][i] - expected[i]) < 1e-5f))
        fail_msg("[%d] is %g, not %g", i, (double)w[0][i], (double)expected[i]);
      assert_true(fabsf(a[0][i] - other) < 1e-5f);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(decayed_momentum), cmocka_unit_test(what_keeps_a_chain_apart)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
