// Tests queues that the queue runners of a MetaGraph fill. A step that would otherwise wait without end starts the
// runners; they end when their input ends, with an error, or with the session.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/exec/queue_threads.h"
#include "runtime/graph/import.h"
#include "runtime/pass/step.h"

// --- The graph ---------------------------------------------------------------------------------------------------
#define IN(name) " input: \"" name "\""
#define NODE(name, op, ...) "node { name: \"" name "\" op: \"" op "\"" __VA_ARGS__ " }\n"
#define ATTR(key, value) " attr { key: \"" key "\" value { " value " } }"
#define TYPE(key, type_) ATTR(key, "type: " type_)
#define TYPES(key, type_) ATTR(key, "list { type: " type_ " }")
#define SCALAR(name, dtype, value)                                                                                     \
  NODE(name, "Const", TYPE("dtype", dtype) ATTR("value", "tensor { dtype: " dtype " tensor_shape {} " value " }"))
#define QUEUE(name, dtype, capacity)                                                                                   \
  NODE(name, "FIFOQueueV2",                                                                                            \
       TYPES("component_types", dtype) ATTR("shapes", "list { shape {} }") ATTR("capacity", "i: " capacity))
#define COUNTER(name)                                                                                                  \
  NODE(name, "VarHandleOp", TYPE("dtype", "DT_INT64") ATTR("shape", "shape {}") ATTR("shared_name", "s: '" name "'"))  \
  NODE(name "/Assign", "AssignVariableOp", IN(name) IN("zero") TYPE("dtype", "DT_INT64"))

// Numbers up to 5 go into `numbers`, and their doubles into `doubles`; the runner of `broken` fails, the runner of
// `endless` never ends; `empty` has no runner.
static const char nodes[] = SCALAR("zero", "DT_INT64", "int64_val: 0") SCALAR("one", "DT_INT64", "int64_val: 1")
    COUNTER("count") COUNTER("other") QUEUE("numbers", "DT_INT64", "2") QUEUE("doubles", "DT_INT64", "2")
        QUEUE("broken", "DT_INT64", "2") QUEUE("endless", "DT_INT64", "3") QUEUE("empty", "DT_INT64", "2")
            NODE("next", "ResourceCountUpTo", IN("count") ATTR("limit", "i: 5") TYPE("T", "DT_INT64"))
                NODE("put_number", "QueueEnqueueV2", IN("numbers") IN("next") TYPES("Tcomponents", "DT_INT64"))
                    NODE("number", "QueueDequeueV2", IN("numbers") TYPES("component_types", "DT_INT64"))
                        NODE("double", "Add", IN("number") IN("number") TYPE("T", "DT_INT64")) NODE(
                            "put_double", "QueueEnqueueV2", IN("doubles") IN("double") TYPES("Tcomponents", "DT_INT64"))
                            NODE("take", "QueueDequeueV2", IN("doubles") TYPES("component_types", "DT_INT64"))
                                NODE("wrong", "FloorDiv", IN("one") IN("zero") TYPE("T", "DT_INT64"))
                                    NODE("put_wrong", "QueueEnqueueV2",
                                         IN("broken") IN("wrong") TYPES("Tcomponents", "DT_INT64"))
                                        NODE("take_wrong", "QueueDequeueV2",
                                             IN("broken") TYPES("component_types", "DT_INT64"))
                                            NODE("put_endless", "QueueEnqueueV2",
                                                 IN("endless") IN("one") TYPES("Tcomponents", "DT_INT64"))
                                                NODE("take_endless", "QueueDequeueV2",
                                                     IN("endless") TYPES("component_types", "DT_INT64"))
                                                    NODE("take_empty", "QueueDequeueV2",
                                                         IN("empty") TYPES("component_types", "DT_INT64"))
                                                        NODE("train", "AssignAddVariableOp",
                                                             IN("other") IN("take") TYPE("dtype", "DT_INT64"))
#define CLOSE(queue)                                                                                                   \
  NODE("close_" queue, "QueueCloseV2", IN(queue))                                                                      \
  NODE("cancel_" queue, "QueueCloseV2", IN(queue) ATTR("cancel_pending_enqueues", "b: true"))
                                                            CLOSE("numbers") CLOSE("doubles") CLOSE("broken")
                                                                CLOSE("endless");

