// Tests steps that wait for each other in queues, barriers and accumulators; steps whose waiting ends by an error
// elsewhere, a deadline, a cancellation or a deadlock; and steps on several threads that share variables. They run on
// one device, on several, and on emulated ones.
#include "tests/common/test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "tests/common/scalar.h"

// --- The graph ---------------------------------------------------------------------------------------------------
#define IN(name) " input: \"" name "\""
#define NODE(name, op, ...) "node { name: \"" name "\" op: \"" op "\"" __VA_ARGS__ " }\n"
#define ATTR(key, value) " attr { key: \"" key "\" value { " value " } }"
#define FLOATS(key) ATTR(key, "list { type: DT_FLOAT }")
#define FLOAT(key) ATTR(key, "type: DT_FLOAT")
#define INT(key) ATTR(key, "type: DT_INT32")
#define CONST(name, dtype, value)                                                                                      \
  NODE(name, "Const",                                                                                                  \
       ATTR("dtype", "type: " dtype) ATTR("value", "tensor { dtype: " dtype " tensor_shape {} " value " }"))
#define QUEUE(name, capacity)                                                                                          \
  NODE(name, "FIFOQueueV2",                                                                                            \
       FLOATS("component_types") ATTR("shapes", "list { shape {} }") ATTR("capacity", "i: " capacity))
#define VARIABLE(name, shape)                                                                                          \
  NODE(name, "VarHandleOp", FLOAT("dtype") ATTR("shape", "shape { " shape " }") ATTR("shared_name", "s: \"" name "\""))
static const char text[] = NODE("x", "Placeholder", FLOAT("dtype") ATTR("shape", "shape {}"))
    CONST("zero", "DT_INT32", "int_val: 0") CONST("two", "DT_INT32", "int_val: 2")
        CONST("three", "DT_INT32", "int_val: 3") CONST("many", "DT_INT32", "int_val: 4000")
            CONST("one", "DT_FLOAT", "float_val: 1") CONST("step", "DT_INT64", "int64_val: 1000000")
    // Queue q holds three elements. Queue r holds one, and is filled with x and with elements of q.
    QUEUE("q", "3") QUEUE("r", "1") NODE("put", "QueueEnqueueV2", IN("q") IN("x") FLOATS("Tcomponents"))
        NODE("take", "QueueDequeueV2", IN("q") FLOATS("component_types")) NODE("after", "Neg", IN("take") FLOAT("T"))
            NODE("take_two", "QueueDequeueManyV2", IN("q") IN("two") FLOATS("component_types"))
                NODE("close", "QueueCloseV2", IN("q"))
                    NODE("cancel", "QueueCloseV2", IN("q") ATTR("cancel_pending_enqueues", "b: true"))
                        NODE("size", "QueueSizeV2", IN("q"))
                            NODE("small_put", "QueueEnqueueV2", IN("r") IN("x") FLOATS("Tcomponents"))
                                NODE("small_take", "QueueDequeueV2", IN("r") FLOATS("component_types"))
                                    NODE("relay", "QueueEnqueueV2", IN("r") IN("take") FLOATS("Tcomponents"))
    // An operation that fails while another one waits in a queue.
    NODE("divide", "FloorDiv", IN("two") IN("zero") INT("T"))
        NODE("fails", "Cast", IN("divide") INT("SrcT") FLOAT("DstT"))
            NODE("wrong", "Add", IN("take") IN("fails") FLOAT("T"))
    // A counter and a long vector, read and updated.
    VARIABLE("counter", "") VARIABLE("weight", "dim { size: 4000 }") NODE("dims", "ExpandDims",
                                                                          IN("many") IN("zero") INT("T") INT("Tdim"))
        NODE("ones", "Fill", IN("dims") IN("one") FLOAT("T") INT("index_type"))
            NODE("zeros", "ZerosLike", IN("ones") FLOAT("T")) NODE("nothing", "Sub", IN("one") IN("one") FLOAT("T"))
                NODE("init_counter", "AssignVariableOp", IN("counter") IN("nothing") FLOAT("dtype"))
                    NODE("init_weight", "AssignVariableOp", IN("weight") IN("zeros") FLOAT("dtype")) NODE(
                        "counted", "ReadVariableOp", IN("counter") FLOAT("dtype"))
                        NODE("count", "AssignAddVariableOp", IN("counter") IN("x") FLOAT("dtype")) NODE(
                            "weights", "ReadVariableOp", IN("weight") FLOAT("dtype"))
                            NODE("train", "AssignAddVariableOp", IN("weight") IN("ones") FLOAT("dtype"))
                                NODE("axis", "Const",
                                     INT("dtype")
                                         ATTR("value",
                                              "tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 }"))
                                    NODE("most", "Max", IN("weights") IN("axis") FLOAT("T") INT("Tidx"))
                                        NODE("least", "Min", IN("weights") IN("axis") FLOAT("T") INT("Tidx"))
                                            NODE("put_most", "QueueEnqueueV2", IN("q") IN("most") FLOATS("Tcomponents"))
    // An accumulator and a barrier.
    NODE("accumulator", "ConditionalAccumulator", FLOAT("dtype") ATTR("shape", "shape {}"))
        NODE("apply", "AccumulatorApplyGradient", IN("accumulator") IN("step") IN("x") FLOAT("dtype"))
            NODE("mean", "AccumulatorTakeGradient", IN("accumulator") IN("three") FLOAT("dtype"))
                NODE("barrier", "Barrier", FLOATS("component_types") ATTR("shapes", "list { shape {} }"))
                    NODE("row", "ExpandDims", IN("x") IN("zero") FLOAT("T") INT("Tdim"))
                        NODE("keys", "AsString", IN("row") FLOAT("T"))
                            NODE("insert", "BarrierInsertMany",
                                 IN("barrier") IN("keys") IN("row") FLOAT("T") ATTR("component_index", "i: 0"))
                                NODE("taken", "BarrierTakeMany", IN("barrier") IN("two") FLOATS("component_types"));

