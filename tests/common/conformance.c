#include "tests/common/conformance.h"

#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/device/driver.h"

static const char *const *kinds;

// --- A graph of one op, built by hand ------------------------------------------------------------------------------
static tfc_status add_one(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  const float *a = x->data;
  float *b = y->data;
  int64_t n = tfc_tensor_elements(x);
  TFC_KERNEL_CHECK(n != 7, "seven is not liked");
  for (int64_t i = 0; i < n; i++) b[i] = a[i] + 1;
  return NULL;
}
const struct tfc_op_def tfc_conformance_add_one = {
    .name = "AddOne", .inputs = "x: float", .outputs = "y: float", .kernel = add_one};
static const struct tfc_op_def no_kernel_def = {.name = "NoKernel"};

static struct tfc_node node;
static struct tfc_output edges[1] = {{0, 0}};
static tfc_dtype dtypes[1] = {TFC_FLOAT};
static struct tfc_graph graph;

struct chain { // y = x + 1, `length` times
  struct tfc_tensor slots[65];
  const struct tfc_tensor *in[64];
  struct tfc_tensor *out[64];
  struct tfc_segment_op ops[64];
  struct tfc_shape shape;
  struct tfc_segment segment;
  struct tfc_buffer *memory;
};

static void chain_init(struct chain *c, struct tfc_device *d, int length, int64_t elements) {
  node = (struct tfc_node){.name = TFC_STR("the_node"),
                           .op = TFC_STR("AddOne"),
                           .def = &tfc_conformance_add_one,
                           .input_count = 1,
                           .output_count = 1};
  graph = (struct tfc_graph){
      .nodes = &node, .node_count = 1, .inputs = edges, .edge_count = 1, .output_dtypes = dtypes, .output_total = 1};
  *c = (struct chain){.shape = TFC_SHAPE(elements)};
  size_t bytes = (size_t)elements * 4, stride = (bytes + 63) & ~(size_t)63;
  assert_ok(d->driver->allocate(d, stride * (size_t)(length + 1) + 64, &c->memory));
  for (int i = 0; i <= length; i++)
    c->slots[i] = (struct tfc_tensor){
        .dtype = TFC_FLOAT, .shape = c->shape, .size = bytes, .data = (char *)c->memory->data + stride * (size_t)i};
  for (int i = 0; i < length; i++) {
    c->in[i] = &c->slots[i];
    c->out[i] = &c->slots[i + 1];
    c->ops[i] = (struct tfc_segment_op){.def = &tfc_conformance_add_one,
                                        .inputs = &c->in[i],
                                        .outputs = &c->out[i],
                                        .input_count = 1,
                                        .output_count = 1,
                                        .input_shapes = &c->shape,
                                        .output_shapes = &c->shape,
                                        .input_dtypes = dtypes};
  }
  c->segment = (struct tfc_segment){.graph = &graph, .ops = c->ops, .op_count = (uint32_t)length};
}

static void each(void (*check)(struct tfc_device_set *set)) {
  for (size_t i = 0; kinds[i]; i++) {
    struct tfc_device_set set = {0};
    assert_ok(tfc_devices_open(kinds[i], NULL, 0, &set));
    assert_int_equal(set.count, 2);
    assert_int_equal(set.devices[1]->index, 1);
    check(&set);
    for (uint32_t d = 0; d < set.count; d++) assert_true(set.devices[d]->driver->in_use(set.devices[d]) == 0);
    tfc_devices_close(&set);
  }
}

