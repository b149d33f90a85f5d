// In ready order, values move between GPUs by copies on the GPUs' streams, and kernels wait for them on their streams;
// the host waits only for what is fetched. On a fake of the CUDA calls.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "profiler/collector.h"
#include "profiler/collector_gpu.h"
#include "runtime/device/cuda/device.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/import.h"
#include "tests/common/fake_watcher.h"
#include "tests/common/spread_loop.h"

#ifdef TFC_SANITIZED
enum { SEEDS = 3, PLACES = 4, ITERATIONS = 6 };
#else
enum { SEEDS = 8, PLACES = 24, ITERATIONS = 12 };
#endif

// --- Kernels: the fake runs them when their stream reaches them, not when they are launched ------------------------
struct binary {
  const float *a, *b;
  float *y;
  size_t a_size, b_size, size; // a size of 1: one value for all elements
  float sign;                  // y = a + sign * b; 0: y = a * b
};
static void compute(void *argument) {
  const struct binary *k = argument;
  const float *a = tfc_cuda_fake_host(k->a), *b = tfc_cuda_fake_host(k->b);
  float *y = tfc_cuda_fake_host(k->y);
  for (size_t i = 0; i < k->size; i++) {
    float p = a[k->a_size == 1 ? 0 : i], q = b[k->b_size == 1 ? 0 : i];
    y[i] = k->sign == 0 ? p * q : p + k->sign * q;
  }
}
static tfc_status launch_binary(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *a = l->ctx->inputs[0], *b = l->ctx->inputs[1], *like = a->size >= b->size ? a : b;
  struct tfc_tensor *y = NULL;
  tfc_str op = l->ctx->node->op;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, like, &y));
  const struct binary k = {a->data,
                           b->data,
                           y->data,
                           a->size / 4,
                           b->size / 4,
                           y->size / 4,
                           tfc_str_is(op, "Mul")   ? 0
                           : tfc_str_is(op, "Sub") ? -1.0f
                                                   : 1.0f};
  int failed = tfc_cuda_fake_launch(l->stream, compute, &k, sizeof k);
  if (!failed) tfc_cuda_count_launch();
  return tfc_cuda_status(l, failed);
}
static const struct tfc_cuda_kernel rows[] = {{"Mul", TFC_TYPE_BIT(TFC_FLOAT), NULL, launch_binary, 0},
                                              {"AddV2", TFC_TYPE_BIT(TFC_FLOAT), NULL, launch_binary, 0},
                                              {"Sub", TFC_TYPE_BIT(TFC_FLOAT), NULL, launch_binary, 0}};
TFC_CUDA_KERNELS(rows);

static void open_on(struct spread_loop *l, const char *devices) {
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  spread_loop_open(l, devices, NULL);
  assert_ok(spread_loop_run(l, 2, NULL));
}

static void nothing_by_the_host(void **state) {
  struct spread_loop l;
  open_on(&l, *state);
  static const enum tfc_cuda_fake_call blocking[] = {TFC_CUDA_FAKE_PAGEABLE, TFC_CUDA_FAKE_STREAM_SYNCHRONIZE};
  uint64_t made[2][2] = {0};
  for (int longer = 0; longer < 2; longer++) {
    const int32_t n = longer ? 30 : 3;
    for (int k = 0; k < 2; k++) made[longer][k] = tfc_cuda_fake_calls(blocking[k]);
    const uint64_t copies = tfc_cuda_fake_calls(TFC_CUDA_FAKE_COPY);
    assert_ok(spread_loop_run(&l, n, NULL));
    for (int k = 0; k < 2; k++) made[longer][k] = tfc_cuda_fake_calls(blocking[k]) - made[longer][k];
    assert_true(tfc_cuda_fake_calls(TFC_CUDA_FAKE_COPY) - copies >= 3 * (uint64_t)n);
  }
  assert_int_equal(made[0][0], 2); // only values that are fetched have pageable copies
  assert_int_equal(made[1][0], 2);
  // The host waits for the fetches and for the end of the step, however many iterations there are.
  assert_int_equal(made[1][1], made[0][1]);
  // direct copies are enabled once for each direction, by the first copy
  assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_PEER), strncmp(*state, "gpu", 3) ? 0 : 2);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
  spread_loop_close(&l);
}

// Large tensors count up to PERIOD again and again; no piece of a copy is a multiple of that. (Whole periods are
// written and compared at once: one by one, the elements would take longer than what is tested.)
enum { PERIOD = 1009 };
static void write_pattern(float *x, int64_t n, int factor, int offset) {
  const int64_t first = n < PERIOD ? n : PERIOD;
  for (int64_t i = 0; i < first; i++) x[i] = (float)(factor * (i + offset));
  for (int64_t made = first, more; made < n; made += more) {
    more = made < n - made ? made : n - made;
    memcpy(x + made, x, (size_t)more * sizeof *x);
  }
}
static void check_pattern(const float *x, int64_t n, int factor, int offset) {
  for (int64_t i = 0; i < PERIOD && i < n; i++)
    if (x[i] != (float)(factor * (i + offset))) fail_msg("element %lld", (long long)i);
  if (n > PERIOD) assert_int_equal(memcmp(x, x + PERIOD, (size_t)(n - PERIOD) * sizeof *x), 0);
}

