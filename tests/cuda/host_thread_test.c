// Tensors that TensorFlow keeps in host memory although their device is a GPU, on a fake of the CUDA calls: counters of
// loops and int32 variables cause no launch, no copy and no wait. They are copied to the GPU only if a kernel there
// reads them.
#include "tests/common/test.h"

#include <string.h>

#include "profiler/collector.h"
#include "profiler/collector_gpu.h"
#include "runtime/device/cuda/device.h"
#include "runtime/exec/plan/plan_internal.h"
#include "runtime/graph/import.h"
#include "tests/common/cuda_fake.h"
#include "tests/common/random_graph_run.h"

static struct tfc_device_set set;
static struct tfc_graph *graph;
static struct tfc_session *session;

static void open(const char *devices) {
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &set}, &session));
}
static void close(void) {
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(graph);
  graph = NULL;
  assert_int_equal(tfc_cuda_fake_violations(), 0);
  tfc_cuda_fake_reset();
}

// How many copies, fills, waits and launches there were. (This driver has no GPU kernels: an operation of the GPU waits
// for its inputs and runs on the host between copies, so it is counted too.)
static uint64_t asked(void) {
  return tfc_cuda_fake_calls(TFC_CUDA_FAKE_COPY) + tfc_cuda_fake_calls(TFC_CUDA_FAKE_SET) +
         tfc_cuda_fake_calls(TFC_CUDA_FAKE_STREAM_SYNCHRONIZE) + tfc_cuda_launches();
}

// --- Loops -------------------------------------------------------------------------------------------------------
static struct tfc_output start, limit, total;

static struct tfc_output enter(struct tfc_builder *b, struct tfc_output x, bool constant) {
  const struct tfc_attr attrs[] = {tfc_attr_string("frame_name", TFC_STR("count")),
                                   tfc_attr_bool("is_constant", constant)};
  return tfc_add(b, "Enter", "", &x, 1, attrs, 2);
}

// while (x < limit) x = x + 1
static void build_loop(tfc_dtype dtype) {
  struct tfc_builder *b = NULL;
  assert_ok(tfc_builder_create(NULL, &b));
  start = tfc_add_placeholder(b, "start", dtype, &TFC_SHAPE_SCALAR);
  limit = tfc_add_placeholder(b, "limit", dtype, &TFC_SHAPE_SCALAR);
  struct tfc_output in = enter(b, start, false), most = enter(b, limit, true);
  struct tfc_output one = enter(b, tfc_add_scalar(b, dtype, 1), true);
  struct tfc_output merge = tfc_add2(b, "Merge", in, in);
  struct tfc_output go = tfc_add1(b, "LoopCond", tfc_add2(b, "Less", merge, most));
  struct tfc_output sw = tfc_add2(b, "Switch", merge, go);
  total = tfc_add1(b, "Exit", sw);
  struct tfc_output next = tfc_add2(b, "AddV2", (struct tfc_output){sw.node, 1}, one);
  tfc_builder_set_input(b, merge.node, 1, tfc_add1(b, "NextIteration", next));
  assert_ok(tfc_builder_finish(b, &graph));
  tfc_builder_free(b);
}

// Runs a step with n iterations, and returns how many of the calls that `asked` counts it makes.
static uint64_t count_to(struct tfc_plan *plan, tfc_dtype dtype, int64_t n) {
  int64_t from = 0, to = n;
  int32_t from32 = 0, to32 = (int32_t)n;
  const bool narrow = dtype == TFC_INT32;
  const size_t size = tfc_dtype_size(dtype);
  const struct tfc_tensor feeds[] = {{.dtype = dtype, .size = size, .data = narrow ? (void *)&from32 : &from},
                                     {.dtype = dtype, .size = size, .data = narrow ? (void *)&to32 : &to}};
  struct tfc_tensor got = {0};
  const uint64_t before = asked();
  assert_ok(tfc_plan_run(plan, feeds, &got, NULL));
  const uint64_t after = asked();
  assert_int_equal(tfc_tensor_int(&got, 0), n);
  tfc_tensor_release(&got);
  return after - before;
}

