// Variables in captured segments, on a fake of the CUDA calls. A replay writes to the memory that the capture used. So
// the driver must notice when an update gives its variable other memory (because the old value is still read, has
// another size, or there is none yet) before, during or after the capture.
#include "tests/common/test.h"

#include <stdlib.h>

#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/segment.h"
#include "tests/common/cuda_fake.h"

enum { N = 512 };
struct add { // y = a + b
  const float *a, *b;
  float *y;
};
static void add_work(void *argument) {
  const struct add *w = argument;
  const float *a = tfc_cuda_fake_host(w->a), *b = tfc_cuda_fake_host(w->b);
  float *y = tfc_cuda_fake_host(w->y);
  for (int i = 0; i < N; i++) y[i] = a[i] + b[i];
}
static tfc_status add(const struct tfc_cuda_launch *l, const void *a, const void *b, void *y) {
  struct add w = {a, b, y};
  return tfc_cuda_status(l, tfc_cuda_fake_launch(l->stream, add_work, &w, sizeof w));
}

static int launches, launch_fails; // launch_fails = n: the n-th launch of TestRead from now fails; 0: none
static void (*meanwhile)(void);    // called in each launch of TestRead, also during a capture
static tfc_status read_launch(struct tfc_cuda_launch *l) {
  struct tfc_tensor *y = NULL;
  launches++;
  if (launch_fails && --launch_fails == 0) return tfc_status_make(TFC_INTERNAL, "the library is out of sorts");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, l->ctx->inputs[0], &y));
  if (meanwhile) meanwhile();
  return add(l, l->ctx->inputs[0]->data, l->ctx->inputs[1]->data, y->data);
}
// v += x. As a resource variable, v gets other memory if it has no value or its old value is still referenced;
// `replaces`: always, as if its size changed.
static bool replaces;
static tfc_status bump_launch(struct tfc_cuda_launch *l) {
  struct tfc_variable *v = l->ctx->variables[0];
  const void *old = v->value.data;
  struct tfc_buffer *fresh = NULL;
  launches++;
  if (replaces || !v->initialized || atomic_load(&v->value.buffer->references) > 1)
    TFC_RETURN_IF_ERROR(l->ctx->env->allocate(l->ctx->env, N * 4, &fresh));
  tfc_status s = add(l, old, l->ctx->inputs[1]->data, fresh ? fresh->data : v->value.data);
  if (!fresh) return s;
  tfc_buffer_release(v->value.buffer);
  v->value.buffer = fresh;
  v->value.data = fresh->data;
  v->initialized = true;
  return s;
}
static const struct tfc_cuda_kernel rows[] = {{"TestRead", 0, NULL, read_launch, 0},
                                              {"TestBump", 0, NULL, bump_launch, 0}};
TFC_CUDA_KERNELS(rows);

// y = x + v; v += x; z = x + v
static struct tfc_op_def read_def = {.name = "TestRead", .inputs = "x: float, v: float", .outputs = "y: float"};
static struct tfc_op_def bump_def = {.name = "TestBump", .inputs = "v: resource, x: float", .flags = TFC_OP_UPDATE};
static tfc_dtype dtypes[4] = {TFC_RESOURCE, TFC_FLOAT, TFC_FLOAT, TFC_FLOAT};
static struct tfc_output edges[6] = {{1, 0}, {1, 0}, {0, 0}, {1, 0}, {1, 0}, {1, 0}};
static struct tfc_node nodes[5];
static struct tfc_graph graph;
static struct tfc_shape shape;
static struct tfc_tensor x, y, z;
static struct tfc_variable variable;
static const struct tfc_tensor *inputs[6];
static struct tfc_variable *variables[6];
static struct tfc_tensor *outputs[2] = {&y, &z};
static struct tfc_variable_read reads[1] = {{&variable, NULL}};
static struct tfc_segment_op ops[3];
static struct tfc_segment segment = {.graph = &graph, .ops = ops, .op_count = 3};

static struct tfc_device_set set;
static struct tfc_device *d;
static struct tfc_buffer *memory;
static struct tfc_prepared *prepared;
static struct tfc_semaphore *done;
static uint64_t value;
static float expected; // the expected value of every element of the variable

static struct tfc_tensor place(int i) {
  return (struct tfc_tensor){
      .dtype = TFC_FLOAT, .shape = shape, .size = N * 4, .data = (char *)memory->data + i * (N * 4)};
}