// In a plan in fixed order, a large tensor goes from a CPU device to a GPU in two copies through pinned memory. The CPU
// device reads the GPU's tensor by one copy to pageable memory, made by a thread that may block.
static void large(void **state) {
  enum { N = 17 * 1000 * 1000 + 7 };
  const struct tfc_shape shape = TFC_SHAPE(N);
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor value = {0}, got = {0};
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  tfc_cuda_fake_delay(20000);
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &shape), y = tfc_add2(b, "AddV2", x, x);
  struct tfc_output z = tfc_add2(b, "AddV2", y, x);
  uint16_t placement[8] = {0};
  placement[x.node] = placement[z.node] = 1;
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open(*state, NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  const struct tfc_run_spec spec = {
      .feeds = &x, .feed_count = 1, .feed_shapes = &shape, .fetches = &z, .fetch_count = 1, .placement = placement};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &shape, &value));
  for (int step = 0; step < 3; step++) {
    write_pattern(value.data, N, 1, step);
    const uint64_t pageable = tfc_cuda_fake_calls(TFC_CUDA_FAKE_PAGEABLE),
                   copies = tfc_cuda_fake_calls(TFC_CUDA_FAKE_COPY);
    assert_ok(tfc_plan_run(plan, &value, &got, NULL));
    assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_PAGEABLE) - pageable, 1);
    assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_COPY) - copies, 2 + 1);
    check_pattern(got.data, N, 3, step);
    tfc_tensor_release(&got);
  }
  assert_int_equal(tfc_cuda_fake_violations(), 0);
  tfc_tensor_release(&value);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
}
// A tensor is copied to the device and back in two pieces each way, the second shorter: every byte arrives in its
// place.
static void pieces_both_ways(void **state) {
  enum { N = 33 * 1000 * 1000 + 5 }; // 126 MiB: two pieces
  const struct tfc_shape shape = TFC_SHAPE(N);
  struct tfc_device_set set = {0};
  struct tfc_tensor value = {0}, there = {0}, back = {0};
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 1});
  assert_ok(tfc_devices_open(*state, NULL, 0, &set));
  struct tfc_device *d = set.devices[0];
  assert_ok(tfc_tensor_create(TFC_FLOAT, &shape, &value));
  write_pattern(value.data, N, 1, 0);
  const uint64_t copies = tfc_cuda_fake_calls(TFC_CUDA_FAKE_COPY);
  for (int way = 0; way < 2; way++) {
    const struct tfc_copy copy = {.source_device = way ? d : NULL,
                                  .target_device = way ? NULL : d,
                                  .source = way ? &there : &value,
                                  .target = way ? &back : &there};
    struct tfc_step step = {0};
    assert_ok(d->driver->copy(d, &copy, &step, NULL, 0, NULL, 0));
    assert_ok(d->driver->synchronize(d));
    assert_false(step.failed);
  }
  assert_int_equal(tfc_cuda_fake_calls(TFC_CUDA_FAKE_COPY) - copies, 2 + 2);
  assert_int_equal(back.size, value.size);
  assert_int_equal(memcmp(back.data, value.data, value.size), 0);
  tfc_tensor_release(&value);
  tfc_tensor_release(&there);
  tfc_tensor_release(&back);
  tfc_devices_close(&set);
}

static void random_delays(void **state) {
  struct spread_loop l;
  open_on(&l, *state);
  tfc_cuda_fake_delay(200000);
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    tfc_cuda_fake_shuffle(seed);
    assert_ok(spread_loop_run(&l, ITERATIONS, NULL));
  }
  assert_int_equal(tfc_cuda_fake_violations(), 0);
  spread_loop_close(&l);
}

