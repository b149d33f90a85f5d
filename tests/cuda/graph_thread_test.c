// Captured segments on a fake of the CUDA calls: a chain of operations is captured after a few runs and replayed. It is
// captured again if its memory has moved. An operation that depends on a value of the host is not captured.
#include "tests/common/test.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/kernels/library/plans.h"
#include "runtime/device/cuda/segment.h"
#include "runtime/device/cuda/staging.h"
#include "tests/common/cuda_fake.h"

struct add {
  const float *x;
  float *y;
  int64_t n;
  float by;
};
static void add_work(void *argument) {
  const struct add *a = argument;
  const float *x = tfc_cuda_fake_host(a->x);
  float *y = tfc_cuda_fake_host(a->y);
  for (int64_t i = 0; i < a->n; i++) y[i] = x[i] + a->by;
}
static int launches;
static float host_value = 1;
static void (*while_capturing)(const struct tfc_cuda_device *d); // called only in the next launch
static tfc_status add_launch(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *scratch = NULL;
  launches++;
  const struct tfc_cuda_device *d = tfc_cuda_device_of(l->library->device);
  if (while_capturing && d->capturing) {
    while_capturing(d);
    while_capturing = NULL;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, x, &y));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(l->ctx, 1000, &scratch)); // a captured graph keeps the scratch memory
  struct add a = {x->data, scratch->data, tfc_tensor_elements(x), host_value};
  int error = tfc_cuda_fake_launch(l->stream, add_work, &a, sizeof a);
  a = (struct add){scratch->data, y->data, a.n, 0};
  if (!error) error = tfc_cuda_fake_launch(l->stream, add_work, &a, sizeof a);
  tfc_buffer_release(scratch);
  return tfc_cuda_status(l, error);
}
// An operation of a library, which chooses an algorithm for each `form` of its operands, by measuring.
static int form, chosen, chosen_in_captures;
static bool form_changes; // in the next capture
static tfc_status choose(struct tfc_cuda_library *library, const void *key, void **out) {
  int *plan = malloc(sizeof *plan);
  chosen_in_captures += tfc_cuda_device_of(library->device)->capturing != NULL; // what is measured is waited for
  if (!plan) return tfc_status_no_memory(NULL);
  *plan = *(const int *)key;
  *out = plan;
  chosen++;
  return NULL;
}
static struct tfc_cuda_plans plans = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                      .making = PTHREAD_MUTEX_INITIALIZER,
                                      .key_size = sizeof form,
                                      .make = choose,
                                      .free = free};
static tfc_status library_launch(struct tfc_cuda_launch *l) {
  const void *plan = NULL;
  if (tfc_cuda_device_of(l->library->device)->capturing && form_changes) form++, form_changes = false;
  TFC_RETURN_IF_ERROR(tfc_cuda_plans_find(&plans, l->library, &form, &plan));
  return add_launch(l);
}
static const struct tfc_cuda_kernel rows[] = {{"TestAdd", 0, NULL, add_launch, 0},
                                              {"TestLibrary", 0, NULL, library_launch, 0},
                                              {"TestHostAdd", 0, NULL, add_launch, TFC_CUDA_NO_CAPTURE}};
TFC_CUDA_KERNELS(rows);

enum { LENGTH = 5, N = 10 };
static struct tfc_op_def def = {.inputs = "x: float", .outputs = "y: float"};
static struct tfc_node nodes[LENGTH];
static struct tfc_output edges[1] = {{0, 0}};
static tfc_dtype dtypes[1] = {TFC_FLOAT};
static struct tfc_graph graph;
static struct tfc_shape shape;
static struct tfc_tensor slots[LENGTH + 1];
static const struct tfc_tensor *in[LENGTH];
static struct tfc_tensor *out[LENGTH];
static struct tfc_segment_op ops[LENGTH];
static struct tfc_segment segment;

static void place(const struct tfc_buffer *b) {
  for (int i = 0; i <= LENGTH; i++)
    slots[i] = (struct tfc_tensor){
        .dtype = TFC_FLOAT, .shape = shape, .size = N * 4, .data = (char *)b->data + 256 * (size_t)i};
}

