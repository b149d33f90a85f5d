// Tests that a device's limit of memory counts what lists, queues, TensorArrays and strings hold: a step that would go
// beyond it ends with an error that names the node and the limit, and what was given back can be had again.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/str.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"

enum { LIMIT = 16 << 20, PIECES = 24 }; // a piece is 1 MiB

#define ATTR(key, value) " attr { key: '" key "' value { " value " } }"
#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "'" inputs attrs " }\n"
#define IN(name) " input: '" name "'"
#define FLOAT(key) ATTR(key, "type: DT_FLOAT")
#define NUMBER(name, value)                                                                                            \
  NODE(name, "Const", "",                                                                                              \
       ATTR("dtype", "type: DT_INT32") ATTR("value", "tensor { dtype: DT_INT32 tensor_shape {} int_val: " value " }"))

// A piece is a sum with a number that is fed, so that each is a tensor of its own.
static const char base[] = NODE("x", "Placeholder", "", FLOAT("dtype") ATTR("shape", "shape {}"))
    NODE("dims", "Const", "",
         ATTR("dtype", "type: DT_INT32")
             ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 262144 }"))
        NODE("piece", "Fill", IN("dims") IN("x"), FLOAT("T") ATTR("index_type", "type: DT_INT32")) NUMBER("many", "64");

struct rig {
  struct tfc_graph *graph;
  struct tfc_device_set set;
  struct tfc_session *session;
};
static void rig_make(struct rig *r, const char *text) {
  *r = (struct rig){0};
  assert_ok(tfc_graph_parse(tfc_str_from(text), "held memory", NULL, &r->graph));
  assert_ok(tfc_devices_open("cpu:0", &(struct tfc_memory_limit){"cpu:*", LIMIT}, 1, &r->set));
  assert_ok(tfc_session_create(r->graph, &(struct tfc_session_options){.devices = &r->set}, &r->session));
}
static void rig_free(struct rig *r) {
  tfc_session_free(r->session);
  tfc_devices_close(&r->set);
  tfc_graph_release(r->graph);
}
static tfc_status run(struct rig *r, const char *target, const char *fetch) {
  const uint32_t node = tfc_graph_find(r->graph, tfc_str_from(target ? target : fetch));
  const struct tfc_output x = {tfc_graph_find(r->graph, TFC_STR("x")), 0}, y = {node, 0};
  float number = 0.5f;
  struct tfc_tensor value = {TFC_FLOAT, TFC_SHAPE_SCALAR, &number, sizeof number, NULL}, got = {0};
  const struct tfc_run_spec spec = {.feeds = &x,
                                    .feed_count = 1,
                                    .fetches = &y,
                                    .fetch_count = fetch != NULL,
                                    .targets = &node,
                                    .target_count = target != NULL};
  tfc_status s = tfc_session_run(r->session, &spec, &value, &got, NULL);
  tfc_tensor_release(&got);
  return s;
}
// Expects that the step does not fit, and that the error contains `node` and `limit`.
static void refused(tfc_status s, const char *node, const char *limit) {
  if (!s) fail_msg("it ran beyond its limit");
  if (tfc_status_code(s) != TFC_RESOURCE_EXHAUSTED || !strstr(tfc_status_message(s), node) ||
      !strstr(tfc_status_message(s), limit))
    fail_msg("no '%s' or '%s' in: %s: %s", node, limit, tfc_code_name(tfc_status_code(s)), tfc_status_message(s));
  tfc_status_free(s);
}

// A queue holds pieces from step to step. What is taken out makes room.
static void test_queues(void **state) {
  (void)state;
  struct rig r;
  char text[4000];
  snprintf(text, sizeof text, "%s%s", base,
           NODE("q", "FIFOQueueV2", "",
                ATTR("component_types", "list { type: DT_FLOAT }")
                    ATTR("shapes", "list { shape { dim { size: 262144 } } }") ATTR("capacity", "i: 100"))
               NODE("put", "QueueEnqueueV2", IN("q") IN("piece"), ATTR("Tcomponents", "list { type: DT_FLOAT }"))
                   NODE("take", "QueueDequeueV2", IN("q"), ATTR("component_types", "list { type: DT_FLOAT }")));
  rig_make(&r, text);
  uint32_t held = 0;
  tfc_status s = NULL;
  while (held < PIECES && !(s = run(&r, "put", NULL))) held++;
  assert_in_range(held, 12, 16); // 16 fit, less the memory that the step itself needs
  refused(s, "node '", "limit 16.8 MB");
  for (int k = 0; k < 4; k++) assert_ok(run(&r, NULL, "take"));
  for (int k = 0; k < 3; k++) assert_ok(run(&r, "put", NULL));
  rig_free(&r);
}