static struct tfc_graph *graph;
static struct tfc_device_set set;
static struct tfc_session *session;
static uint16_t *placement; // NULL: all nodes are on the first device

static void open_session(const char *devices, uint32_t callers, bool spread) {
  static uint16_t on[256];
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &set, .callers = callers}, &session));
  assert_true(graph->node_count < 256);
  // Nodes that share a resource stay on one device; stateless nodes go to the others.
  for (uint32_t i = 0; i < graph->node_count; i++)
    on[i] = (uint16_t)(graph->nodes[i].def->flags & (TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_VARIABLE | TFC_OP_HOST)
                           ? 0
                           : i % set.count);
  placement = spread ? on : NULL;
}
static void close_session(void) {
  tfc_session_free(session);
  for (uint32_t d = 0; d < set.count; d++) assert_true(set.devices[d]->driver->in_use(set.devices[d]) == 0);
  tfc_devices_close(&set);
}

// Feeds x and runs `name` as a target, or fetches "name:0"; *out (optional): the first float of the fetched value.
static tfc_status run(const char *name, float value, float *out, const struct tfc_run_options *options) {
  struct tfc_tensor feed = {0}, got = {0};
  struct tfc_output input = {tfc_graph_find(graph, TFC_STR("x")), 0}, fetch = {0};
  uint32_t target = 0;
  bool fetches = strchr(name, ':') != NULL;
  if (fetches)
    TFC_RETURN_IF_ERROR(tfc_graph_parse_output(graph, tfc_str_from(name), &fetch));
  else
    target = tfc_graph_find(graph, tfc_str_from(name));
  assert_true(target != TFC_NONE);
  TFC_RETURN_IF_ERROR(scalar_f32(value, &feed));
  struct tfc_run_spec spec = {.feeds = &input,
                              .feed_count = 1,
                              .fetches = &fetch,
                              .fetch_count = fetches,
                              .targets = &target,
                              .target_count = !fetches,
                              .placement = placement};
  tfc_status s = tfc_session_run(session, &spec, &feed, &got, options);
  if (!s && out && fetches) *out = got.dtype == TFC_INT32 ? (float)*(int32_t *)got.data : *(float *)got.data;
  tfc_tensor_release(&got);
  tfc_tensor_release(&feed);
  return s;
}