static void make(const char *op, const struct tfc_buffer *b) {
  shape = TFC_SHAPE(N);
  def.name = op;
  place(b);
  for (uint32_t i = 0; i < LENGTH; i++) {
    nodes[i] = (struct tfc_node){
        .name = TFC_STR("n"), .op = tfc_str_from(op), .def = &def, .input_count = 1, .output_count = 1};
    in[i] = &slots[i];
    out[i] = &slots[i + 1];
    ops[i] = (struct tfc_segment_op){.node = i,
                                     .def = &def,
                                     .inputs = &in[i],
                                     .outputs = &out[i],
                                     .input_count = 1,
                                     .output_count = 1,
                                     .input_shapes = &shape,
                                     .output_shapes = &shape,
                                     .input_dtypes = dtypes};
  }
  graph = (struct tfc_graph){.nodes = nodes,
                             .node_count = LENGTH,
                             .inputs = edges,
                             .edge_count = 1,
                             .output_dtypes = dtypes,
                             .output_total = 1};
  segment = (struct tfc_segment){.graph = &graph, .ops = ops, .op_count = LENGTH};
}

static struct tfc_device_set set;
static struct tfc_semaphore *done;
static uint64_t value;

static float run(struct tfc_prepared *p, struct tfc_trace_sink *sink) {
  struct tfc_device *d = set.devices[0];
  float x[N] = {0}, y[N];
  struct tfc_step step = {.id = 1, .trace = sink};
  assert_ok(d->driver->write(d, x, &slots[0]));
  value++;
  assert_ok(d->driver->submit(d, p, &step, NULL, 0, &(struct tfc_timepoint){done, value}, 1));
  assert_ok(tfc_semaphore_wait(done, value, 0, -1));
  if (step.failed) fail_msg("%s", tfc_status_message(step.status));
  assert_ok(d->driver->read(d, &slots[LENGTH], y));
  for (int i = 1; i < N; i++) assert_true(y[i] == y[0]);
  return y[0];
}

static uint32_t mapped[64], mapped_count, mapped_from, marks;
static void note(struct tfc_trace_sink *sink, uint16_t device, uint64_t graph_node, uint32_t uid) {
  (void)sink, (void)device;
  graph_node &= 0xfffff;                             // the upper bits are the number of the graph
  if (graph_node == 100) mapped_from = mapped_count; // the first node of another graph
  assert_int_equal(graph_node, 100 + (mapped_count - mapped_from));
  mapped[mapped_count++] = uid;
}
static void mark(struct tfc_trace_sink *sink, uint16_t device, uint32_t uid) {
  (void)sink, (void)device, (void)uid;
  marks++;
}