static void check_segment(struct tfc_device_set *set) {
  struct tfc_device *d = set->devices[0];
  struct chain c;
  chain_init(&c, d, 64, 100);
  float x[100], y[100];
  for (int i = 0; i < 100; i++) x[i] = (float)i;
  assert_ok(d->driver->write(d, x, &c.slots[0]));
  struct tfc_prepared *p = NULL;
  assert_ok(d->driver->prepare(d, &c.segment, &p));
  struct tfc_semaphore *gate = NULL, *done = NULL;
  assert_ok(tfc_semaphore_create(&gate));
  assert_ok(tfc_semaphore_create(&done));
  struct tfc_span spans[2] = {0};
  struct tfc_step step = {.id = 1, .spans = spans};
  struct tfc_timepoint wait = {gate, 5}, signal = {done, 9};
  assert_ok(d->driver->submit(d, p, &step, &wait, 1, &signal, 1));
  assert_fails(tfc_semaphore_wait(done, 9, 0, 2000000), TFC_DEADLINE_EXCEEDED, "did not reach 9");
  tfc_semaphore_signal(gate, 4);
  assert_fails(tfc_semaphore_wait(done, 9, 0, 2000000), TFC_DEADLINE_EXCEEDED, "");
  tfc_semaphore_signal(gate, 6);
  assert_ok(tfc_semaphore_wait(done, 9, 1000, -1));
  tfc_semaphore_signal(done, 3); // the value of a timeline never decreases
  assert_true(tfc_semaphore_reached(done, 9));
  assert_ok(d->driver->synchronize(d));
  assert_ok(d->driver->read(d, &c.slots[64], y));
  for (int i = 0; i < 100; i++) assert_true(y[i] == x[i] + 64);
  assert_true(spans[0].begin > 0 && spans[0].end >= spans[0].begin && spans[1].begin == 0);
  d->driver->release(d, p);
  tfc_buffer_release(c.memory);
  tfc_semaphore_free(gate);
  tfc_semaphore_free(done);
}

// A failure ends the step on every device, and the devices can still be used.
static void check_failure(struct tfc_device_set *set) {
  struct tfc_device *d = set->devices[0];
  struct chain bad, good;
  chain_init(&bad, d, 2, 7);
  chain_init(&good, d, 1, 3);
  float x[8] = {1, 2, 3};
  assert_ok(d->driver->write(d, x, &bad.slots[0]));
  assert_ok(d->driver->write(d, x, &good.slots[0]));
  struct tfc_prepared *p = NULL, *q = NULL;
  assert_ok(d->driver->prepare(d, &bad.segment, &p));
  assert_ok(d->driver->prepare(d, &good.segment, &q));
  struct tfc_semaphore *s = NULL;
  assert_ok(tfc_semaphore_create(&s));
  struct tfc_step step = {.id = 1}, next = {.id = 2};
  assert_ok(d->driver->submit(d, p, &step, NULL, 0, &(struct tfc_timepoint){s, 1}, 1));
  assert_ok(d->driver->submit(d, q, &step, NULL, 0, &(struct tfc_timepoint){s, 2}, 1));
  assert_ok(d->driver->submit(d, q, &next, NULL, 0, &(struct tfc_timepoint){s, 3}, 1));
  assert_ok(tfc_semaphore_wait(s, 3, 0, -1));
  assert_true(step.failed && !next.failed);
  assert_fails(step.status, TFC_INVALID_ARGUMENT, "node 'the_node' (AddOne) on ");
  float y[3];
  assert_ok(d->driver->read(d, &good.slots[1], y));
  assert_true(y[2] == 4);
  bad.ops[1].def = &no_kernel_def;
  struct tfc_prepared *none = NULL;
  assert_fails(d->driver->prepare(d, &bad.segment, &none), TFC_UNIMPLEMENTED, "'the_node': op NoKernel");
  const char *reason = NULL;
  assert_false(d->driver->supports(d, &no_kernel_def, TFC_FLOAT, &reason));
  assert_non_null(reason);
  assert_true(d->driver->supports(d, &tfc_conformance_add_one, TFC_FLOAT, NULL));
  d->driver->release(d, p);
  d->driver->release(d, q);
  assert_ok(d->driver->synchronize(d));
  tfc_buffer_release(bad.memory);
  tfc_buffer_release(good.memory);
  tfc_semaphore_free(s);
}