static void fill(struct tfc_tensor *t, float with) {
  float values[N];
  for (int i = 0; i < N; i++) values[i] = with;
  assert_ok(d->driver->write(d, values, t));
}
static float element(const struct tfc_tensor *t) {
  float values[N];
  assert_ok(d->driver->read(d, t, values));
  for (int i = 1; i < N; i++) assert_true(values[i] == values[0]);
  return values[0];
}

static void open_all(void) {
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){0});
  assert_ok(tfc_semaphore_create(&done));
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &set));
  d = set.devices[0];
  value = 0, launches = launch_fails = 0, meanwhile = NULL, replaces = false;
  shape = TFC_SHAPE(N);
  assert_ok(d->driver->allocate(d, 3 * N * 4, &memory));
  x = place(0), y = place(1), z = place(2);
  variable = (struct tfc_variable){.name = TFC_STR("v"), .dtype = TFC_FLOAT, .shape = shape, .initialized = true};
  atomic_init(&variable.object.references, 1);
  struct tfc_buffer *own = NULL;
  assert_ok(d->driver->allocate(d, N * 4, &own));
  variable.value =
      (struct tfc_tensor){.dtype = TFC_FLOAT, .shape = shape, .data = own->data, .size = N * 4, .buffer = own};
  fill(&variable.value, expected = 1);
  const struct tfc_op_def *const defs[5] = {NULL, NULL, &read_def, &bump_def, &read_def};
  static const char *const names[5] = {"handle", "x", "before", "bump", "after"};
  for (uint32_t i = 0; i < 5; i++)
    nodes[i] = (struct tfc_node){.name = tfc_str_from(names[i]),
                                 .op = defs[i] ? tfc_str_from(defs[i]->name) : TFC_STR("Placeholder"),
                                 .def = defs[i],
                                 .input_begin = i < 2 ? 0 : 2 * (i - 2),
                                 .input_count = i < 2 ? 0 : 2,
                                 .output_begin = i < 2   ? i
                                                 : i < 4 ? 2
                                                         : 3,
                                 .output_count = i != 3};
  graph = (struct tfc_graph){
      .nodes = nodes, .node_count = 5, .inputs = edges, .edge_count = 6, .output_dtypes = dtypes, .output_total = 4};
  for (uint32_t i = 0; i < 6; i++) inputs[i] = &x, variables[i] = NULL;
  inputs[1] = inputs[5] = inputs[2] = &variable.value;
  variables[2] = &variable;
  for (uint32_t i = 0; i < 3; i++)
    ops[i] = (struct tfc_segment_op){.node = i + 2,
                                     .def = defs[i + 2],
                                     .inputs = inputs + 2 * i,
                                     .variables = variables + 2 * i,
                                     .outputs = &outputs[i / 2],
                                     .input_count = 2,
                                     .output_count = i != 1,
                                     .reads = reads,
                                     .read_count = i != 1};
  assert_ok(d->driver->prepare(d, &segment, &prepared));
}

static void close_all(void) {
  d->driver->release(d, prepared);
  tfc_buffer_release(memory);
  tfc_tensor_release(&variable.value);
  assert_ok(d->driver->synchronize(d));
  tfc_semaphore_free(done);
  assert_true(d->driver->in_use(d) == 0);
  tfc_devices_close(&set);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

static tfc_status step(float by) {
  struct tfc_step s = {.id = (int64_t)value + 1};
  fill(&x, by);
  value++;
  assert_ok(d->driver->submit(d, prepared, &s, NULL, 0, &(struct tfc_timepoint){done, value}, 1));
  assert_ok(tfc_semaphore_wait(done, value, 0, -1));
  return s.status;
}
static void right(float by) {
  assert_ok(step(by));
  assert_true(element(&y) == expected + by);
  expected += by;
  assert_true(element(&z) == expected + by);
  assert_true(element(&variable.value) == expected);
}
static uint64_t replays(void) {
  return tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH);
}

// The old value is still referenced while v is updated (by an element of a queue, or by a read of another step).
static void read_by_others(void **state) {
  (void)state;
  open_all();
  for (int i = 0; i < 5; i++) right((float)(i + 1));
  assert_int_equal(replays(), 3);
  for (int i = 0; i < 6; i++) {
    struct tfc_tensor kept = {0};
    float was = expected;
    tfc_tensor_share(&variable.value, &kept);
    right(3);
    assert_true(kept.data != variable.value.data);
    assert_true(element(&kept) == was);
    right(4);
    assert_true(element(&kept) == was);
    tfc_tensor_release(&kept);
    for (int k = 0; k < 3; k++) right((float)k);
  }
  assert_true(replays() > 15); // the segment is still replayed
  close_all();
}