static void captured(void **state) {
  (void)state;
  struct tfc_buffer *memory[2] = {0};
  struct tfc_prepared *p = NULL;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){0});
  assert_ok(tfc_semaphore_create(&done));
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &set));
  struct tfc_device *d = set.devices[0];
  for (int i = 0; i < 2; i++) assert_ok(d->driver->allocate(d, 4096, &memory[i]));
  make("TestAdd", memory[0]);
  assert_ok(d->driver->prepare(d, &segment, &p));
  launches = 0;
  for (int i = 0; i < 10; i++) assert_true(run(p, NULL) == LENGTH);
  assert_int_equal(launches, 3 * LENGTH); // two runs to warm up, one that is captured
  assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH), 8);
  host_value = 2; // a replay still uses the value of the capture
  assert_true(run(p, NULL) == LENGTH);
  place(memory[1]); // the segment has other memory now: it is captured again
  assert_true(run(p, NULL) == 2 * LENGTH);
  assert_true(run(p, NULL) == 2 * LENGTH);
  assert_int_equal(launches, 4 * LENGTH);
  // When a profiler is attached, the segment is captured once more. The profiler is told once which operation each node
  // of the graph belongs to, and each launch of the graph is marked.
  struct tfc_trace_record records[64];
  struct tfc_trace_buffer buffers[2] = {{records, 0, 64, 0}, {0}};
  struct tfc_trace_sink sink = {
      .buffers = buffers, .buffer_count = 2, .op_begin = mark, .op_end = mark, .graph_node = note};
  for (int i = 0; i < 2; i++) (void)run(p, &sink);
  assert_int_equal(mapped_count, 2 * LENGTH);
  for (uint32_t i = 0; i < mapped_count; i++) assert_int_equal(mapped[i], i / 2);
  assert_int_equal(marks, 4);
  assert_int_equal(buffers[0].count, 2 * LENGTH);
  assert_int_equal(launches, 5 * LENGTH);
  // With events between them, the operations are launched one by one.
  struct tfc_trace_record executed[64];
  struct tfc_trace_buffer executions[1] = {{executed, 0, 64, 0}};
  sink.executions = executions;
  buffers[0].count = 0;
  (void)run(p, &sink);
  assert_int_equal(launches, 6 * LENGTH);
  assert_int_equal(executions[0].count, LENGTH);
  for (size_t i = 0; i < LENGTH; i++) assert_true(executed[i].begin > 0 && executed[i].end >= executed[i].begin);
  tfc_cuda_device_of(d)->graphs = false; // --cuda-graphs off
  assert_true(run(p, NULL) == 2 * LENGTH);
  assert_int_equal(launches, 7 * LENGTH);
  d->driver->release(d, p);
  host_value = 1;
  tfc_cuda_device_of(d)->graphs = true;

  make("TestHostAdd", memory[0]); // depends on the host's value
  assert_ok(d->driver->prepare(d, &segment, &p));
  for (int i = 1; i < 8; i++) {
    host_value = (float)i;
    assert_true(run(p, NULL) == (float)i * LENGTH);
  }
  d->driver->release(d, p);
  host_value = 1;

  // A value without a place, made and released within the segment: captured, its memory stays with the graph.
  make("TestAdd", memory[0]);
  struct tfc_tensor *const released[1] = {&slots[2]};
  slots[2] = (struct tfc_tensor){0};
  ops[2].releases = released;
  ops[2].release_count = 1;
  assert_ok(d->driver->prepare(d, &segment, &p));
  launches = 0;
  uint64_t replays = tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH);
  for (int i = 0; i < 6; i++) {
    assert_true(run(p, NULL) == LENGTH);
    assert_null(slots[2].data);
  }
  assert_int_equal(launches, 3 * LENGTH);
  assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH) - replays, 4);
  d->driver->release(d, p);
  // k = 0: the segment releases a value that it did not make. k = 1: it makes a value that it does not release. That
  // one operation is launched by itself.
  for (int k = 0; k < 2; k++) {
    make("TestAdd", memory[0]);
    struct tfc_tensor *const first[1] = {&slots[0]};
    if (k == 1) slots[3] = (struct tfc_tensor){0};
    ops[0].releases = first;
    ops[0].release_count = k == 0;
    assert_ok(d->driver->prepare(d, &segment, &p));
    launches = 0;
    for (int i = 0; i < 5; i++) {
      if (k == 0) place(memory[0]);
      assert_true(run(p, NULL) == LENGTH);
    }
    if (k == 0) assert_int_equal(launches, 5 + 3 * (LENGTH - 1));
    assert_true(launches >= 5 + 3 * (LENGTH - 1) && launches < 5 * LENGTH); // k = 1 is captured again when memory moves
    d->driver->release(d, p);
    tfc_tensor_release(&slots[3]);
  }
  // An operation in the middle depends on the host's value: the operations before and after it are captured.
  static struct tfc_op_def host_def = {.name = "TestHostAdd", .inputs = "x: float", .outputs = "y: float"};
  make("TestAdd", memory[0]);
  nodes[2].op = TFC_STR("TestHostAdd");
  nodes[2].def = ops[2].def = &host_def;
  assert_ok(d->driver->prepare(d, &segment, &p));
  launches = 0;
  replays = tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH);
  for (int i = 1; i < 7; i++) {
    host_value = i < 4 ? 1 : (float)i;
    assert_true(run(p, NULL) == LENGTH - 1 + host_value);
  }
  host_value = 1;
  assert_int_equal(launches, 3 * LENGTH + 3);
  assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH) - replays, 8);
  buffers[0].count = 0;
  sink.executions = NULL;
  mapped_count = mapped_from = marks = 0;
  assert_true(run(p, &sink) == LENGTH);
  assert_int_equal(marks, 6); // the begin and end of two captured pieces and one operation
  assert_int_equal(buffers[0].count, LENGTH);
  for (size_t i = 0; i < LENGTH; i++) {
    assert_int_equal(records[i].id, i);
    // (A captured operation counts its nodes as launches; TestHostAdd does not count its own.)
    assert_int_equal(records[i].bytes, i == 2 ? 0 : 2);
  }
  d->driver->release(d, p);

  // Memory moves now and then, as it does while placements are measured in turns: the segment is captured again as long
  // as that pays. When memory moves in every step, the driver stops capturing it.
  make("TestAdd", memory[0]);
  assert_ok(d->driver->prepare(d, &segment, &p));
  launches = 0;
  for (int i = 0; i < 2; i++) assert_true(run(p, NULL) == LENGTH);
  for (int i = 0; i < 20 * 3; i++) {
    place(memory[i / 3 % 2]);
    assert_true(run(p, NULL) == LENGTH);
  }
  assert_int_equal(launches, 22 * LENGTH);
  replays = tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH);
  for (int i = 0; i < 20; i++) {
    place(memory[i % 2]);
    assert_true(run(p, NULL) == LENGTH);
  }
  assert_int_equal(launches, 42 * LENGTH);
  assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH) - replays, 8);
  d->driver->release(d, p);

  make("TestAdd", memory[0]); // if capturing fails, operations are launched one by one
  assert_ok(d->driver->prepare(d, &segment, &p));
  tfc_cuda_fake_fail(TFC_CUDA_FAKE_CAPTURE, 1, 100, 901);
  launches = 0;
  for (int i = 1; i < 6; i++) assert_true(run(p, NULL) == LENGTH);
  assert_int_equal(launches, 5 * LENGTH);
  tfc_cuda_fake_fail(TFC_CUDA_FAKE_CAPTURE, 0, 0, 0);
  d->driver->release(d, p);
  for (int i = 0; i < 2; i++) tfc_buffer_release(memory[i]);
  assert_ok(d->driver->synchronize(d));
  tfc_semaphore_free(done);
  assert_true(d->driver->in_use(d) == 0);
  tfc_devices_close(&set);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