static void failures(void **state) {
  static const enum tfc_cuda_fake_call kinds[] = {TFC_CUDA_FAKE_COPY,          TFC_CUDA_FAKE_STREAM_WAIT,
                                                  TFC_CUDA_FAKE_EVENT_RECORD,  TFC_CUDA_FAKE_ALLOCATE,
                                                  TFC_CUDA_FAKE_ALLOCATE_HOST, TFC_CUDA_FAKE_ANY};
  struct spread_loop l;
  open_on(&l, *state);
  tfc_cuda_fake_delay(20000);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (uint64_t n = 1; n <= PLACES; n++) {
      const uint64_t before = tfc_cuda_fake_calls(kinds[k]);
      tfc_cuda_fake_fail(kinds[k], n, 1, 1);
      tfc_status s = spread_loop_run(&l, ITERATIONS, NULL);
      const bool reached = tfc_cuda_fake_calls(kinds[k]) - before >= n;
      if (reached != (s != NULL))
        fail_msg("calls %u fail, number %llu: no failure", (unsigned)k, (unsigned long long)n);
      if (s && !strstr(tfc_status_message(s), "gpu:")) fail_msg("not where it failed: %s", tfc_status_message(s));
      tfc_status_free(s);
      tfc_cuda_fake_fail(kinds[k], 0, 0, 0);
      assert_ok(spread_loop_run(&l, 2, NULL));
    }
  spread_loop_close(&l);
}

// When a device is lost in the middle of a step, the step ends with an error that says so.
static void lost(void **state) {
  struct spread_loop l;
  for (uint64_t n = 1; n <= PLACES; n += 3) {
    open_on(&l, *state);
    tfc_cuda_fake_delay(20000);
    tfc_cuda_fake_fail_work(n, 700);
    assert_fails(spread_loop_run(&l, ITERATIONS, NULL), TFC_UNAVAILABLE, "illegal memory access");
    spread_loop_close(&l);
    tfc_cuda_fake_reset();
  }
}

// --- Variables ---------------------------------------------------------------------------------------------------
// y = 2 v is computed on the other GPU and kept in w there. `begin` gives v its first value. `set` writes x to v: after
// y in the first graph, before `read` in the second.
static const char by_reference[] =
    "node { name: 'v' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } }"
    "  attr { key: 'shape' value { shape { dim { size: 4096 } } } } }"
    "node { name: 'begin' op: 'Assign' input: 'v' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }"
    "node { name: 'read' op: 'Identity' input: 'v' attr { key: 'T' value { type: DT_FLOAT } } }"
    "node { name: 'set' op: 'Assign' input: 'v' input: 'x' input: '^y' attr { key: 'T' value { type: DT_FLOAT } } }";
static const char by_handle[] =
    "node { name: 'v' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } }"
    "  attr { key: 'shape' value { shape { dim { size: 4096 } } } } }"
    "node { name: 'begin' op: 'AssignVariableOp' input: 'v' input: 'x'"
    "  attr { key: 'dtype' value { type: DT_FLOAT } } }"
    "node { name: 'set' op: 'AssignVariableOp' input: 'v' input: 'x' attr { key: 'dtype' value { type: DT_FLOAT } } }"
    "node { name: 'read' op: 'ReadVariableOp' input: 'v' input: '^set'"
    "  attr { key: 'dtype' value { type: DT_FLOAT } } }";
static const char rest[] =
    "node { name: 'w' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } }"
    "  attr { key: 'shape' value { shape { dim { size: 4096 } } } } }"
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }"
    "  attr { key: 'shape' value { shape { dim { size: 4096 } } } } }"
    "node { name: 'two' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor {"
    "  dtype: DT_FLOAT tensor_shape { } float_val: 2 } } } }"
    "node { name: 'y' op: 'Mul' input: 'read' input: 'two' attr { key: 'T' value { type: DT_FLOAT } } }"
    "node { name: 'keep' op: 'Assign' input: 'w' input: 'y' attr { key: 'T' value { type: DT_FLOAT } } }";

// `before`: the step reads the value that v had before the step.
static void variable(const char *text, const char *devices, bool before) {
  static const char *const elsewhere[] = {"w", "y", "keep", "read"};
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_tensor x = {0};
  uint16_t placement[9] = {0};
  char whole[4096];
  snprintf(whole, sizeof whole, "%s%s", text, rest);
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  assert_ok(tfc_graph_parse(tfc_str_from(whole), "copies", NULL, &g));
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(4096), &x));
  memset(x.data, 0, x.size);
  const uint32_t begin = tfc_graph_find(g, TFC_STR("begin")),
                 targets[] = {tfc_graph_find(g, TFC_STR("set")), tfc_graph_find(g, TFC_STR("keep"))};
  const struct tfc_output feed = {tfc_graph_find(g, TFC_STR("x")), 0};
  // With `before`, `read` stays on the device of v: it passes on the memory of v, and that is copied to the other GPU.
  for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere - before; i++)
    placement[tfc_graph_find(g, tfc_str_from(elsewhere[i]))] = 1;
  struct tfc_run_spec spec = {
      .feeds = &feed, .feed_count = 1, .targets = &begin, .target_count = 1, .placement = placement, .dynamic = true};
  assert_ok(tfc_session_run(session, &spec, &x, NULL, NULL));
  spec.targets = targets;
  spec.target_count = 2;
  for (uint64_t seed = 1; seed <= 4 * SEEDS; seed++) {
    struct tfc_tensor got = {0};
    for (int i = 0; i < 4096; i++) ((float *)x.data)[i] = (float)seed;
    tfc_cuda_fake_delay(2000000);
    tfc_cuda_fake_shuffle(seed);
    assert_ok(tfc_session_run(session, &spec, &x, NULL, NULL));
    assert_ok(tfc_session_get_variable(session, TFC_STR("w"), &got));
    for (int i = 0; i < 4096; i++)
      if (((const float *)got.data)[i] != 2 * (float)(seed - before))
        fail_msg("seed %llu: %g", (unsigned long long)seed, (double)((const float *)got.data)[i]);
    tfc_tensor_release(&got);
  }
  tfc_tensor_release(&x);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
}

