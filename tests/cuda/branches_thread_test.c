// Captured segments with branches, on a fake of the CUDA calls: independent operations are captured on several streams,
// which wait for each other where the segment's order says so and nowhere else. Random delays show missing waits.
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/device.h"
#include "tests/common/cuda_fake.h"

enum { N = 32, BYTES = N * 4, MOST = 24, SCRATCH = 256 };
struct add { // y = a + b + 1
  const float *a, *b;
  float *y;
};
static void add_work(void *argument) {
  const struct add *w = argument;
  const float *a = tfc_cuda_fake_host(w->a), *b = tfc_cuda_fake_host(w->b);
  float *y = tfc_cuda_fake_host(w->y);
  for (int i = 0; i < N; i++) y[i] = a[i] + (b ? b[i] : 0) + (b ? 1 : 0);
}
static int launch_add(tfc_cuda_stream stream, const void *a, const void *b, void *y) {
  const struct add w = {a, b, y};
  return tfc_cuda_fake_launch(stream, add_work, &w, sizeof w);
}

static bool no_waits;      // streams cannot wait in the next capture
static uint32_t elsewhere; // calls that use cuDNN and were captured on another stream than its handle's
static tfc_status sum_prepare(struct tfc_cuda_prepare *p) {
  p->scratch = SCRATCH;
  return NULL;
}
static tfc_status sum_launch(struct tfc_cuda_launch *l) { // through the scratch memory of its stream
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, l->ctx->inputs[0], &y));
  if (no_waits && tfc_cuda_device_of(l->library->device)->capturing) {
    tfc_cuda_fake_fail(TFC_CUDA_FAKE_STREAM_WAIT, 1, 1, 1);
    no_waits = false;
  }
  int error = launch_add(l->stream, l->ctx->inputs[0]->data, l->ctx->inputs[1]->data, l->scratch);
  if (!error) error = launch_add(l->stream, l->scratch, NULL, y->data);
  return tfc_cuda_status(l, error);
}
static tfc_status dnn_launch(struct tfc_cuda_launch *l) {
  const struct tfc_cuda_device *d = tfc_cuda_device_of(l->library->device);
  struct cudnnContext *handle = NULL;
  TFC_RETURN_IF_ERROR(l->library->cudnn(l->library, &handle));
  elsewhere += d->capturing && l->stream != d->capture;
  return sum_launch(l);
}
static const struct tfc_cuda_kernel rows[] = {{"TestSum", 0, sum_prepare, sum_launch, 0},
                                              {"TestDnn", 0, sum_prepare, dnn_launch, 0}};
TFC_CUDA_KERNELS(rows);

// An operation reads two places and writes one; place 0 is fed.
struct sum {
  uint32_t a, b, y;
  bool dnn;
};
static struct tfc_op_def defs[2] = {{.name = "TestSum", .inputs = "a: float, b: float", .outputs = "y: float"},
                                    {.name = "TestDnn", .inputs = "a: float, b: float", .outputs = "y: float"}};
static struct tfc_node nodes[MOST];
static struct tfc_output edges[2];
static tfc_dtype dtypes[2] = {TFC_FLOAT, TFC_FLOAT};
static struct tfc_graph graph;
static struct tfc_shape shape, shapes[2];
static struct tfc_tensor slots[MOST];
static const struct tfc_tensor *in[MOST][2];
static struct tfc_tensor *out[MOST];
static struct tfc_segment_op ops[MOST];
static struct tfc_segment segment;
static uint32_t order_begin[MOST], order_end[MOST], order_ops[MOST * MOST];
static struct tfc_segment_order order;
static const struct sum *sums;
static uint32_t count;

// Operation i comes after each one that wrote what it reads or writes, or read what it writes.
static bool after(const struct sum *i, const struct sum *k) {
  return k->y == i->a || k->y == i->b || k->y == i->y || k->a == i->y || k->b == i->y;
}
static void make(const struct sum *list, uint32_t n, const struct tfc_buffer *memory) {
  uint32_t at = 0;
  sums = list, count = n;
  shape = shapes[0] = shapes[1] = TFC_SHAPE(N);
  for (uint32_t i = 0; i < MOST; i++)
    slots[i] = (struct tfc_tensor){
        .dtype = TFC_FLOAT, .shape = shape, .size = BYTES, .data = (char *)memory->data + (size_t)i * 256};
  for (uint32_t i = 0; i < n; i++) {
    struct tfc_op_def *def = &defs[list[i].dnn];
    nodes[i] = (struct tfc_node){
        .name = TFC_STR("n"), .op = tfc_str_from(def->name), .def = def, .input_count = 2, .output_count = 1};
    in[i][0] = &slots[list[i].a], in[i][1] = &slots[list[i].b];
    out[i] = &slots[list[i].y];
    ops[i] = (struct tfc_segment_op){.node = i,
                                     .def = def,
                                     .inputs = in[i],
                                     .outputs = &out[i],
                                     .input_count = 2,
                                     .output_count = 1,
                                     .input_shapes = shapes,
                                     .output_shapes = &shape,
                                     .input_dtypes = dtypes};
    order_begin[i] = at;
    for (uint32_t k = 0; k < i; k++)
      if (after(&list[i], &list[k])) order_ops[at++] = k;
    order_end[i] = at;
  }
  order = (struct tfc_segment_order){order_begin, order_end, order_ops};
  graph = (struct tfc_graph){
      .nodes = nodes, .node_count = n, .inputs = edges, .edge_count = 2, .output_dtypes = dtypes, .output_total = 1};
  segment = (struct tfc_segment){.graph = &graph, .ops = ops, .op_count = n, .order = &order};
}