// What cuDNN launches into another stream than the captured one would be missing in every replay. So if cuDNN's stream
// cannot be set, nothing is captured.
static int cudnn_moves, cudnn_error;
static int move_cudnn(struct cudnnContext *handle, tfc_cuda_stream stream) {
  (void)handle, (void)stream;
  cudnn_moves++;
  return cudnn_error;
}
static int destroy_cudnn(struct cudnnContext *handle) {
  (void)handle;
  return 0;
}

static void cudnn_moves_along(void **state) {
  (void)state;
  static struct tfc_cuda_api api;
  struct tfc_buffer *memory = NULL;
  struct tfc_prepared *p = NULL;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){0});
  api = tfc_cuda_fake_api;
  api.cudnn_stream = move_cudnn;
  api.cudnn_destroy = destroy_cudnn;
  tfc_cuda_api = &api;
  assert_ok(tfc_semaphore_create(&done));
  value = 0;
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &set));
  struct tfc_device *d = set.devices[0];
  tfc_cuda_device_of(d)->cudnn = (struct cudnnContext *)(void *)&cudnn_moves; // a handle that is never dereferenced
  assert_ok(d->driver->allocate(d, 4096, &memory));
  for (int fails = 1; fails >= 0; fails--) {
    cudnn_error = fails ? 2007 : 0;
    cudnn_moves = launches = 0;
    make("TestAdd", memory);
    assert_ok(d->driver->prepare(d, &segment, &p));
    uint64_t replays = tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH);
    for (int i = 0; i < 6; i++) assert_true(run(p, NULL) == LENGTH);
    assert_int_equal(cudnn_moves, 2); // one move to the captured stream, and one back
    assert_int_equal(launches, fails ? 6 * LENGTH : 3 * LENGTH);
    assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH) - replays, fails ? 0 : 4);
    d->driver->release(d, p);
  }
  tfc_buffer_release(memory);
  assert_ok(d->driver->synchronize(d));
  tfc_semaphore_free(done);
  tfc_devices_close(&set);
}