// Lists: each push adds a piece of its own to what the step holds.
static void test_lists(void **state) {
  (void)state;
  for (int pieces = 5; pieces <= PIECES; pieces += PIECES - 5) {
    struct rig r;
    struct tfc_text text = {0};
    tfc_text_printf(&text, "%s%s", base,
                    NODE("list0", "EmptyTensorList", IN("dims") IN("many"),
                         ATTR("element_dtype", "type: DT_FLOAT") ATTR("shape_type", "type: DT_INT32")));
    for (int k = 1; k <= pieces; k++)
      tfc_text_printf(&text,
                      "node { name: 'list%d' op: 'TensorListPushBack' input: 'list%d' input: 'piece' attr { key: "
                      "'element_dtype' value { type: DT_FLOAT } } }\n",
                      k, k - 1);
    tfc_text_printf(&text, "node { name: 'size' op: 'TensorListLength' input: 'list%d' }\n", pieces);
    rig_make(&r, text.data);
    if (pieces == 5)
      assert_ok(run(&r, NULL, "size"));
    else
      refused(run(&r, NULL, "size"), "node 'list", "limit 16.8 MB");
    rig_free(&r);
    tfc_text_deinit(&text);
  }
}

// Strings: twice as long each time.
static void test_strings(void **state) {
  (void)state;
  for (int times = 15; times <= 30; times += 15) {
    struct rig r;
    struct tfc_text text = {0};
    tfc_text_printf(&text, "%s%s", base,
                    NODE("s0", "Const", "",
                         ATTR("dtype", "type: DT_STRING")
                             ATTR("value", "tensor { dtype: DT_STRING tensor_shape {} string_val: 'abcdefgh' }")));
    for (int k = 1; k <= times; k++)
      tfc_text_printf(&text,
                      "node { name: 's%d' op: 'StringJoin' input: 's%d' input: 's%d' attr { key: 'N' value { i: 2 } } "
                      "}\n",
                      k, k - 1, k - 1);
    tfc_text_printf(&text, "node { name: 'length' op: 'StringLength' input: 's%d' }\n", times);
    rig_make(&r, text.data);
    if (times == 15)
      assert_ok(run(&r, NULL, "length"));
    else
      refused(run(&r, NULL, "length"), "node 's2", "limit 16.8 MB"); // 16 MiB are reached by the 21st
    rig_free(&r);
    tfc_text_deinit(&text);
  }
}

// A variable takes its memory along when it moves to another device, with its value.
static void test_variables(void **state) {
  (void)state;
  enum { BYTES = 4 << 18 };
  static const char text[] = NODE("v", "VariableV2", "",
                                  FLOAT("dtype") ATTR("shape", "shape { dim { size: 512 } dim { size: 512 } }"))
      NODE("dims", "Const", "",
           ATTR("dtype", "type: DT_INT32")
               ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 512 int_val: 512 }"))
          NODE("three", "Const", "",
               FLOAT("dtype") ATTR("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: 3 }"))
              NODE("all", "Fill", IN("dims") IN("three"), FLOAT("T") ATTR("index_type", "type: DT_INT32"))
                  NODE("init", "Assign", IN("v") IN("all"), FLOAT("T"))
                      NODE("axes", "Const", "",
                           ATTR("dtype", "type: DT_INT32")
                               ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { dim { "
                                             "size: 2 } } int_val: 0 int_val: 1 }"))
                          NODE("sum", "Sum", IN("v") IN("axes"), FLOAT("T") ATTR("Tidx", "type: DT_INT32"));
  struct rig r = {0};
  assert_ok(tfc_graph_parse(tfc_str_from(text), "moved memory", NULL, &r.graph));
  assert_ok(tfc_devices_open("emu:0-1", NULL, 0, &r.set));
  assert_ok(tfc_session_create(r.graph, &(struct tfc_session_options){.devices = &r.set}, &r.session));
  const uint32_t init = tfc_graph_find(r.graph, TFC_STR("init"));
  const struct tfc_output sum = {tfc_graph_find(r.graph, TFC_STR("sum")), 0};
  assert_ok(tfc_session_run(r.session, &(struct tfc_run_spec){.targets = &init, .target_count = 1}, NULL, NULL, NULL));
  for (uint16_t turn = 0; turn < 4; turn++) {
    uint16_t placement[16];
    for (int k = 0; k < 16; k++) placement[k] = turn % 2;
    struct tfc_tensor got = {0};
    assert_ok(tfc_session_run(r.session,
                              &(struct tfc_run_spec){.fetches = &sum, .fetch_count = 1, .placement = placement}, NULL,
                              &got, NULL));
    assert_true(*(float *)got.data == 3.0f * 512 * 512);
    tfc_tensor_release(&got);
    for (uint16_t d = 0; d < 2; d++) {
      const uint64_t held = r.set.devices[d]->driver->in_use(r.set.devices[d]);
      if (d == turn % 2) assert_true(held >= BYTES);
      assert_true(tfc_session_variable_bytes(r.session, d) == (d == turn % 2 ? BYTES : 0));
    }
  }
  rig_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_queues), cmocka_unit_test(test_variables),
                                     cmocka_unit_test(test_lists), cmocka_unit_test(test_strings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
