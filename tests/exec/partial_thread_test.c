// Tests partial runs, which are fed and fetched piece by piece while other steps run, on one device and on several.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "tests/common/scalar.h"

#define IN(name) " input: \"" name "\""
#define NODE(name, op, ...) "node { name: \"" name "\" op: \"" op "\"" __VA_ARGS__ " }\n"
#define ATTR(key, value) " attr { key: \"" key "\" value { " value " } }"
#define FLOAT(key) ATTR(key, "type: DT_FLOAT")
#define FLOATS(key) ATTR(key, "list { type: DT_FLOAT }")
#define INPUT(name) NODE(name, "Placeholder", FLOAT("dtype") ATTR("shape", "shape {}"))
static const char text[] = INPUT("x") INPUT("y") INPUT("z") NODE("a", "Square", IN("x") FLOAT("T"))
    NODE("b", "Add", IN("a") IN("y") FLOAT("T")) NODE("c", "Mul", IN("b") IN("z") FLOAT("T"))
        NODE("checked", "CheckNumerics", IN("z") FLOAT("T") ATTR("message", "s: \"not finite\"")) NODE(
            "zero", "Const", FLOAT("dtype") ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: 0 }"))
            NODE("v", "VarHandleOp", FLOAT("dtype") ATTR("shape", "shape {}") ATTR("shared_name", "s: \"v\""))
                NODE("init", "AssignVariableOp", IN("v") IN("zero") FLOAT("dtype"))
                    NODE("add", "AssignAddVariableOp", IN("v") IN("b") FLOAT("dtype"))
                        NODE("read", "ReadVariableOp", IN("v") FLOAT("dtype"))
                            NODE("q", "FIFOQueueV2", FLOATS("component_types") ATTR("shapes", "list { shape {} }"))
                                NODE("put", "QueueEnqueueV2", IN("q") IN("x") FLOATS("Tcomponents"))
                                    NODE("take", "QueueDequeueV2", IN("q") FLOATS("component_types"))
                                        NODE("sum", "Add", IN("take") IN("a") FLOAT("T"));

static struct tfc_graph *graph;
static struct tfc_device_set set;
static struct tfc_session *session;
static struct tfc_partial *partial;
static uint16_t placement[64];

static struct tfc_output output(const char *name) {
  struct tfc_output o = {tfc_graph_find(graph, tfc_str_from(name)), 0};
  assert_true(o.node != TFC_NONE);
  return o;
}
static uint32_t feeds_x = 0, feeds_y = 1, feeds_z = 2; // in the order of begin()

static void begin(const char *const *fetches, uint32_t fetch_count, const char *target) {
  struct tfc_output f[8], in[3] = {output("x"), output("y"), output("z")};
  uint32_t node = target ? output(target).node : 0;
  for (uint32_t i = 0; i < fetch_count; i++) f[i] = output(fetches[i]);
  struct tfc_run_spec spec = {.feeds = in,
                              .feed_count = 3,
                              .fetches = f,
                              .fetch_count = fetch_count,
                              .targets = &node,
                              .target_count = target != NULL,
                              .placement = placement};
  assert_ok(tfc_partial_begin(session, &spec, &partial));
}

// Feeds one input (NULL: none) and takes one fetch (-1: none).
static tfc_status go(const uint32_t *feed, float value, int fetch, float *out) {
  struct tfc_tensor t = {0}, got = {0};
  uint32_t wanted = (uint32_t)fetch;
  TFC_RETURN_IF_ERROR(scalar_f32(value, &t));
  struct tfc_partial_call call = {
      .feeds = feed, .values = &t, .feed_count = feed != NULL, .fetches = &wanted, .fetch_count = fetch >= 0};
  struct tfc_run_options options = {.deadline_ns = 200000000000};
  tfc_status s = tfc_partial_run(partial, &call, &got, &options);
  tfc_tensor_release(&t);
  if (!s && fetch >= 0) *out = *(float *)got.data;
  tfc_tensor_release(&got);
  return s;
}
static float fetched(const char *name, float x) { // runs an ordinary step
  struct tfc_output in = output("x"), o = output(name);
  struct tfc_tensor t = {0}, got = {0};
  bool target = graph->nodes[o.node].output_count == 0;
  struct tfc_run_spec spec = {.feeds = &in,
                              .feed_count = 1,
                              .fetches = &o,
                              .fetch_count = !target,
                              .targets = &o.node,
                              .target_count = target,
                              .placement = placement};
  assert_ok(scalar_f32(x, &t));
  assert_ok(tfc_session_run(session, &spec, &t, &got, NULL));
  float value = target ? 0 : *(float *)got.data;
  tfc_tensor_release(&t);
  tfc_tensor_release(&got);
  return value;
}

