// Threads that wait for a stream read a flag in pinned memory, and ask CUDA only now and then, because a device that is
// lost writes no flag. Where CUDA refuses to write flags, or says that it does and does not, they ask CUDA instead.
#include "tests/common/test.h"

#include "runtime/base/clock.h"
#include "runtime/device/cuda/flag.h"
#include "tests/common/cuda_fake.h"
#include "tests/common/rig.h"

enum { DELAY_NS = 200000, ASK_NS = 1000000, THREADS = 4 }; // two threads wait for each of two devices

static void open_rig(struct rig *r, bool lost) {
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2, .lost_flags = lost});
  rig_open(r, "gpu:0-1", false);
  assert_ok(rig_step(r, &r->loss));
  tfc_cuda_fake_delay(DELAY_NS);
}
static void same_step(struct rig *r) {
  float got = 0;
  assert_ok(tfc_session_restore(r->session, r->start));
  assert_ok(rig_step(r, &got));
  assert_true(got == r->loss);
}
static uint64_t calls(enum tfc_cuda_fake_call call, struct rig *r) {
  const uint64_t before = tfc_cuda_fake_calls(call);
  same_step(r);
  return tfc_cuda_fake_calls(call) - before;
}
static bool uses_flags(const struct rig *r, int device) {
  return tfc_cuda_flags_used(tfc_cuda_device_of(r->set.devices[device]));
}

static void waiting_asks_rarely(void **state) {
  (void)state;
  static struct rig r;
  open_rig(&r, false);
  assert_true(calls(TFC_CUDA_FAKE_WRITE_FLAG, &r) > 0);
  const int64_t begin = tfc_now_ns();
  const uint64_t asked = calls(TFC_CUDA_FAKE_EVENT_QUERY, &r);
  assert_true(asked <= THREADS * (uint64_t)((tfc_now_ns() - begin) / ASK_NS));
  assert_true(uses_flags(&r, 0) && uses_flags(&r, 1));
  rig_close(&r);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

static void flags_that_are_refused(void **state) {
  (void)state;
  static struct rig r;
  open_rig(&r, false);
  tfc_cuda_fake_fail(TFC_CUDA_FAKE_WRITE_FLAG, 1, 1, 801); // cudaErrorNotSupported
  same_step(&r);
  assert_true(uses_flags(&r, 0) != uses_flags(&r, 1));
  assert_true(calls(TFC_CUDA_FAKE_EVENT_QUERY, &r) > 0);
  rig_close(&r);
}

static void flags_that_are_not_written(void **state) {
  (void)state;
  static struct rig r;
  open_rig(&r, true);
  assert_false(uses_flags(&r, 0) || uses_flags(&r, 1)); // found out by the first step
  assert_int_equal(calls(TFC_CUDA_FAKE_WRITE_FLAG, &r), 0);
  rig_close(&r);
}

static void no_pinned_memory(void **state) {
  (void)state;
  static struct rig r;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  tfc_cuda_fake_fail(TFC_CUDA_FAKE_ALLOCATE_HOST, 1, 2, TFC_CUDA_OUT_OF_MEMORY); // what each device asks for first
  rig_open(&r, "gpu:0-1", false);
  assert_ok(rig_step(&r, &r.loss));
  assert_false(uses_flags(&r, 0) || uses_flags(&r, 1));
  same_step(&r);
  rig_close(&r);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(waiting_asks_rarely),
      cmocka_unit_test(flags_that_are_refused),
      cmocka_unit_test(flags_that_are_not_written),
      cmocka_unit_test(no_pinned_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
