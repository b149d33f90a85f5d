// Traced steps of devices that work asynchronously, on a fake of the CUDA calls. They are timed by the devices' events,
// and by a fake profiler.
#include "tests/common/test.h"

#include <string.h>

#include "profiler/collector.h"
#include "profiler/collector_gpu.h"
#include "runtime/device/cuda/device.h"
#include "tests/common/cuda_fake.h"
#include "tests/common/example.h"
#include "tests/common/fake_profiler.h"

// --- A fake profiler ---------------------------------------------------------------------------------------------
// It divides the time of each marked region equally among the kernels that were launched in it (at least one, and at
// least two in a transfer's region).
enum { NOTHING, ZERO_STAMPED, OP_MISSING, TRANSFER_MISSING, TWICE, LATE };
static _Atomic int breaks; // how the next record is damaged (the enum above); then it is NOTHING again
static _Thread_local uint64_t launched_before;
static _Atomic bool refuses; // to record

// The regions of transfers of a step, and when the work in them began and ended.
enum { MOST_MOVED = 4096 };
static struct moved {
  uint64_t region;
  int64_t start_ns, end_ns;
} moved[MOST_MOVED];
static _Atomic uint32_t moved_count;

static void push(uint64_t external) {
  launched_before = tfc_cuda_launches();
  fake_push(external);
}
static void pop(void) {
  const bool transfer = fake_marked & TFC_TRACE_UID_TRANSFER;
  uint64_t count = tfc_cuda_launches() - launched_before;
  if (count < 1) count = 1;
  if (transfer && atomic_load(&breaks) != TRANSFER_MISSING && count < 2) count = 2;
  const int64_t each = (tfc_now_ns() - fake_marked_at) / (int64_t)count;
  for (uint64_t i = 0; i < count; i++) {
    struct tfc_activity_work w = {.kind = TFC_ACTIVITY_KERNEL,
                                  .start_ns = fake_marked_at + (int64_t)i * each,
                                  .end_ns = fake_marked_at + (int64_t)(i + 1) * each,
                                  .context = (uint32_t)(fake_marked >> 32 & 0xff),
                                  .stream = transfer ? 2 : 1,
                                  .name = "made up"};
    int how = atomic_load(&breaks);
    bool mine = how == TRANSFER_MISSING ? transfer : how && !transfer && tfc_cuda_launches() > launched_before;
    if (!mine || !atomic_compare_exchange_strong(&breaks, &how, NOTHING)) how = NOTHING;
    if (how == ZERO_STAMPED) w.start_ns = 0;
    if (how == LATE) w.start_ns = 1;
    if (how != OP_MISSING && how != TRANSFER_MISSING) fake_add(&w);
    if (how == TWICE) tfc_activity_add(fake_activity, &w); // the same record again
  }
  if (!transfer) return;
  const uint32_t at = atomic_fetch_add(&moved_count, 1);
  if (at < MOST_MOVED) moved[at] = (struct moved){fake_marked, fake_marked_at, fake_marked_at + (int64_t)count * each};
}
// A transfer that was one region lasts from the start of its first work to the end of its last one. Returns how many of
// these there were.
static uint32_t check_moved(const struct tfc_step_profile *p) {
  uint32_t checked = 0;
  for (size_t i = 0; i < p->transfers.count; i++) {
    const struct tfc_profile_transfer *t = &p->transfers.data[i];
    const struct moved *of = NULL;
    uint32_t rows = 0, regions = 0;
    for (size_t k = 0; k < p->transfers.count; k++)
      rows += p->transfers.data[k].id == t->id && p->transfers.data[k].device == t->device;
    for (uint32_t k = 0; k < moved_count && k < MOST_MOVED; k++) {
      const uint64_t r = moved[k].region;
      if ((r & ~TFC_TRACE_UID_TRANSFER & UINT32_MAX) != t->id || (r >> 32 & 0xff) != t->device) continue;
      of = &moved[k], regions++;
    }
    if (rows != 1 || regions != 1 || !t->bytes) continue;
    assert_int_equal(t->duration_ns, of->end_ns - of->start_ns);
    checked++;
  }
  return checked;
}
static tfc_status record(bool on) {
  return on && atomic_load(&refuses) ? tfc_status_make(TFC_UNAVAILABLE, "it does not record") : fake_record(on);
}
// A record of work that ran before the traced step. It is delivered only by the next flush, as CUPTI does.
static struct tfc_activity_work held_back;
static tfc_status flush(void) {
  if (held_back.end_ns) tfc_activity_add(fake_activity, &held_back);
  held_back.end_ns = 0;
  return fake_flush();
}
static const struct tfc_gpu_profiler made_up = {"made up", fake_start, push, pop, flush, record};

static const struct {
  int how;
  const char *said;
} broken[] = {{ZERO_STAMPED, "1 without time stamps"},
              {OP_MISSING, "GPU trace: node '"},
              {TRANSFER_MISSING, "the transfer of node '"},
              {TWICE, "1 delivered twice"},
              {LATE, "1 of other steps"}};