static void counter(const char *devices, tfc_dtype dtype, bool spread) {
  build_loop(dtype);
  open(devices);
  uint16_t placement[64] = {0};
  for (uint32_t i = 0; spread && i < graph->node_count; i++) placement[i] = (uint16_t)(i % set.count);
  const struct tfc_output feeds[] = {start, limit};
  const struct tfc_run_spec spec = {
      .feeds = feeds, .feed_count = 2, .fetches = &total, .fetch_count = 1, .placement = placement};
  struct tfc_plan *plan = NULL;
  assert_ok(tfc_plan_create(session, &spec, &plan));
  const uint64_t few = count_to(plan, dtype, 5), many = count_to(plan, dtype, 105);
  if (dtype == TFC_INT32) { // the loop makes no call at all
    assert_int_equal(few, 0);
    assert_int_equal(many, 0);
    assert_int_equal(tfc_plan_fallbacks(plan, NULL, 0), 0);
  } else if (many < few + 200) { // float: each iteration waits for its comparison
    fail_msg("%llu calls for 5 iterations, %llu for 105", (unsigned long long)few, (unsigned long long)many);
  }
  tfc_plan_free(plan);
  close();
}
static void counters(void **state) {
  (void)state;
  counter("gpu:0", TFC_INT32, false);
  counter("gpu:0", TFC_INT64, false);
  counter("gpu:0-1", TFC_INT32, true);
  counter("vgpu:0-1", TFC_INT32, true);
}

// --- Variables -----------------------------------------------------------------------------------------------------
#define TYPE(name, type) "attr { key: '" name "' value { type: " type " } }"
#define SHAPE "attr { key: 'shape' value { shape { dim { size: 4 } } } }"
static const char variables_text[] = "node { name: 'x' op: 'Placeholder' " TYPE("dtype", "DT_INT32") SHAPE
    "}"
    "node { name: 'v' op: 'VarHandleOp' " TYPE("dtype", "DT_INT32") SHAPE
    "}"
    "node { name: 'set' op: 'AssignVariableOp' input: 'v' input: 'x' " TYPE(
        "dtype",
        "DT_INT32") "}"
                    "node { name: 'add' op: 'AssignAddVariableOp' input: 'v' input: 'x' input: '^read' " TYPE(
                        "dtype",
                        "DT_INT32") "}"
                                    "node { name: 'read' op: 'ReadVariableOp' input: 'v' " TYPE(
                                        "dtype",
                                        "DT_INT32") "}"
                                                    "node { name: 'twice' op: 'Mul' input: 'read' input: 'read' " TYPE(
                                                        "T", "DT_INT32") "}"
                                                                         "node { name: 'w' op: 'VariableV2' " TYPE(
                                                                             "dtype", "DT_INT32") SHAPE
    "}"
    "node { name: 'set_w' op: 'Assign' input: 'w' input: 'x' " TYPE(
        "T", "DT_INT32") "}"
                         "node { name: 'add_w' op: 'AssignAdd' input: 'w' input: 'x' " TYPE(
                             "T", "DT_INT32") "}"
                                              "node { name: 'less' op: 'Less' input: 'add_w' input: 'twice' " TYPE(
                                                  "T",
                                                  "DT_INT32") "}"
                                                              // an operation of the GPU
                                                              "node { name: 'float' op: 'Cast' input: 'twice' " TYPE(
                                                                  "SrcT", "DT_INT32")
                                                                  TYPE("DstT",
                                                                       "DT_FLOAT") "}"
                                                                                   "node { name: 'value' op: 'Cast' "
                                                                                   "input: 'read' " TYPE("SrcT",
                                                                                                         "DT_INT32")
                                                                                       TYPE("DstT", "DT_FLOAT") "}";

static struct tfc_output output(const char *name) {
  return (struct tfc_output){tfc_graph_find(graph, tfc_str_from(name)), 0};
}

static int32_t numbers[] = {1, 2, 3, 4};
static struct tfc_tensor number_feed(void) {
  return (struct tfc_tensor){.dtype = TFC_INT32, .shape = TFC_SHAPE(4), .size = sizeof numbers, .data = numbers};
}

