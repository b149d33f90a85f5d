// Tests failures that a GPU can cause, on emulated devices: every call that a step makes is made to fail once, at every
// place where it is made, with delays that change the order of devices. The step ends with a status that names the
// device and the call, nothing hangs, no memory is lost, and the next step succeeds.
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/device/emulated/emulated.h"
#include "tests/common/rig.h"

#ifdef TFC_SANITIZED
enum { PLACES = 5 };
#else
enum { PLACES = 12 };
#endif

static void again(struct rig *r) {
  float got = 0;
  assert_ok(tfc_session_restore(r->session, r->start));
  assert_ok(rig_step(r, &got));
  if (got != r->loss) fail_msg("after a failure the loss is %g, not %g", (double)got, (double)r->loss);
  assert_ok(tfc_session_restore(r->session, r->start));
}

// Makes call `number` of this kind fail, on each device in turn. Returns how many steps failed.
static int each_failure(struct rig *r, tfc_emulated_call call, uint64_t most, tfc_code code) {
  int failed = 0;
  for (uint32_t d = 0; d < r->set.count; d++) {
    struct tfc_device *device = r->set.devices[d];
    float got = 0;
    uint64_t before = tfc_emulated_calls(device, call);
    assert_ok(rig_step(r, &got));
    uint64_t made = tfc_emulated_calls(device, call) - before, stride = made / most + 1;
    assert_ok(tfc_session_restore(r->session, r->start));
    for (uint64_t n = 1; n <= made; n += stride) {
      tfc_emulated_inject(device, &(struct tfc_emulated_fault){.call = call, .number = n, .code = code});
      tfc_status s = rig_step(r, &got);
      if (s) {
        failed++;
        assert_int_equal(tfc_status_code(s), code);
        if (!strstr(tfc_status_message(s), "injected failure") || !strstr(tfc_status_message(s), device->info.name))
          fail_msg("what failed is not said: %s", tfc_status_message(s));
        tfc_status_free(s);
      }
      tfc_emulated_inject(device, NULL);
      again(r);
    }
  }
  return failed;
}

static void every_call(void **state) {
  (void)state;
  static struct rig r;
  rig_open(&r, "emu:0-2", false);
  assert_ok(rig_step(&r, &r.loss));
  assert_ok(tfc_session_restore(r.session, r.start));
  static const tfc_emulated_call calls[] = {TFC_EMULATED_SUBMIT,   TFC_EMULATED_COPY, TFC_EMULATED_RUN,
                                            TFC_EMULATED_COPY_RUN, TFC_EMULATED_READ, TFC_EMULATED_ANY};
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
    assert_true(each_failure(&r, calls[c], PLACES, TFC_UNAVAILABLE) > 0);
  assert_true(each_failure(&r, TFC_EMULATED_RUN, 4, TFC_RESOURCE_EXHAUSTED) > 0);
  rig_close(&r);
}

static void in_ready_order(void **state) {
  (void)state;
  static struct rig r;
  rig_open(&r, "emu:0-1", true);
  assert_ok(rig_step(&r, &r.loss));
  assert_ok(tfc_session_restore(r.session, r.start));
  assert_true(each_failure(&r, TFC_EMULATED_LAUNCH, PLACES, TFC_UNAVAILABLE) > 0);
  assert_true(each_failure(&r, TFC_EMULATED_ALLOCATE, PLACES, TFC_RESOURCE_EXHAUSTED) > 0);
  assert_true(each_failure(&r, TFC_EMULATED_POST, PLACES, TFC_UNAVAILABLE) > 0);
  rig_close(&r);
}

// One call takes longer: the step gives the right result and, if it waits for that call, takes longer by as much.
static void one_delay(void **state) {
  (void)state;
  static const tfc_emulated_call calls[] = {TFC_EMULATED_SUBMIT, TFC_EMULATED_COPY, TFC_EMULATED_RUN,
                                            TFC_EMULATED_COPY_RUN, TFC_EMULATED_READ};
  enum { DELAY_NS = 20000000 };
  static struct rig r;
  rig_open(&r, "emu:0-1", false);
  assert_ok(rig_step(&r, &r.loss));
  assert_ok(tfc_session_restore(r.session, r.start));
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
    struct tfc_device *device = r.set.devices[0];
    const uint64_t before = tfc_emulated_calls(device, calls[c]);
    const int64_t begin = tfc_now_ns();
    tfc_emulated_inject(device, &(struct tfc_emulated_fault){.call = calls[c], .number = 1, .delay_ns = DELAY_NS});
    again(&r);
    if (tfc_emulated_calls(device, calls[c]) > before) assert_true(tfc_now_ns() - begin >= DELAY_NS);
    tfc_emulated_inject(device, NULL);
  }
  rig_close(&r);
}