// --- Threads -----------------------------------------------------------------------------------------------------
struct worker {
  const char *name;
  float value, sum;
  int times;
  tfc_status status;
  const struct tfc_run_options *options;
};
static uint32_t callers; // how many threads still call the session; 0: the test does not count them
static pthread_mutex_t callers_lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *arg) {
  struct worker *w = arg;
  for (int i = 0; i < w->times && !w->status; i++) {
    float got = 0;
    w->status = run(w->name, w->value, &got, w->options);
    w->sum += got;
  }
  // Counting and reporting happen under one lock: if two threads end at once, the lower count is reported last.
  pthread_mutex_lock(&callers_lock);
  if (callers) tfc_session_set_callers(session, --callers);
  pthread_mutex_unlock(&callers_lock);
  return NULL;
}
static void run_workers(struct worker *w, int count) {
  pthread_t threads[8];
  for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, work, &w[i]);
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static void producers_and_consumers(const char *devices, bool spread) {
  enum { N = 60 };
  open_session(devices, 0, spread);
  struct worker w[] = {{"put", 1, .times = N}, {"put", 2, .times = N},       {"take:0", .times = N / 2},
                       {"relay", .times = N},  {"small_take:0", .times = N}, {"after:0", .times = N / 2}};
  run_workers(w, 6);
  for (int i = 0; i < 6; i++) assert_ok(w[i].status);
  assert_true(w[2].sum + w[4].sum - w[5].sum == 3 * N); // each element that was enqueued was dequeued once
  float left;
  assert_ok(run("size:0", 0, &left, NULL));
  assert_true(left == 0);
  for (int round = 0; round < 15; round++) { // three gradients make a mean, two keys make a pair
    struct worker v[] = {{"apply", 3, .times = 1}, {"apply", 6, .times = 1},  {"apply", 9, .times = 1},
                         {"mean:0", .times = 1},   {"insert", 3, .times = 1}, {"insert", 4, .times = 1},
                         {"taken:2", .times = 1}};
    run_workers(v, 7);
    for (int i = 0; i < 7; i++) assert_ok(v[i].status);
    assert_true(v[3].sum == 6);
    assert_true(v[6].sum == 3 || v[6].sum == 4); // of the two keys, the one that came first
  }
  close_session();
}

static void closing_ends_waits(const char *devices, bool spread) {
  open_session(devices, 0, spread);
  struct worker w[] = {
      {"take:0", .times = 1}, {"take_two:0", .times = 1}, {"relay", .times = 1}, {"close", .times = 1}};
  run_workers(w, 4);
  for (int i = 0; i < 3; i++) assert_fails(w[i].status, TFC_OUT_OF_RANGE, "is closed and has insufficient elements");
  assert_ok(w[3].status);
  assert_fails(run("put", 1, NULL, NULL), TFC_CANCELLED, "is closed");
  close_session();
  open_session(devices, 0, spread);
  for (int i = 0; i < 3; i++) assert_ok(run("put", 1, NULL, NULL));
  struct worker v[] = {{"put", 7, .times = 1}, {"put", 8, .times = 1}, {"cancel", .times = 1}};
  run_workers(v, 3); // the queue is full: both wait until they are cancelled, or find it closed
  assert_ok(v[2].status);
  for (int i = 0; i < 2; i++) assert_fails(v[i].status, TFC_CANCELLED, "put");
  float got;
  for (int i = 0; i < 3; i++) {
    assert_ok(run("take:0", 0, &got, NULL)); // elements that were in the queue when it was closed can still be taken
    assert_true(got == 1);
  }
  close_session();
}

// --- Steps that end early ----------------------------------------------------------------------------------------
static void errors_end_the_step(const char *devices, bool spread) {
  open_session(devices, 0, spread);
  for (int i = 0; i < 20; i++)
    assert_fails(run("wrong:0", 0, NULL, NULL), TFC_INVALID_ARGUMENT, "node 'divide' (FloorDiv) on ");
  assert_fails(run("wrong:0", 0, NULL, NULL), TFC_INVALID_ARGUMENT, "inputs (int32[], int32[])");
  float got; // the dequeues of those steps ended with them, so they cannot take the next element
  assert_ok(run("put", 5, NULL, NULL));
  assert_ok(run("take:0", 0, &got, NULL));
  assert_true(got == 5);
  struct tfc_run_options soon = {.deadline_ns = 300000000};
  assert_fails(run("after:0", 0, NULL, &soon), TFC_DEADLINE_EXCEEDED, "'take' (QueueDequeueV2)");
  assert_fails(run("take_two:0", 0, NULL, &soon), TFC_DEADLINE_EXCEEDED, "waits for FIFOQueue 'q' (0 elements");
  assert_fails(run("mean:0", 0, NULL, &soon), TFC_DEADLINE_EXCEEDED, "accumulator 'accumulator'");
  assert_fails(run("taken:2", 0, NULL, &soon), TFC_DEADLINE_EXCEEDED, "Barrier 'barrier'");
  assert_ok(run("put", 6, NULL, NULL));
  assert_ok(run("after:0", 0, &got, NULL));
  assert_true(got == -6);
  // A step that waits is cancelled from outside.
  _Atomic bool cancel = false;
  struct tfc_run_options options = {.cancel = &cancel};
  struct worker w = {"take_two:0", .times = 1, .options = &options};
  pthread_t thread;
  pthread_create(&thread, NULL, work, &w);
  assert_ok(run("put", 1, NULL, NULL));
  atomic_store(&cancel, true);
  pthread_join(thread, NULL);
  assert_fails(w.status, TFC_CANCELLED, "cancelled");
  assert_ok(run("take:0", 0, &got, NULL)); // the element that the cancelled step had taken was put back
  assert_true(got == 1);
  close_session();
}