static void run(uint16_t device, bool dynamic, const char *const *targets, uint32_t target_count, const char *fetch,
                struct tfc_tensor *out) {
  uint16_t placement[16];
  uint32_t ids[4];
  for (size_t i = 0; i < 16; i++) placement[i] = device;
  for (uint32_t i = 0; i < target_count; i++) ids[i] = output(targets[i]).node;
  const struct tfc_output x = output("x"), y = fetch ? output(fetch) : x;
  const struct tfc_tensor feed = number_feed();
  const struct tfc_run_spec spec = {.feeds = &x,
                                    .feed_count = 1,
                                    .fetches = &y,
                                    .fetch_count = fetch != NULL,
                                    .targets = ids,
                                    .target_count = target_count,
                                    .feed_shapes = &feed.shape,
                                    .placement = placement,
                                    .dynamic = dynamic};
  assert_ok(tfc_session_run(session, &spec, &feed, out, NULL));
}

static void assert_value(const char *name, int32_t times) {
  struct tfc_tensor got = {0};
  assert_ok(tfc_session_get_variable(session, tfc_str_from(name), &got));
  for (int i = 0; i < 4; i++) assert_int_equal(((const int32_t *)got.data)[i], numbers[i] * times);
  tfc_tensor_release(&got);
}

static void variables_of(bool dynamic) {
  static const char *const set_both[] = {"set", "set_w"}, *const add[] = {"add"};
  assert_ok(tfc_graph_parse(tfc_str_from(variables_text), "variables", NULL, &graph));
  open("gpu:0-1,cpu:0");
  struct tfc_tensor got = {0};
  struct tfc_snapshot *snapshot = NULL;
  const uint64_t launched = tfc_cuda_launches(), before = asked();
  run(0, dynamic, set_both, 2, NULL, NULL);
  assert_value("v", 1);
  assert_ok(tfc_session_snapshot(session, &snapshot));
  run(0, dynamic, add, 1, "less", &got); // is 2 x < x * x?
  for (int i = 0; i < 4; i++) assert_int_equal(((const bool *)got.data)[i], 2 * numbers[i] < numbers[i] * numbers[i]);
  tfc_tensor_release(&got);
  assert_value("v", 2);
  assert_value("w", 2);
  run(1, dynamic, add, 1, NULL, NULL); // the variable moves to device 1
  assert_value("v", 3);
  run(2, dynamic, add, 1, NULL, NULL); // it moves to the CPU device, and back
  run(0, dynamic, add, 1, NULL, NULL);
  assert_value("v", 5);
  const struct tfc_tensor feed = number_feed();
  assert_ok(tfc_session_set_variable(session, TFC_STR("v"), &feed));
  run(0, dynamic, add, 1, NULL, NULL);
  assert_value("v", 2);
  assert_ok(tfc_session_restore(session, snapshot));
  assert_value("v", 1);
  assert_value("w", 1);
  assert_int_equal(tfc_session_variable_bytes(session, 0), 0);
  // (Waits are not compared: a plan waits when it is freed, whatever its variables are.)
  assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_COPY) + tfc_cuda_launches(), launched);
  uint64_t bytes = 0;
  for (int d = 0; d < 2; d++) assert_int_equal(set.devices[d]->driver->fallbacks(set.devices[d], &bytes), 0);
  run(0, dynamic, add, 1, "float", &got); // reads v before v has a value
  for (int i = 0; i < 4; i++) assert_true(((const float *)got.data)[i] == (float)(numbers[i] * numbers[i]));
  tfc_tensor_release(&got);
  run(0, dynamic, NULL, 0, "value", &got);
  for (int i = 0; i < 4; i++) assert_true(((const float *)got.data)[i] == (float)(2 * numbers[i]));
  tfc_tensor_release(&got);
  assert_true(asked() > before);
  tfc_snapshot_free(snapshot);
  close();
}
static void variables(void **state) {
  (void)state;
  variables_of(false);
  variables_of(true);
}