// The variable is overwritten in place as soon as the copy is launched; the write must wait until the copy has read it.
static void written_in_place(void **state) {
  variable(by_reference, *state, true);
}
// The reading operation is placed on the other GPU: it reads the memory of the variable's GPU, after `set` has written.
static void read_elsewhere(void **state) {
  variable(by_handle, *state, false);
}

// --- Profiles ----------------------------------------------------------------------------------------------------
static void profile(const char *devices, bool profiler) {
  static const struct tfc_gpu_profiler seeing = {"made up", fake_start, fake_push, fake_pop, fake_deliver, fake_record};
  static const struct tfc_cuda_fake_watcher watcher = {fake_launched, fake_ran};
  enum { DELAY_NS = 50000 };
  struct spread_loop l;
  struct tfc_collector *c = NULL;
  struct tfc_step_profile p = {0};
  open_on(&l, devices);
  tfc_gpu_profiler_set(profiler ? &seeing : NULL, "another profiler is attached");
  tfc_cuda_fake_watch(profiler ? &watcher : NULL);
  assert_ok(tfc_collector_create(l.set.count, 1000, &c));
  assert_ok(tfc_collector_watch(c, &l.set));
  const struct tfc_collector_names names = {l.graph, tfc_plan_info(l.plan)};
  tfc_cuda_fake_delay(DELAY_NS);
  for (int32_t n = 1; n < 10; n += 2) {
    const bool loses = n == 5 && profiler;
    tfc_collector_reset(c);
    if (loses) atomic_store(&fake_lost_copies, 1);
    assert_ok(spread_loop_run(&l, n, &(struct tfc_run_options){.trace = tfc_collector_sink(c)}));
    tfc_status s = tfc_collector_drain(c, &names, NULL, &p);
    if (loses) {
      assert_fails(s, TFC_ABORTED, "GPU trace: the transfer of node '");
      continue;
    }
    assert_ok(s);
    spread_loop_check_transfers(&l, n, &p, profiler); // without a profiler, each device is timed by its own events
    assert_true(profiler ? p.gpu_busy_ns > 0 : p.works.count == 0);
    assert_int_equal(p.gpu_attributed_ns, p.gpu_busy_ns);
    int32_t made = 0;
    for (size_t i = 0; i < p.ops.count; i++) {
      const struct tfc_profile_op *o = &p.ops.data[i];
      if (o->node != l.back) continue;
      made++;
      // (A profiler does not count the fake's delay, which is before the work.)
      assert_true(o->dispatch_ns > 0 && o->duration_ns >= (profiler ? 0 : DELAY_NS));
    }
    assert_int_equal(made, n);
  }
  assert_ok(tfc_collector_rest(c));
  tfc_cuda_fake_watch(NULL);
  tfc_step_profile_deinit(&p);
  tfc_collector_free(c);
  spread_loop_close(&l);
}
static void by_profiler(void **state) {
  profile(*state, true);
}
static void by_events(void **state) {
  profile(*state, false);
}

int main(void) {
  static char one[] = "gpu:0,cpu:0", gpus[] = "gpu:0-1,cpu:0", parts[] = "vgpu:0-1,cpu:0";
  tfc_driver_add(&tfc_driver_gpu);
  tfc_driver_add(&tfc_driver_vgpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(nothing_by_the_host, parts),
                                     cmocka_unit_test_prestate(nothing_by_the_host, gpus),
                                     cmocka_unit_test_prestate(large, one),
                                     cmocka_unit_test_prestate(pieces_both_ways, one),
                                     cmocka_unit_test_prestate(random_delays, parts),
                                     cmocka_unit_test_prestate(random_delays, gpus),
                                     cmocka_unit_test_prestate(failures, parts),
                                     cmocka_unit_test_prestate(lost, gpus),
                                     cmocka_unit_test_prestate(written_in_place, parts),
                                     cmocka_unit_test_prestate(read_elsewhere, gpus),
                                     cmocka_unit_test_prestate(by_profiler, parts),
                                     cmocka_unit_test_prestate(by_events, parts),
                                     cmocka_unit_test_prestate(by_events, gpus)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