static void deadlocks_are_told(const char *devices, bool spread) {
  open_session(devices, 1, spread);
  float got;
  for (int i = 0; i < 3; i++) {
    assert_fails(run("after:0", 0, NULL, NULL), TFC_ABORTED, "'take' (QueueDequeueV2) on ");
    assert_fails(run("after:0", 0, NULL, NULL), TFC_ABORTED, "'after' waits for 'take'");
    assert_fails(run("relay", 0, NULL, NULL), TFC_ABORTED, "waits for FIFOQueue 'q' (0 elements, capacity 3)");
    assert_fails(run("mean:0", 0, NULL, NULL), TFC_ABORTED, "0 gradients");
    assert_fails(run("taken:2", 0, NULL, NULL), TFC_ABORTED, "0 elements complete");
    assert_ok(run("put", 4, NULL, NULL)); // the session can still be used
    assert_fails(run("take_two:0", 0, NULL, NULL), TFC_ABORTED, "deadlock");
    assert_ok(run("take:0", 0, &got, NULL));
    assert_true(got == 4);
  }
  for (int i = 0; i < 3; i++) assert_ok(run("put", 4, NULL, NULL));
  assert_fails(run("put", 4, NULL, NULL), TFC_ABORTED, "3 elements, capacity 3");
  close_session();
  // Two callers wait in different queues, and a third one puts one element. While any step runs, it may serve a waiting
  // one, so no deadlock is reported; it is reported when all remaining steps wait.
  open_session(devices, 3, spread);
  struct worker w[] = {{"take:0", .times = 1}, {"small_take:0", .times = 1}, {"put", 9, .times = 1}};
  callers = 3;
  run_workers(w, 3); // one of the two gets the element; then only the other one remains, and waits
  callers = 0;
  assert_ok(w[2].status);
  bool first = !w[0].status;
  assert_fails(w[first].status, TFC_ABORTED, first ? "waits for FIFOQueue 'r'" : "waits for FIFOQueue 'q'");
  assert_ok(w[!first].status);
  close_session();
}

// --- Variables ---------------------------------------------------------------------------------------------------
static void shared_variables(const char *devices, bool spread) {
  enum { N = 40 };
  open_session(devices, 0, spread);
  assert_ok(run("init_counter", 0, NULL, NULL));
  assert_ok(run("init_weight", 0, NULL, NULL));
  struct worker w[] = {{"count", 1, .times = N}, {"count", 2, .times = N}, {"train", .times = N},
                       {"train", .times = N},    {"most:0", .times = N},   {"counted:0", .times = N},
                       {"put_most", .times = N}, {"take:0", .times = N}};
  run_workers(w, 8);
  for (int i = 0; i < 8; i++) assert_ok(w[i].status);
  float got, least;
  assert_ok(run("counted:0", 0, &got, NULL));
  assert_true(got == 3 * N); // no update was lost
  assert_ok(run("most:0", 0, &got, NULL));
  assert_ok(run("least:0", 0, &least, NULL));
  assert_true(got == 2 * N && least == 2 * N);
  close_session();
}

#define ON_ALL(test)                                                                                                   \
  static void test##_one(void **state) {                                                                               \
    (void)state, test("cpu:0", false);                                                                                 \
  }                                                                                                                    \
  static void test##_several(void **state) {                                                                           \
    (void)state, test("cpu:0-1", true);                                                                                \
  }                                                                                                                    \
  static void test##_emulated(void **state) {                                                                          \
    (void)state, test("emu:0-1", true);                                                                                \
  }
ON_ALL(producers_and_consumers)
ON_ALL(closing_ends_waits)
ON_ALL(errors_end_the_step)
ON_ALL(deadlocks_are_told)
ON_ALL(shared_variables)
#define UNITS(test) cmocka_unit_test(test##_one), cmocka_unit_test(test##_several), cmocka_unit_test(test##_emulated)

int main(void) {
  const struct CMUnitTest tests[] = {UNITS(producers_and_consumers), UNITS(closing_ends_waits),
                                     UNITS(errors_end_the_step), UNITS(deadlocks_are_told), UNITS(shared_variables)};
  tfc_status s = tfc_graph_parse((tfc_str){text, sizeof text - 1}, "steps", NULL, &graph);
  if (s) {
    fprintf(stderr, "%s\n", tfc_status_message(s));
    return 1;
  }
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  tfc_graph_release(graph);
  return failed;
}