static void delayed(void **state) { // delays change the order of devices, and some calls fail
  (void)state;
  static struct rig r;
  rig_open(&r, "emu:0-1,cpu:0", false);
  assert_ok(rig_step(&r, &r.loss));
  assert_ok(tfc_session_restore(r.session, r.start));
  for (uint64_t seed = 1; seed <= 6; seed++) {
    for (int d = 0; d < 2; d++)
      tfc_emulated_delay(
          r.set.devices[d],
          &(struct tfc_emulated_delay){.run_ns = d ? 300000 : 10000, .copy_ns = d ? 10000 : 300000, .jitter = seed});
    again(&r);
    float got = 0;
    tfc_emulated_inject(r.set.devices[seed % 2],
                        &(struct tfc_emulated_fault){.call = TFC_EMULATED_ANY, .number = seed, .times = 3});
    tfc_status_free(rig_step(&r, &got));
    tfc_emulated_inject(r.set.devices[seed % 2], NULL);
    again(&r);
  }
  rig_close(&r);
}

static void
slow_transfers(void **state) { // work that a queue accepted before it refused a call ends before the step ends
  (void)state;
  static struct rig r;
  rig_open(&r, "emu:0-1", false);
  assert_ok(rig_step(&r, &r.loss));
  assert_ok(tfc_session_restore(r.session, r.start));
  for (int d = 0; d < 2; d++) tfc_emulated_delay(r.set.devices[d], &(struct tfc_emulated_delay){.copy_ns = 2000000});
  assert_true(each_failure(&r, TFC_EMULATED_COPY, 1000, TFC_UNAVAILABLE) > 0);
  rig_close(&r);
}

// Whether the error says that an operation of the device was running, or that its first one was waiting.
static bool tells(const struct rig *r, const char *said, uint16_t device) {
  const struct tfc_plan_info *info = tfc_plan_info(r->plan);
  bool first = true, found = false;
  for (uint32_t i = 0; i < info->op_count; i++) {
    if (info->ops[i].device != device) continue;
    const struct tfc_node *n = &r->e.graph->nodes[info->ops[i].node];
    for (int waits = 0; waits < (first ? 2 : 1); waits++) {
      char *text = tfc_format("'%.*s' (%.*s) on emu:%u was %s", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op), device,
                              waits ? "waiting" : "running");
      found |= strstr(said, text) != NULL;
      free(text);
    }
    first = false;
  }
  return found;
}

static void too_late(void **state) { // the error names the operations that ran or waited, and the limit
  (void)state;
  static struct rig r;
  rig_open(&r, "emu:0-1", false);
  assert_ok(rig_step(&r, &r.loss));
  assert_ok(tfc_session_restore(r.session, r.start));
  for (int d = 0; d < 2; d++) tfc_emulated_delay(r.set.devices[d], &(struct tfc_emulated_delay){.run_ns = 30000000});
  struct tfc_tensor got = {0};
  tfc_status s = tfc_plan_run(r.plan, r.e.values[0], &got, &(struct tfc_run_options){.deadline_ns = 10000000});
  const char *said = s ? tfc_status_message(s) : "";
  if (!strstr(said, "the step did not end within 10 ms: '") || !strstr(said, ") on emu:0 was ") ||
      !strstr(said, ") on emu:1 was waiting") || !tells(&r, said, 0) || !tells(&r, said, 1))
    fail_msg("not what ran: %s", said);
  tfc_status_free(s);
  for (int d = 0; d < 2; d++) tfc_emulated_delay(r.set.devices[d], &(struct tfc_emulated_delay){0});
  again(&r);
  rig_close(&r);
}

static void plans(void **state) { // preparing and allocating fail while a plan is made
  (void)state;
  static struct rig r;
  rig_open(&r, "emu:0-1", false);
  assert_ok(rig_step(&r, &r.loss));
  assert_ok(tfc_session_restore(r.session, r.start));
  for (uint64_t n = 1; n <= 3; n++) {
    tfc_plan_free(r.plan);
    r.plan = NULL;
    tfc_emulated_inject(r.set.devices[0], &(struct tfc_emulated_fault){.call = TFC_EMULATED_PREPARE, .number = n});
    assert_fails(tfc_plan_create(r.session, &r.spec, &r.plan), TFC_UNAVAILABLE, "prepare number");
    tfc_emulated_inject(r.set.devices[0], NULL);
    assert_ok(tfc_plan_create(r.session, &r.spec, &r.plan));
    again(&r);
  }
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_call), cmocka_unit_test(in_ready_order),
                                     cmocka_unit_test(one_delay),  cmocka_unit_test(delayed),
                                     cmocka_unit_test(too_late),   cmocka_unit_test(slow_transfers),
                                     cmocka_unit_test(plans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