// Between two steps the variable is restored, gets other memory, or is set by another plan.
static void moved_between(void **state) {
  (void)state;
  open_all();
  for (int i = 0; i < 4; i++) right(1);
  for (int i = 0; i < 6; i++) {
    struct tfc_buffer *other = NULL;
    assert_ok(d->driver->allocate(d, N * 4, &other));
    tfc_buffer_release(variable.value.buffer); // the last reference: the memory may be used for something else
    variable.value.buffer = other;
    variable.value.data = other->data;
    fill(&variable.value, expected = 100.0f * (float)i);
    struct tfc_buffer *scribbled = NULL;
    assert_ok(d->driver->allocate(d, N * 4, &scribbled));
    struct tfc_tensor t = {.dtype = TFC_FLOAT, .shape = shape, .data = scribbled->data, .size = N * 4};
    fill(&t, -1);
    for (int k = 0; k < 3; k++) right(2);
    assert_true(element(&t) == -1);
    tfc_buffer_release(scribbled);
  }
  variable.initialized = false; // as after restoring a snapshot that was taken before the variable had a value
  tfc_status s = step(1);
  assert_non_null(s);
  assert_int_equal(tfc_status_code(s), TFC_FAILED_PRECONDITION);
  tfc_status_free(s);
  variable.initialized = true;
  for (int i = 0; i < 3; i++) right(1);
  uint64_t before = replays();
  for (int i = 0; i < 3; i++) right(1);
  assert_int_equal(replays() - before, 3);
  close_all();
}

// The update gives its variable other memory in every step, also during the capture. So operations that read the
// variable before the update find it at another address in the next step.
static struct tfc_buffer *taken[8];
static int taken_count;
static void take_some(void) { // allocates memory, as another thread could do
  struct tfc_buffer *b = NULL;
  if (taken_count == 8) return;
  assert_ok(d->driver->allocate(d, N * 4, &b));
  memset(tfc_cuda_fake_host(b->data), 0x7f, N * 4);
  taken[taken_count++] = b;
}
static void moved_within(void **state) {
  (void)state;
  open_all();
  replaces = true;
  for (int i = 0; i < 3; i++) right(2);
  close_all();
  open_all();
  replaces = true;
  for (int i = 0; i < 2; i++) right(1);
  taken_count = 0;
  // Memory that the update released must not be given to others before the captured graph was launched.
  meanwhile = take_some;
  for (int i = 0; i < 4; i++) right(5);
  meanwhile = NULL;
  for (int i = 0; i < taken_count; i++) tfc_buffer_release(taken[i]);
  assert_int_equal(taken_count, 8);
  for (int i = 0; i < 20; i++) right(7);
  replaces = false;
  for (int i = 0; i < 3; i++) right(1);
  close_all();
}

// If a capture fails, the operations are launched one by one; but if an update has already given the variable other
// memory
// (`moves`), they cannot run again, and the step fails.
static void capture_fails(void **state) {
  (void)state;
  for (int moves = 0; moves < 2; moves++) {
    open_all();
    replaces = moves;
    for (int i = 0; i < 2; i++) right(1);
    launch_fails = 2; // the launch fails in the node 'after'
    if (moves) {
      assert_fails(step(1), TFC_INTERNAL, "node 'after' (TestRead)");
      fill(&variable.value, expected = 5);
    } else {
      right(1); // the operations are launched one by one
    }
    for (int i = 0; i < 3; i++) right(2);
    close_all();
  }
}

// The memory that a capture keeps counts against the device's limit. If there is too little, nothing is captured.
static void no_room(void **state) {
  (void)state;
  open_all();
  for (int i = 0; i < 2; i++) right(1);
  tfc_cuda_fake_fail(TFC_CUDA_FAKE_ALLOCATE, 1, 1, TFC_CUDA_OUT_OF_MEMORY);
  replaces = true; // makes the update allocate memory
  tfc_cuda_memory_trim(&tfc_cuda_device_of(d)->memory);
  assert_int_equal(replays(), 0);
  right(1);
  tfc_cuda_fake_fail(TFC_CUDA_FAKE_ALLOCATE, 0, 0, 0);
  assert_int_equal(replays(), 0);
  replaces = false;
  for (int i = 0; i < 3; i++) right(2);
  assert_int_equal(replays(), 3);
  close_all();
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(read_by_others), cmocka_unit_test(moved_between),
                                     cmocka_unit_test(moved_within), cmocka_unit_test(capture_fails),
                                     cmocka_unit_test(no_room)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