// copies a tensor from the host to device 0, from there to device 1, and back to the host; each copy waits for the one
// before it
static void check_copies(struct tfc_device_set *set) {
  enum { N = 100000 };
  float *x = malloc(N * 4), *y = calloc(N, 4);
  for (int i = 0; i < N; i++) x[i] = (float)i;
  struct tfc_tensor host = {.dtype = TFC_FLOAT, .shape = TFC_SHAPE(N), .data = x, .size = N * 4}, back = host;
  back.data = y;
  struct tfc_buffer *b[2];
  struct tfc_tensor t[2], grown = {0};
  for (int i = 0; i < 2; i++) {
    assert_ok(set->devices[i]->driver->allocate(set->devices[i], N * 4, &b[i]));
    t[i] = host;
    t[i].data = b[i]->data;
  }
  struct tfc_device *d0 = set->devices[0], *d1 = set->devices[1];
  struct tfc_semaphore *s = NULL;
  assert_ok(tfc_semaphore_create(&s));
  struct tfc_trace_record records[8];
  struct tfc_trace_buffer buffers[3] = {0}, copies[2] = {{records, 0, 4, 0}, {records + 4, 0, 4, 0}};
  struct tfc_trace_sink sink = {.buffers = buffers, .buffer_count = 3, .copies = copies};
  struct tfc_step step = {.id = 1, .trace = &sink};
  struct tfc_copy in = {NULL, d0, &host, &t[0], NULL, 0, false}, over = {d0, d1, &t[0], &t[1], NULL, 1, false},
                  made = {d0, d1, &t[0], &grown, NULL, 2, false}, out = {d1, NULL, &t[1], &back, NULL, 3, false};
  struct tfc_timepoint at[5];
  for (uint64_t i = 0; i < 5; i++) at[i] = (struct tfc_timepoint){s, i + 1};
  assert_ok(d1->driver->copy(d1, &out, &step, &at[2], 1, &at[3],
                             1)); // it is submitted first, although it waits for the copy of the next line: the order
                                  // of submission is free
  assert_ok(d0->driver->copy(d0, &in, &step, NULL, 0, &at[0], 1)); // order holds only within a device
  assert_ok(tfc_semaphore_wait(s, 1, 0, -1));
  tfc_semaphore_signal(s, 3);
  assert_ok(tfc_semaphore_wait(s, 4, 0, -1));
  assert_ok(d1->driver->copy(d1, &over, &step, &at[0], 1, NULL, 0));
  assert_ok(d1->driver->copy(d1, &made, &step, NULL, 0, NULL, 0));
  assert_ok(d1->driver->copy(d1, &out, &step, NULL, 0, &at[4], 1));
  assert_ok(tfc_semaphore_wait(s, 5, 0, -1));
  assert_false(step.failed);
  assert_memory_equal(x, y, N * 4);
  memset(y, 0, N * 4);
  assert_ok(d1->driver->read(d1, &grown, y));
  assert_memory_equal(x, y, N * 4);
  assert_int_equal(copies[0].count, 1);
  assert_int_equal(copies[1].count, 4);
  assert_int_equal(copies[1].records[1].bytes, N * 4);
  for (int i = 0; i < 2; i++) assert_ok(set->devices[i]->driver->synchronize(set->devices[i]));
  tfc_tensor_release(&grown);
  tfc_buffer_release(b[0]);
  tfc_buffer_release(b[1]);
  tfc_semaphore_free(s);
  free(x);
  free(y);
}

static void check_launch(struct tfc_device_set *set) {
  struct tfc_device *d = set->devices[0];
  struct chain c;
  chain_init(&c, d, 1, 5);
  float x[5] = {1, 2, 3, 4, 5}, y[5];
  assert_ok(d->driver->write(d, x, &c.slots[0]));
  struct tfc_prepared *p = NULL;
  assert_ok(d->driver->prepare(d, &c.segment, &p));
  struct tfc_kernel_env env = {0};
  d->driver->environment(d, &env);
  struct tfc_tensor result = {0}, *outputs[1] = {&result};
  struct tfc_kernel_ctx ctx = {.env = &env, .inputs = c.in, .outputs = outputs, .input_count = 1, .output_count = 1};
  assert_ok(d->driver->launch(d, p, 0, &ctx));
  assert_ok(d->driver->read(d, &result, y));
  assert_true(y[4] == 6);
  tfc_tensor_release(&result);
  c.slots[0].shape = TFC_SHAPE(7);
  c.slots[0].size = 28;
  struct chain seven;
  chain_init(&seven, d, 1, 7);
  ctx.inputs = seven.in;
  float z[7] = {0};
  assert_ok(d->driver->write(d, z, &seven.slots[0]));
  assert_fails(d->driver->launch(d, p, 0, &ctx), TFC_INVALID_ARGUMENT, "inputs (float32[7])");
  tfc_tensor_release(&result);
  d->driver->release(d, p);
  tfc_buffer_release(c.memory);
  tfc_buffer_release(seven.memory);
}