// --- Segments ------------------------------------------------------------------------------------------------------
// Many slices of the fed tensor are made on the host, each for a different operation of the GPU: all slices are one
// segment, and the GPU's segment waits once for all copies.
static void segments(void **state) {
  (void)state;
  enum { SLICES = 12 };
  struct tfc_builder *b = NULL;
  assert_ok(tfc_builder_create(NULL, &b));
  const struct tfc_output x = tfc_add_placeholder(b, "x", TFC_INT32, &TFC_SHAPE(SLICES, 3));
  const struct tfc_attr to_float = tfc_attr_type("DstT", TFC_FLOAT);
  struct tfc_output sum = {0};
  for (int32_t i = 0; i < SLICES; i++) {
    const int32_t begin[] = {i, 0}, size[] = {1, 3};
    const struct tfc_output part =
        tfc_add3(b, "Slice", x, tfc_add_i32_vector(b, begin, 2), tfc_add_i32_vector(b, size, 2));
    const struct tfc_output y = tfc_add(b, "Cast", "", &part, 1, &to_float, 1);
    sum = i ? tfc_add2(b, "AddV2", sum, y) : y;
  }
  assert_ok(tfc_builder_finish(b, &graph));
  tfc_builder_free(b);
  open("gpu:0");
  const struct tfc_shape shape = TFC_SHAPE(SLICES, 3);
  const struct tfc_run_spec spec = {
      .feeds = &x, .feed_count = 1, .fetches = &sum, .fetch_count = 1, .feed_shapes = &shape};
  int32_t fed[3 * SLICES];
  for (int32_t i = 0; i < 3 * SLICES; i++) fed[i] = i;
  const struct tfc_tensor feed = {.dtype = TFC_INT32, .shape = shape, .size = sizeof fed, .data = fed};
  struct tfc_plan *plan = NULL;
  struct tfc_tensor got = {0};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_int_equal(plan->segment_count, 2);
  assert_int_equal(tfc_plan_info(plan)->transfer_count, SLICES);
  assert_ok(tfc_plan_run(plan, &feed, &got, NULL));
  // Element k is the sum of 12 slices: (0 + 3 + … + 33) + 12 k.
  for (int k = 0; k < 3; k++) assert_true(((const float *)got.data)[k] == 3 * 66 + 12 * k);
  tfc_tensor_release(&got);
  tfc_plan_free(plan);
  close();
}

// --- Traces --------------------------------------------------------------------------------------------------------
// An operation on tensors in host memory runs on the host, although a GPU is its device. The trace lists it under the
// GPU: `dispatch_ns` is the time that the host took, and the duration is 0, because the GPU had no work.
static void traces(void **state) {
  (void)state;
  build_loop(TFC_INT32);
  open("gpu:0");
  const struct tfc_output feeds[] = {start, limit};
  const struct tfc_run_spec spec = {.feeds = feeds, .feed_count = 2, .fetches = &total, .fetch_count = 1};
  struct tfc_plan *plan = NULL;
  struct tfc_collector *c = NULL;
  struct tfc_step_profile p = {0};
  struct tfc_tensor got = {0};
  int32_t from = 0, to = 7;
  const struct tfc_tensor values[] = {{.dtype = TFC_INT32, .size = 4, .data = &from},
                                      {.dtype = TFC_INT32, .size = 4, .data = &to}};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_collector_create(set.count, 10000, &c));
  assert_ok(tfc_collector_watch(c, &set));
  tfc_collector_reset(c);
  assert_ok(tfc_plan_run(plan, values, &got, &(struct tfc_run_options){.trace = tfc_collector_sink(c)}));
  assert_ok(tfc_collector_drain(c, NULL, NULL, &p));
  assert_int_equal(p.ops.count, 8 + 7); // comparisons and additions
  for (size_t i = 0; i < p.ops.count; i++) {
    assert_int_equal(p.ops.data[i].device, 0);
    assert_int_equal(p.ops.data[i].duration_ns, 0);
    assert_true(p.ops.data[i].dispatch_ns > 0);
  }
  tfc_tensor_release(&got);
  tfc_step_profile_deinit(&p);
  tfc_collector_free(c);
  tfc_plan_free(plan);
  close();
}

// --- Borders -------------------------------------------------------------------------------------------------------
// In random graphs, GPUs read tensors in host memory and the host reads tensors of GPUs, while the GPUs' work is
// delayed.
#ifdef TFC_SANITIZED
enum { GRAPHS = 10 };
#else
enum { GRAPHS = 30 };
#endif
static void borders(void **state) {
  (void)state;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  tfc_cuda_fake_delay(100000);
  tfc_cuda_fake_shuffle(1);
  assert_int_equal(random_graphs_differ("gpu:0-1,cpu:0", 1, GRAPHS), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
  tfc_cuda_fake_delay(0);
  tfc_cuda_fake_reset();
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  tfc_driver_add(&tfc_driver_vgpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(counters), cmocka_unit_test(variables),
                                     cmocka_unit_test(segments), cmocka_unit_test(traces), cmocka_unit_test(borders)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