static struct tfc_device_set set;
static struct tfc_device *d;
static struct tfc_buffer *memory;
static struct tfc_semaphore *done;
static uint64_t value;

static void open_all(void) {
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){0});
  tfc_cuda_fake_delay(50000);
  tfc_cuda_fake_shuffle(7);
  assert_ok(tfc_semaphore_create(&done));
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &set));
  d = set.devices[0];
  assert_ok(d->driver->allocate(d, MOST * 256, &memory));
  value = 0, elsewhere = 0;
}
static void close_all(void) {
  tfc_buffer_release(memory);
  tfc_semaphore_free(done);
  tfc_devices_close(&set);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

// Runs a step and checks every place against what the operations give one after the other.
static void step(struct tfc_prepared *p, float feed, struct tfc_trace_sink *sink) {
  float expected[MOST] = {feed}, x[N], y[N];
  for (int i = 0; i < N; i++) x[i] = feed;
  struct tfc_step s = {.id = (int64_t)value + 1, .trace = sink};
  assert_ok(d->driver->write(d, x, &slots[0]));
  value++;
  assert_ok(d->driver->submit(d, p, &s, NULL, 0, &(struct tfc_timepoint){done, value}, 1));
  assert_ok(tfc_semaphore_wait(done, value, 0, -1));
  if (s.failed) fail_msg("%s", tfc_status_message(s.status));
  for (uint32_t i = 0; i < count; i++) expected[sums[i].y] = expected[sums[i].a] + expected[sums[i].b] + 1;
  for (uint32_t i = 0; i < count; i++) {
    assert_ok(d->driver->read(d, &slots[sums[i].y], y));
    for (int k = 0; k < N; k++) assert_true(y[k] == expected[sums[i].y]);
  }
}

// Four chains of three that begin at one operation and end in one.
static const struct sum chains[] = {{0, 0, 1, false},  {1, 1, 2, false},    {1, 0, 3, false},    {1, 1, 4, false},
                                    {0, 1, 5, false},  {2, 2, 6, false},    {3, 3, 7, false},    {4, 4, 8, false},
                                    {5, 5, 9, false},  {6, 6, 10, false},   {7, 7, 11, false},   {8, 8, 12, false},
                                    {9, 9, 13, false}, {10, 11, 14, false}, {12, 13, 15, false}, {14, 15, 16, false}};
enum { CHAINS = sizeof chains / sizeof *chains };

static void side_by_side(void **state) {
  (void)state;
  struct tfc_prepared *p = NULL;
  open_all();
  make(chains, CHAINS, memory);
  assert_ok(d->driver->prepare(d, &segment, &p));
  for (int i = 0; i < 20; i++) step(p, (float)i, NULL);
  struct tfc_cuda_fake_graph g = tfc_cuda_fake_graph();
  assert_int_equal(g.works, 2 * CHAINS); // two launches each
  assert_int_equal(g.lanes, 4);
  assert_int_equal(g.longest, 2 * 6);
  d->driver->release(d, p);
  // Without an order, the same segment is a chain.
  segment.order = NULL;
  assert_ok(d->driver->prepare(d, &segment, &p));
  for (int i = 0; i < 4; i++) step(p, (float)i, NULL);
  g = tfc_cuda_fake_graph();
  assert_int_equal(g.lanes, 1);
  assert_int_equal(g.longest, 2 * CHAINS);
  d->driver->release(d, p);
  close_all();
}

// Places that are written again: what reads the old value comes before.
static void memory_is_reused(void **state) {
  (void)state;
  static const struct sum again[] = {{0, 0, 1, false}, {0, 0, 2, false}, {1, 2, 3, false}, {1, 1, 4, false},
                                     {0, 0, 1, false}, {2, 2, 5, false}, {0, 1, 2, false}, {1, 1, 6, false},
                                     {4, 5, 1, false}, {3, 6, 7, false}, {0, 0, 3, false}, {3, 2, 8, false}};
  struct tfc_prepared *p = NULL;
  open_all();
  make(again, sizeof again / sizeof *again, memory);
  assert_ok(d->driver->prepare(d, &segment, &p));
  for (int i = 0; i < 40; i++) step(p, (float)i, NULL);
  assert_true(tfc_cuda_fake_graph().lanes > 1);
  d->driver->release(d, p);
  close_all();
}

// A chain needs no second stream.
static void a_chain_stays_one(void **state) {
  (void)state;
  static const struct sum chain[] = {{0, 0, 1, false}, {1, 0, 2, false}, {2, 1, 3, false}, {3, 2, 4, false}};
  struct tfc_prepared *p = NULL;
  open_all();
  make(chain, 4, memory);
  assert_ok(d->driver->prepare(d, &segment, &p));
  const uint64_t streams = tfc_cuda_fake_calls(TFC_CUDA_FAKE_STREAM_CREATE);
  for (int i = 0; i < 5; i++) step(p, (float)i, NULL);
  assert_int_equal(tfc_cuda_fake_graph().lanes, 1);
  assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_STREAM_CREATE), streams);
  d->driver->release(d, p);
  close_all();
}