// An operation that needs another algorithm than before when it is captured: the segment is launched one by one, which
// chooses the algorithm, and is captured the next time.
static void choosing_in_a_capture(void **state) {
  (void)state;
  struct tfc_buffer *memory = NULL;
  struct tfc_prepared *p = NULL;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){0});
  assert_ok(tfc_semaphore_create(&done));
  value = 0;
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &set));
  struct tfc_device *d = set.devices[0];
  assert_ok(d->driver->allocate(d, 4096, &memory));
  make("TestLibrary", memory);
  assert_ok(d->driver->prepare(d, &segment, &p));
  launches = 0, form_changes = true;
  for (int i = 0; i < 6; i++) assert_true(run(p, NULL) == LENGTH);
  assert_int_equal(chosen, 2);
  assert_int_equal(chosen_in_captures, 0);
  assert_int_equal(launches, 4 * LENGTH); // of these the last ones in the second capture
  assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH), 3);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
  d->driver->release(d, p);
  tfc_buffer_release(memory);
  tfc_devices_close(&set);
  tfc_semaphore_free(done);
  for (size_t i = 0; i < plans.made.count; i++) free(plans.made.data[i]);
  tfc_array_free(&plans.made);
}

// While a segment is captured, another thread allocates and frees memory of another device: these calls wait until the
// capture has ended.
static pthread_t rival;
static _Atomic bool rival_is_done;
static void *take_and_give(void *argument) {
  struct tfc_cuda_device *other = argument;
  struct tfc_buffer *b = NULL;
  struct tfc_cuda_staging *piece = NULL;
  assert_ok(tfc_cuda_memory_allocate(&other->memory, 1 << 20, &b));
  tfc_buffer_release(b);
  tfc_cuda_memory_trim(&other->memory);
  assert_ok(tfc_cuda_staging_take(other, 1 << 20, &piece));
  tfc_cuda_staging_give(other, piece);
  tfc_cuda_staging_free(other);
  atomic_store(&rival_is_done, true);
  return NULL;
}
static void start_rival(const struct tfc_cuda_device *d) {
  (void)d;
  assert_int_equal(pthread_create(&rival, NULL, take_and_give, tfc_cuda_device_of(set.devices[1])), 0);
  tfc_sleep_ns(20000000); // enough time for the other thread to finish, if it did not wait
  assert_false(atomic_load(&rival_is_done));
}

static void others_wait(void **state) {
  (void)state;
  struct tfc_buffer *memory = NULL;
  struct tfc_prepared *p = NULL;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  assert_ok(tfc_semaphore_create(&done));
  value = 0;
  assert_ok(tfc_devices_open("gpu:0-1", NULL, 0, &set));
  struct tfc_device *d = set.devices[0];
  assert_ok(d->driver->allocate(d, 4096, &memory));
  make("TestAdd", memory);
  assert_ok(d->driver->prepare(d, &segment, &p));
  while_capturing = start_rival;
  for (int i = 0; i < 4; i++) assert_true(run(p, NULL) == LENGTH);
  assert_null(while_capturing);
  assert_int_equal(pthread_join(rival, NULL), 0);
  assert_true(atomic_load(&rival_is_done));
  assert_int_equal(tfc_cuda_fake_violations(), 0);
  d->driver->release(d, p);
  tfc_buffer_release(memory);
  tfc_devices_close(&set);
  tfc_semaphore_free(done);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(captured), cmocka_unit_test(cudnn_moves_along),
                                     cmocka_unit_test(choosing_in_a_capture), cmocka_unit_test(others_wait)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