static void traced(const char *devices, bool profiler, bool graphs) {
  static struct example e;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_run_spec spec;
  struct tfc_collector *c = NULL;
  struct tfc_step_profile p = {0};
  static uint16_t placement[512];
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  tfc_gpu_profiler_set(profiler ? &made_up : NULL, "another profiler is attached");
  assert_ok(example_load_narrow_mlp(&e));
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  const struct tfc_session_options options = {.devices = &set,
                                              .execution.captures = graphs ? TFC_CAPTURES_AUTO : TFC_CAPTURES_OFF};
  assert_ok(tfc_session_create(e.graph, &options, &session));
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = &e.init, .target_count = 1}, NULL, NULL, NULL));
  example_spec(&e, &spec);
  for (uint32_t i = 0; i < e.graph->node_count; i++)
    placement[i] = (uint16_t)(e.graph->nodes[i].def && e.graph->nodes[i].def->flags & (TFC_OP_VARIABLE | TFC_OP_UPDATE)
                                  ? 0
                                  : i % set.count);
  spec.placement = placement;
  assert_ok(tfc_plan_create(session, &spec, &plan));
  const struct tfc_plan_info *info = tfc_plan_info(plan);
  assert_ok(tfc_collector_create(set.count, 10000, &c));
  assert_ok(tfc_collector_watch(c, &set));
  assert_non_null(strstr(tfc_collector_timer(c), profiler ? "made up" : "CUDA events: another profiler is attached"));
  for (int step = 0; step < 3; step++) {
    struct tfc_tensor loss = {0};
    if (profiler) // the work of an initialisation or of an untraced step
      held_back = (struct tfc_activity_work){.start_ns = 1000, .end_ns = 2000, .stream = 5, .name = "of before"};
    tfc_collector_reset(c);
    atomic_store(&moved_count, 0);
    assert_ok(tfc_plan_run(plan, e.values[0], &loss, &(struct tfc_run_options){.trace = tfc_collector_sink(c)}));
    tfc_tensor_release(&loss);
    assert_ok(tfc_collector_drain(c, NULL, NULL, &p));
    if (profiler) assert_true(check_moved(&p) > 0);
    assert_int_equal(p.ops.count, info->op_count);
    assert_int_equal(p.transfers.count, info->transfer_count);
    for (size_t i = 0; i < p.ops.count; i++) {
      const struct tfc_profile_op *o = &p.ops.data[i];
      bool gpu = tfc_cuda_is_cuda(set.devices[o->device]);
      assert_int_equal(o->device, placement[o->node]);
      if (gpu ? o->dispatch_ns <= 0 : o->dispatch_ns != -1) fail_msg("a dispatch of %lld", (long long)o->dispatch_ns);
    }
    for (size_t d = 0; d < p.busy.count; d++) {
      assert_true(p.busy.data[d].operations_ns <= p.busy.data[d].busy_ns);
      assert_true(p.busy.data[d].busy_ns <= p.duration_ns);
    }
    if (profiler) {
      assert_true(p.works.count >= info->op_count / 2 && p.gpu_attributed_ns == p.gpu_busy_ns && p.gpu_busy_ns > 0);
    } else {
      assert_int_equal(p.works.count, 0);
    }
    assert_ok(tfc_collector_rest(c)); // an untraced step between the traced ones
    assert_ok(tfc_plan_run(plan, e.values[0], &loss, NULL));
    tfc_tensor_release(&loss);
  }
  const struct tfc_collector_names names = {e.graph, info};
  for (size_t i = 0; profiler && i < 2 * sizeof broken / sizeof *broken; i++) { // every second step is undamaged
    struct tfc_tensor loss = {0};
    if (i % 2 == 0) atomic_store(&breaks, broken[i / 2].how);
    tfc_collector_reset(c);
    assert_ok(tfc_plan_run(plan, e.values[0], &loss, &(struct tfc_run_options){.trace = tfc_collector_sink(c)}));
    tfc_tensor_release(&loss);
    if (i % 2)
      assert_ok(tfc_collector_drain(c, &names, NULL, &p));
    else
      assert_fails(tfc_collector_drain(c, &names, NULL, &p), TFC_ABORTED, broken[i / 2].said);
    assert_int_equal(atomic_load(&breaks), NOTHING);
    assert_ok(tfc_collector_rest(c));
  }
  for (int step = 0; profiler && step < 2; step++) { // what it cannot record is no measurement; the next step is one
    struct tfc_tensor loss = {0};
    atomic_store(&refuses, step == 0);
    tfc_collector_reset(c);
    assert_ok(tfc_plan_run(plan, e.values[0], &loss, &(struct tfc_run_options){.trace = tfc_collector_sink(c)}));
    tfc_tensor_release(&loss);
    if (step)
      assert_ok(tfc_collector_drain(c, &names, NULL, &p));
    else
      assert_fails(tfc_collector_drain(c, &names, NULL, &p), TFC_ABORTED, "1 records dropped");
    assert_ok(tfc_collector_rest(c));
  }
  tfc_step_profile_deinit(&p);
  tfc_collector_free(c);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  example_deinit(&e);
}

static void by_events(void **state) {
  (void)state;
  traced("gpu:0-1", false, false);
  traced("gpu:0,cpu:0", false, true);
}
static void by_profiler(void **state) {
  (void)state;
  traced("vgpu:0-1", true, false);
  traced("vgpu:0-1,shared", true, false);
  traced("gpu:0,cpu:0", true, false);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  tfc_driver_add(&tfc_driver_vgpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(by_events), cmocka_unit_test(by_profiler)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