// Makes a QueueRunnerDef in the wire format: field, length, name. The enqueue operation is repeated once per thread.
static void add_runner(char *out, size_t size, const char *queue, const char *enqueue, int threads) {
  char close[32], cancel[32];
  size_t used = strlen(out);
  snprintf(close, sizeof close, "close_%s", queue);
  snprintf(cancel, sizeof cancel, "cancel_%s", queue);
  used += (size_t)snprintf(out + used, size - used, "value: \"\\012\\%03o%s", (unsigned)strlen(queue), queue);
  for (int i = 0; i < threads; i++)
    used += (size_t)snprintf(out + used, size - used, "\\022\\%03o%s", (unsigned)strlen(enqueue), enqueue);
  snprintf(out + used, size - used, "\\032\\%03o%s\\\"\\%03o%s(\\013\" ", (unsigned)strlen(close), close,
           (unsigned)strlen(cancel), cancel);
}
static struct tfc_graph *make_graph(void) {
  static char text[sizeof nodes + 4096], runners[2048];
  struct tfc_graph *g = NULL;
  runners[0] = 0;
  add_runner(runners, sizeof runners, "numbers", "put_number", 1);
  add_runner(runners, sizeof runners, "doubles", "put_double", 2);
  add_runner(runners, sizeof runners, "broken", "put_wrong", 1);
  add_runner(runners, sizeof runners, "endless", "put_endless", 3);
  snprintf(text, sizeof text,
           "meta_info_def { } graph_def { %s } collection_def { key: 'queue_runners' value { bytes_list { %s } } }",
           nodes, runners);
  assert_ok(tfc_graph_parse(tfc_str_from(text), "runners", NULL, &g));
  return g;
}

static struct tfc_graph *graph;
static struct tfc_device_set set;
static struct tfc_session *session;
static void open_session(bool fill) {
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &set));
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &set, .callers = 1}, &session));
  if (fill) assert_ok(tfc_session_fill_queues(session, NULL));
}
static void close_session(void) {
  tfc_session_free(session);
  for (uint32_t d = 0; d < set.count; d++) assert_true(set.devices[d]->driver->in_use(set.devices[d]) == 0);
  tfc_devices_close(&set);
}
static tfc_status run(const char *target) {
  uint32_t node = tfc_graph_find(graph, tfc_str_from(target));
  assert_true(node != TFC_NONE);
  return tfc_session_run(session, &(struct tfc_run_spec){.targets = &node, .target_count = 1}, NULL, NULL, NULL);
}
static tfc_status fetch(const char *name, int64_t *out) {
  struct tfc_output o;
  struct tfc_tensor got = {0};
  TFC_RETURN_IF_ERROR(tfc_graph_parse_output(graph, tfc_str_from(name), &o));
  tfc_status s = tfc_session_run(session, &(struct tfc_run_spec){.fetches = &o, .fetch_count = 1}, NULL, &got, NULL);
  if (!s) *out = *(const int64_t *)got.data;
  tfc_tensor_release(&got);
  return s;
}

// --- Tests -------------------------------------------------------------------------------------------------------
static void test_to_the_end(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    int64_t got, seen = 0;
    open_session(true);
    assert_ok(run("count/Assign"));
    for (int i = 0; i < 5; i++) {
      assert_ok(fetch("take:0", &got)); // two threads double the numbers, so the order is not known
      assert_true(got % 2 == 0 && got >= 0 && got < 10 && !(seen >> got & 1));
      seen |= 1 << got;
    }
    assert_fails(fetch("take:0", &got), TFC_OUT_OF_RANGE, "'doubles' is closed and has insufficient elements");
    close_session();
  }
}

static void test_errors(void **state) {
  (void)state;
  int64_t got;
  open_session(true);
  assert_fails(fetch("take_empty:0", &got), TFC_ABORTED, "deadlock"); // no runner fills this queue
  assert_fails(fetch("take_wrong:0", &got), TFC_INVALID_ARGUMENT, "the queue runner of 'broken': node 'wrong'");
  close_session();
  open_session(true); // a variable that the runners need was not initialised
  assert_fails(fetch("take:0", &got), TFC_FAILED_PRECONDITION, "the queue runner of 'numbers'");
  close_session();
  open_session(false); // without threads for queue runners
  assert_ok(run("count/Assign"));
  assert_fails(fetch("take:0", &got), TFC_ABORTED, "waits for FIFOQueue 'doubles'");
  close_session();
}

// Threads that wait for space in full queues end with the session. Until then, a step that waits in an empty queue gets
// an error.
static void test_endless(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    int64_t got;
    open_session(true);
    for (int i = 0; i < 10; i++) {
      assert_ok(fetch("take_endless:0", &got));
      assert_true(got == 1);
    }
    if (round % 4 == 0) assert_fails(fetch("take_empty:0", &got), TFC_ABORTED, "deadlock");
    close_session();
  }
}

// The step that is inferred from the graph has the target `train`; nodes that only queue runners run (such as
// `put_number`) are no targets. Its initialisers also set the variable that the runners use (`count`).
static void test_inferred_step(void **state) {
  (void)state;
  struct tfc_step_spec step = {0};
  assert_ok(tfc_step_infer(graph, &(struct tfc_step_request){0}, &step));
  assert_int_equal(step.target_count, 1);
  assert_true(tfc_str_is(graph->nodes[step.targets[0]].name, "train"));
  assert_int_equal(step.init_count, 2);
  tfc_step_spec_deinit(&step);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_to_the_end), cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_endless), cmocka_unit_test(test_inferred_step)};
  graph = make_graph();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  tfc_graph_release(graph);
  return failed;
}