static void check_many(struct tfc_device_set *set) { // two devices pass work to each other a thousand times
  struct tfc_device *d[2] = {set->devices[0], set->devices[1]};
  struct chain c[2];
  struct tfc_prepared *p[2];
  struct tfc_semaphore *s[2];
  float zero[4] = {0};
  for (int i = 0; i < 2; i++) {
    chain_init(&c[i], d[i], 1, 4);
    c[i].slots[1].data = c[i].slots[0].data; // the result is computed in place
    assert_ok(d[i]->driver->write(d[i], zero, &c[i].slots[0]));
    assert_ok(d[i]->driver->prepare(d[i], &c[i].segment, &p[i]));
    assert_ok(tfc_semaphore_create(&s[i]));
  }
  struct tfc_step step = {.id = 1};
  for (uint64_t k = 1; k <= 1000; k++)
    for (int i = 0; i < 2; i++) {
      struct tfc_timepoint wait = {s[!i], i ? k : k - 1}, signal = {s[i], k};
      assert_ok(d[i]->driver->submit(d[i], p[i], &step, &wait, 1, &signal, 1));
    }
  assert_ok(tfc_semaphore_wait(s[1], 1000, 0, -1));
  float y[4];
  for (int i = 0; i < 2; i++) assert_ok(d[i]->driver->synchronize(d[i]));
  for (int i = 0; i < 2; i++) {
    assert_ok(d[i]->driver->read(d[i], &c[i].slots[0], y));
    assert_true(y[0] == 1000 && y[3] == 1000);
    d[i]->driver->release(d[i], p[i]);
    tfc_buffer_release(c[i].memory);
    tfc_semaphore_free(s[i]);
  }
}

static void fill(void *arg, int64_t begin, int64_t end) {
  int32_t *x = arg;
  for (int64_t i = begin; i < end; i++) x[i] = (int32_t)(x[i] * 10 + begin);
}

static void check_parallel(struct tfc_device_set *set) { // every piece runs exactly once, with any number of cores
  struct tfc_kernel_env env = {0};
  set->devices[0]->driver->environment(set->devices[0], &env);
  static int32_t x[1003];
  for (int round = 0; round < 200; round++) {
    memset(x, 0, sizeof x);
    env.parallel_for(&env, 1003, 10, fill, x);
    for (int i = 0; i < 1003; i++) assert_int_equal(x[i], i / 10 * 10);
  }
}

static void segments(void **state) {
  (void)state, each(check_segment);
}
static void failures(void **state) {
  (void)state, each(check_failure);
}
static void copies(void **state) {
  (void)state, each(check_copies);
}
static void launches(void **state) {
  (void)state, each(check_launch);
}
static void many(void **state) {
  (void)state, each(check_many);
}
static void parallel(void **state) {
  (void)state, each(check_parallel);
}

static void limits(void **state) {
  (void)state;
  for (int i = 0; kinds[i]; i++) {
    struct tfc_device_set set = {0};
    struct tfc_memory_limit limit = {"*", 1 << 20};
    assert_ok(tfc_devices_open(kinds[i], &limit, 1, &set));
    struct tfc_device *d = set.devices[0];
    struct tfc_buffer *a = NULL, *b = NULL;
    assert_ok(d->driver->allocate(d, 1000000, &a));
    assert_true(d->driver->in_use(d) == 1000000);
    assert_fails(d->driver->allocate(d, 100000, &b), TFC_RESOURCE_EXHAUSTED, "100 kB asked for, 1.0 MB in use, limit");
    assert_fails(d->driver->allocate(d, SIZE_MAX - 100, &b), TFC_RESOURCE_EXHAUSTED, "");
    tfc_buffer_release(a);
    assert_ok(d->driver->allocate(d, 1 << 20, &b));
    tfc_buffer_release(b);
    tfc_devices_close(&set);
  }
}

int tfc_conformance_run(const char *const *device_lists) {
  kinds = device_lists;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(segments), cmocka_unit_test(failures), cmocka_unit_test(copies), cmocka_unit_test(launches),
      cmocka_unit_test(many),     cmocka_unit_test(parallel), cmocka_unit_test(limits),
  };
  return cmocka_run_group_tests_name("conformance", tests, NULL, NULL);
}