static void cudnn_stays_on_one_stream(void **state) {
  (void)state;
  struct sum list[CHAINS];
  struct tfc_prepared *p = NULL;
  open_all();
  memcpy(list, chains, sizeof list);
  for (uint32_t i = 0; i < CHAINS; i++) list[i].dnn = i % 3 == 1;
  make(list, CHAINS, memory);
  assert_ok(d->driver->prepare(d, &segment, &p));
  for (int i = 0; i < 10; i++) step(p, (float)i, NULL);
  assert_int_equal(elsewhere, 0);
  assert_true(tfc_cuda_fake_graph().lanes > 1);
  d->driver->release(d, p);
  close_all();
}

// A profiler is told which operation each node belongs to, although the nodes of several streams are captured in turns.
static struct told {
  uint64_t node;
  uint32_t uid;
} told[4 * CHAINS];
static uint32_t told_count;
static void note(struct tfc_trace_sink *sink, uint16_t device, uint64_t graph_node, uint32_t uid) {
  (void)sink, (void)device;
  assert_true(graph_node != 0 && told_count < 4 * CHAINS);
  for (uint32_t i = 0; i < told_count; i++) assert_true(told[i].node != graph_node);
  told[told_count++] = (struct told){graph_node, uid};
}
static void mark(struct tfc_trace_sink *sink, uint16_t device, uint32_t uid) {
  (void)sink, (void)device, (void)uid;
}
static void nodes_have_names(void **state) {
  (void)state;
  struct tfc_prepared *p = NULL;
  struct tfc_trace_record records[8 * CHAINS];
  struct tfc_trace_buffer buffers[2] = {{records, 0, 8 * CHAINS, 0}, {0}};
  struct tfc_trace_sink sink = {
      .buffers = buffers, .buffer_count = 2, .op_begin = mark, .op_end = mark, .graph_node = note};
  open_all();
  make(chains, CHAINS, memory);
  assert_ok(d->driver->prepare(d, &segment, &p));
  told_count = 0;
  const uint64_t replays = tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH);
  for (int i = 0; i < 5; i++) buffers[0].count = 0, step(p, (float)i, &sink);
  assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH), replays + 3);
  assert_int_equal(tfc_cuda_fake_graph().lanes, 4);
  assert_int_equal(told_count, 2 * CHAINS);
  uint32_t of[CHAINS] = {0};
  for (uint32_t i = 0; i < told_count; i++) of[told[i].uid]++;
  for (uint32_t i = 0; i < CHAINS; i++) assert_int_equal(of[i], 2);
  assert_int_equal(buffers[0].count, CHAINS);
  d->driver->release(d, p);
  close_all();
}

// If branches cannot be captured, the segment is captured without them.
static void a_capture_that_fails(void **state) {
  (void)state;
  static const enum tfc_cuda_fake_call calls[] = {TFC_CUDA_FAKE_STREAM_WAIT, TFC_CUDA_FAKE_EVENT_CREATE,
                                                  TFC_CUDA_FAKE_STREAM_CREATE};
  for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
    struct tfc_prepared *p = NULL;
    open_all();
    make(chains, CHAINS, memory);
    assert_ok(d->driver->prepare(d, &segment, &p));
    for (int i = 0; i < 2; i++) step(p, (float)i, NULL);
    const uint64_t replays = tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH);
    no_waits = calls[k] == TFC_CUDA_FAKE_STREAM_WAIT;
    if (!no_waits) tfc_cuda_fake_fail(calls[k], 1, 100, 1);
    step(p, 5, NULL); // launched one by one
    tfc_cuda_fake_fail(calls[k], 0, 0, 0);
    assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH), replays);
    for (int i = 0; i < 3; i++) step(p, (float)i, NULL);
    assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH), replays + 3);
    assert_int_equal(tfc_cuda_fake_graph().lanes, 1);
    d->driver->release(d, p);
    close_all();
  }
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(side_by_side),      cmocka_unit_test(memory_is_reused),
                                     cmocka_unit_test(a_chain_stays_one), cmocka_unit_test(cudnn_stays_on_one_stream),
                                     cmocka_unit_test(nodes_have_names),  cmocka_unit_test(a_capture_that_fails)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
