// Every kind of CUDA call fails once at many places of a step: in captured steps of a recurrent graph on virtual
// devices with copies between them, and in loops in ready order. The step ends with a status that names the node, or
// the device if no node is to blame. The next step is right, and no memory is left over. After an error that ends the
// CUDA context, every call reports that error and nothing hangs.
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/device.h"
#include "runtime/graph/import.h"
#include "tests/common/example.h"
#include "tests/cuda_kernels/streams.h"

#ifdef TFC_SANITIZED
enum { FIRST = 2, PLACES = 2 };
#else
enum { FIRST = 4, PLACES = 8 };
#endif
enum { WARM = 5 }; // number of steps after which everything is captured

struct subject {
  struct example e;
  struct tfc_device_set set;
  struct tfc_session *session;
  struct tfc_snapshot *start;
  struct tfc_plan *plan;
  struct tfc_run_spec spec;
  uint16_t *placement;
  float loss;
  bool dynamic;
};

static tfc_status step(struct subject *s, float *out_loss) {
  struct tfc_tensor loss = {0};
  TFC_RETURN_IF_ERROR(tfc_plan_run(s->plan, s->e.values[0], &loss, NULL));
  memcpy(out_loss, loss.data, sizeof *out_loss);
  tfc_tensor_release(&loss);
  return NULL;
}

static void open_subject(struct subject *s, const char *devices, bool dynamic) {
  *s = (struct subject){.dynamic = dynamic};
  assert_ok(example_load_narrow_mlp(&s->e));
  assert_ok(tfc_devices_open(devices, NULL, 0, &s->set));
  assert_ok(tfc_session_create(s->e.graph, &(struct tfc_session_options){.devices = &s->set}, &s->session));
  assert_ok(
      tfc_session_run(s->session, &(struct tfc_run_spec){.targets = &s->e.init, .target_count = 1}, NULL, NULL, NULL));
  assert_ok(tfc_session_snapshot(s->session, &s->start));
  example_spec(&s->e, &s->spec);
  s->spec.dynamic = dynamic;
  s->placement = calloc(s->e.graph->node_count, sizeof *s->placement);
  // 16 nodes in a row are on one device, so that the segments are worth capturing.
  for (uint32_t i = 0; i < s->e.graph->node_count && !dynamic; i++) {
    const struct tfc_op_def *def = s->e.graph->nodes[i].def;
    s->placement[i] = (uint16_t)(def && def->flags & (TFC_OP_VARIABLE | TFC_OP_UPDATE) ? 0 : i / 16 % s->set.count);
  }
  s->spec.placement = s->placement;
  assert_ok(tfc_plan_create(s->session, &s->spec, &s->plan));
  for (int i = 0; i < WARM; i++) {
    assert_ok(step(s, &s->loss));
    assert_ok(tfc_session_restore(s->session, s->start));
  }
}
static void close_subject(struct subject *s) {
  tfc_plan_free(s->plan);
  tfc_snapshot_free(s->start);
  tfc_session_free(s->session);
  tfc_devices_close(&s->set);
  example_deinit(&s->e);
  free(s->placement);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

static void one_failure(struct subject *s, enum tfc_cuda_fake_call call, uint64_t n, int error, uint64_t *failed) {
  float got = 0;
  tfc_cuda_fake_fail(call, n, 1, error);
  tfc_status failure = step(s, &got);
  if (failure) {
    (*failed)++;
    const char *text = tfc_status_message(failure);
    if (!strstr(text, "gpu:") && !strstr(text, "node")) fail_msg("nothing is named: %s", text);
    if (call == TFC_CUDA_FAKE_GRAPH_LAUNCH && !strstr(text, "nodes '")) fail_msg("no node is named: %s", text);
    const tfc_code code = tfc_status_code(failure);
    assert_true(code == TFC_UNAVAILABLE || code == TFC_RESOURCE_EXHAUSTED);
    tfc_status_free(failure);
  }
  tfc_cuda_fake_fail(call, 0, 0, 0);
  for (int i = 0; i < 2; i++) {
    assert_ok(tfc_session_restore(s->session, s->start));
    assert_ok(step(s, &got));
    if (got != s->loss)
      fail_msg("after a failure of call %d number %llu the loss is %.9g, not %.9g", (int)call, (unsigned long long)n,
               (double)got, (double)s->loss);
  }
  assert_ok(tfc_session_restore(s->session, s->start));
}

static void every_call(struct subject *s) {
  static const enum tfc_cuda_fake_call calls[] = {
      TFC_CUDA_FAKE_ALLOCATE,     TFC_CUDA_FAKE_ALLOCATE_HOST, TFC_CUDA_FAKE_STREAM_SYNCHRONIZE,
      TFC_CUDA_FAKE_STREAM_WAIT,  TFC_CUDA_FAKE_EVENT_CREATE,  TFC_CUDA_FAKE_EVENT_RECORD,
      TFC_CUDA_FAKE_EVENT_QUERY,  TFC_CUDA_FAKE_COPY,          TFC_CUDA_FAKE_SET,
      TFC_CUDA_FAKE_GRAPH_LAUNCH, TFC_CUDA_FAKE_CAPTURE,       TFC_CUDA_FAKE_ANY};
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
    uint64_t failed = 0, before = tfc_cuda_fake_calls(calls[c]);
    float got;
    assert_ok(step(s, &got));
    uint64_t made = tfc_cuda_fake_calls(calls[c]) - before, tried = 0;
    assert_ok(tfc_session_restore(s->session, s->start));
    uint64_t stride = made / PLACES + 1;
    for (uint64_t n = 1; n <= made; n += n < FIRST ? 1 : stride, tried++) one_failure(s, calls[c], n, 1, &failed);
    print_message("call %d: %llu a step, %llu tried, %llu failed\n", (int)calls[c], (unsigned long long)made,
                  (unsigned long long)tried, (unsigned long long)failed);
    if (calls[c] == TFC_CUDA_FAKE_GRAPH_LAUNCH && !s->dynamic) assert_true(made > 0 && failed == tried);
    if (calls[c] == TFC_CUDA_FAKE_COPY) assert_true(failed > 0);
  }
}