static void on(const char *devices) {
  static const char *const abc[] = {"a", "b", "c", "checked", "sum"};
  float got = 0;
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  for (uint32_t i = 0; i < graph->node_count; i++)
    placement[i] =
        (uint16_t)(graph->nodes[i].def->flags & (TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_VARIABLE | TFC_OP_HOST)
                       ? 0
                       : i % set.count);
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &set}, &session));
  fetched("init", 0);
  // A partial run is fed and fetched piece by piece; its target runs as soon as everything that the target needs was
  // fed.
  begin(abc, 3, "add");
  assert_ok(go(&feeds_x, 3, 0, &got));
  assert_true(got == 9 && fetched("read", 0) == 0);
  assert_fails(go(NULL, 0, 1, &got), TFC_INVALID_ARGUMENT, "'b:0' cannot be computed from what has been fed so far");
  assert_fails(go(&feeds_x, 4, 1, &got), TFC_INVALID_ARGUMENT, "'x:0' was fed before");
  assert_ok(go(&feeds_y, 1, -1, NULL));
  int64_t patience = tfc_now_ns() + 200000000000;
  while (fetched("read", 0) == 0 && tfc_now_ns() < patience)
    tfc_sleep_ns(1000000); // no fetch waits for the target, so the test polls its effect
  assert_true(fetched("read", 0) == 10);
  assert_ok(go(NULL, 0, 1, &got));
  assert_true(got == 10);
  assert_fails(go(NULL, 0, 1, &got), TFC_INVALID_ARGUMENT, "'b:0' was fetched before");
  assert_true(fetched("a", 5) == 25); // other steps can run meanwhile
  assert_ok(go(&feeds_z, 2, 2, &got));
  assert_true(got == 20);
  tfc_partial_end(partial);
  assert_true(fetched("read", 0) == 10); // the target ran once
  // An error ends the partial run in which it occurs, and no other step.
  begin(abc, 4, NULL);
  assert_ok(go(&feeds_x, 2, 0, &got));
  assert_fails(go(&feeds_z, 1.0f / 0.0f, 3, &got), TFC_INVALID_ARGUMENT, "node 'checked' (CheckNumerics)");
  assert_fails(go(&feeds_y, 1, 1, &got), TFC_FAILED_PRECONDITION, "failed before");
  tfc_partial_end(partial);
  // The dequeue of the partial run waits from the first call on. A call does not wait for fetches that it did not
  // request.
  begin(abc, 5, NULL);
  assert_ok(go(&feeds_x, 2, 0, &got));
  fetched("put", 7);
  assert_ok(go(NULL, 0, 4, &got));
  assert_true(got == 11);
  tfc_partial_end(partial);
  begin(abc, 5, NULL);
  assert_ok(go(&feeds_x, 2, 0, &got));
  tfc_partial_end(partial); // the dequeue still waits at this time
  fetched("put", 8);
  assert_true(fetched("take", 0) == 8);
  tfc_session_free(session);
  for (uint32_t d = 0; d < set.count; d++) assert_true(set.devices[d]->driver->in_use(set.devices[d]) == 0);
  tfc_devices_close(&set);
}
static void one_device(void **state) {
  (void)state, on("cpu:0");
}
static void several_devices(void **state) {
  (void)state, on("cpu:0-1");
}
static void emulated(void **state) {
  (void)state, on("emu:0-1");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_device), cmocka_unit_test(several_devices),
                                     cmocka_unit_test(emulated)};
  tfc_status s = tfc_graph_parse((tfc_str){text, sizeof text - 1}, "partial", NULL, &graph);
  if (s) {
    fprintf(stderr, "%s\n", tfc_status_message(s));
    return 1;
  }
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  tfc_graph_release(graph);
  return failed;
}