static void captured(void **state) {
  (void)state;
  static struct subject s;
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  open_subject(&s, "vgpu:0-1", false);
  every_call(&s);
  close_subject(&s);
}

static void in_ready_order(void **state) {
  (void)state;
  static struct subject s;
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  open_subject(&s, "gpu:0", true);
  every_call(&s);
  close_subject(&s);
}

// A graph with a loop that doubles x five times; y is the result.
#define TYPED(name, op, inputs, type)                                                                                  \
  "node { name: '" name "' op: '" op "' " inputs " attr { key: 'T' value { type: " type " } } }"
#define ENTER(name, input, type)                                                                                       \
  "node { name: '" name "' op: 'Enter' input: '" input "' attr { key: 'T' value { type: " type " } }"                  \
  "  attr { key: 'frame_name' value { s: 'f' } } }"
#define WHOLE(name, input, value)                                                                                      \
  "node { name: '" name "' op: 'Const' " input " attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value'"   \
  "  value { tensor { dtype: DT_INT32 tensor_shape {} int_val: " value " } } } }"
static const char loop[] = "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }" WHOLE(
    "zero", "", "0") ENTER("enter_i", "zero", "DT_INT32") ENTER("enter_x", "x", "DT_FLOAT")
    TYPED("i", "Merge", "input: 'enter_i' input: 'next_i' attr { key: 'N' value { i: 2 } }", "DT_INT32")
        TYPED("value", "Merge", "input: 'enter_x' input: 'next_x' attr { key: 'N' value { i: 2 } }", "DT_FLOAT")
            WHOLE("five", "input: '^i'", "5")
                TYPED("less", "Less", "input: 'i' input: 'five'",
                      "DT_INT32") "node { name: 'more' op: 'LoopCond' input: 'less' }" TYPED("switch_i", "Switch",
                                                                                             "input: 'i' input: 'more'",
                                                                                             "DT_INT32")
                    TYPED("switch_x", "Switch", "input: 'value' input: 'more'", "DT_FLOAT")
                        WHOLE("one", "input: '^switch_i'", "1")
                            TYPED("more_i", "AddV2", "input: 'switch_i:1' input: 'one'", "DT_INT32")
                                TYPED("twice", "AddV2", "input: 'switch_x:1' input: 'switch_x:1'", "DT_FLOAT")
                                    TYPED("next_i", "NextIteration", "input: 'more_i'", "DT_INT32")
                                        TYPED("next_x", "NextIteration", "input: 'twice'", "DT_FLOAT")
                                            TYPED("y", "Exit", "input: 'switch_x'", "DT_FLOAT");

static void loops(void **state) {
  (void)state;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor feed = {0};
  uint64_t calls = 0, failed = 0;
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  assert_ok(tfc_graph_parse(tfc_str_from(loop), "loop", NULL, &g));
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  const struct tfc_output x = {tfc_graph_find(g, TFC_STR("x")), 0}, y = {tfc_graph_find(g, TFC_STR("y")), 0};
  const struct tfc_shape shape = TFC_SHAPE(1000);
  const struct tfc_run_spec spec = {
      .feeds = &x, .feed_count = 1, .fetches = &y, .fetch_count = 1, .feed_shapes = &shape};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &shape, &feed));
  for (int i = 0; i < 1000; i++) ((float *)feed.data)[i] = (float)i;
  for (uint64_t n = 0; n <= calls; n++) {
    struct tfc_tensor got = {0};
    const uint64_t before = tfc_cuda_fake_calls(TFC_CUDA_FAKE_ANY);
    tfc_cuda_fake_fail(TFC_CUDA_FAKE_ANY, n, 1, n % 2 ? 1 : TFC_CUDA_OUT_OF_MEMORY);
    tfc_status s = tfc_plan_run(plan, &feed, &got, NULL);
    tfc_cuda_fake_fail(TFC_CUDA_FAKE_ANY, 0, 0, 0);
    if (n == 0) calls = tfc_cuda_fake_calls(TFC_CUDA_FAKE_ANY) - before;
    if (s) {
      failed++;
      if (!strstr(tfc_status_message(s), "node '") && !strstr(tfc_status_message(s), "gpu:0"))
        fail_msg("nothing is named: %s", tfc_status_message(s));
      tfc_status_free(s);
      assert_ok(tfc_plan_run(plan, &feed, &got, NULL));
    }
    for (int i = 0; i < 1000; i++) assert_true(((float *)got.data)[i] == 32 * (float)i);
    tfc_tensor_release(&got);
  }
  print_message("%llu of %llu calls made the step fail\n", (unsigned long long)failed, (unsigned long long)calls);
  assert_true(failed > 8);
  tfc_tensor_release(&feed);
  tfc_plan_free(plan);
  tfc_session_free(session);
  assert_true(set.devices[0]->driver->in_use(set.devices[0]) == 0);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
}

// Calls fail in the steps that capture segments.
static void capturing(void **state) {
  (void)state;
  static const enum tfc_cuda_fake_call calls[] = {TFC_CUDA_FAKE_CAPTURE, TFC_CUDA_FAKE_ALLOCATE,
                                                  TFC_CUDA_FAKE_EVENT_RECORD, TFC_CUDA_FAKE_GRAPH_LAUNCH};
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
    for (uint64_t n = 1; n <= FIRST; n++) {
      static struct subject s;
      uint64_t failed = 0;
      cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
      open_subject(&s, "vgpu:0-1", false);
      tfc_plan_free(s.plan);
      s.plan = NULL;
      assert_ok(tfc_plan_create(s.session, &s.spec, &s.plan)); // nothing is captured yet
      for (int i = 0; i < 2; i++) {
        float got;
        assert_ok(step(&s, &got));
        assert_true(got == s.loss);
        assert_ok(tfc_session_restore(s.session, s.start));
      }
      one_failure(&s, calls[c], n, n % 2 ? 1 : TFC_CUDA_OUT_OF_MEMORY, &failed);
      close_subject(&s);
    }
}

// The n-th piece of work causes a sticky error, in captured steps and in loops.
static void sticky(void **state) {
  (void)state;
  static struct subject s;
  for (int dynamic = 0; dynamic < 2; dynamic++)
    for (uint64_t n = 1; n <= 60; n += dynamic ? 29 : 13) {
      cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
      open_subject(&s, dynamic ? "gpu:0" : "vgpu:0-1", dynamic);
      float got = 0;
      tfc_cuda_fake_fail_work(n, 700);
      tfc_status failure = step(&s, &got);
      if (failure) {
        assert_int_equal(tfc_status_code(failure), TFC_UNAVAILABLE);
        tfc_status_free(failure);
        assert_fails(step(&s, &got), TFC_UNAVAILABLE, "gpu:");
      }
      tfc_cuda_fake_fail_work(0, 0);
      close_subject(&s);
      tfc_cuda_fake_reset();
    }
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  tfc_driver_add(&tfc_driver_vgpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(captured), cmocka_unit_test(in_ready_order),
                                     cmocka_unit_test(loops), cmocka_unit_test(capturing), cmocka_unit_test(sticky)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
