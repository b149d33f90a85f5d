// Every kind of CUDA call fails once at many places of a step: the step ends with a status that names the device, and
// the next step is right. Too little memory gives an error status; a sticky error makes the device unusable, but does
// not end the process.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/device/cuda/device.h"
#include "tests/common/cuda_fake.h"
#include "tests/common/rig.h"

#ifdef TFC_SANITIZED
enum { FIRST = 4, PLACES = 12 };
#else
enum { FIRST = 10, PLACES = 40 };
#endif

static void one_failure(struct rig *r, enum tfc_cuda_fake_call call, uint64_t n, uint64_t *failed) {
  float got = 0;
  tfc_cuda_fake_fail(call, n, 1, 1);
  tfc_status s = rig_step(r, &got);
  if (s) {
    (*failed)++;
    if (!strstr(tfc_status_message(s), "gpu:")) fail_msg("no device is named: %s", tfc_status_message(s));
    assert_int_equal(tfc_status_code(s), TFC_UNAVAILABLE);
    tfc_status_free(s);
  }
  tfc_cuda_fake_fail(call, 0, 0, 0);
  assert_ok(tfc_session_restore(r->session, r->start));
  assert_ok(rig_step(r, &got));
  if (got != r->loss)
    fail_msg("after a failure of call %d number %llu the loss is %g, not %g", (int)call, (unsigned long long)n,
             (double)got, (double)r->loss);
  assert_ok(tfc_session_restore(r->session, r->start));
}

static void every_call(void **state) {
  (void)state;
  static struct rig r;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  rig_open(&r, "gpu:0-1", false);
  assert_ok(rig_step(&r, &r.loss));
  assert_ok(tfc_session_restore(r.session, r.start));
  static const enum tfc_cuda_fake_call calls[] = {
      TFC_CUDA_FAKE_STREAM_SYNCHRONIZE, TFC_CUDA_FAKE_STREAM_WAIT, TFC_CUDA_FAKE_EVENT_RECORD,
      TFC_CUDA_FAKE_EVENT_QUERY,        TFC_CUDA_FAKE_COPY,        TFC_CUDA_FAKE_ANY};
  for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
    uint64_t failed = 0, before = tfc_cuda_fake_calls(calls[c]);
    float got;
    assert_ok(rig_step(&r, &got));
    uint64_t made = tfc_cuda_fake_calls(calls[c]) - before;
    assert_ok(tfc_session_restore(r.session, r.start));
    uint64_t stride = made / PLACES + 1; // each of the first calls fails once, then some that are spread over the step
    for (uint64_t n = 1; n <= made; n += n < FIRST ? 1 : stride) one_failure(&r, calls[c], n, &failed);
    if (calls[c] == TFC_CUDA_FAKE_COPY || calls[c] == TFC_CUDA_FAKE_EVENT_RECORD) assert_true(failed > 5);
  }
  rig_close(&r);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

static void sticky(void **state) {
  (void)state;
  static struct rig r;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  for (uint64_t n = 1; n <= 4; n++) {
    tfc_cuda_fake_reset();
    rig_open(&r, "gpu:0-1", false);
    float got = 0;
    tfc_cuda_fake_fail_work(n, 700);
    assert_fails(rig_step(&r, &got), TFC_UNAVAILABLE, "illegal memory access");
    assert_fails(rig_step(&r, &got), TFC_UNAVAILABLE, "gpu:"); // the error is permanent, and nothing hangs
    struct tfc_buffer *b = NULL;
    tfc_status s = r.set.devices[0]->driver->allocate(r.set.devices[0], 100, &b);
    if (!s) s = r.set.devices[1]->driver->allocate(r.set.devices[1], SIZE_MAX / 8, &b);
    assert_non_null(s);
    tfc_status_free(s);
    if (b) tfc_buffer_release(b);
    rig_close(&r);
  }
}

// Those of which CUDA's documentation says that the process is left in an inconsistent state, or that the context is
// gone; broken memory or links; and "unknown", after which nothing is known.
static void which_errors_are_sticky(void **state) {
  (void)state;
  static const int sticky_errors[] = {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 999};
  for (int error = 0, k = 0; error < 1100; error++) {
    const bool expected = k < 15 && sticky_errors[k] == error;
    k += expected;
    if (tfc_cuda_error_is_sticky(error) != expected) fail_msg("error %d", error);
  }
}

// The events of a step are used again in the next one.
static void events_are_used_again(void **state) {
  (void)state;
  static struct rig r;
  float got = 0;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  rig_open(&r, "gpu:0-1", false);
  for (int i = 0; i < 10; i++) assert_ok(rig_step(&r, &got));
  const uint64_t created = tfc_cuda_fake_calls(TFC_CUDA_FAKE_EVENT_CREATE),
                 recorded = tfc_cuda_fake_calls(TFC_CUDA_FAKE_EVENT_RECORD);
  for (int i = 0; i < 50; i++) assert_ok(rig_step(&r, &got));
  assert_true(tfc_cuda_fake_calls(TFC_CUDA_FAKE_EVENT_RECORD) - recorded >= 50);
  // how many are in use at once depends on the threads, a little
  assert_true(tfc_cuda_fake_calls(TFC_CUDA_FAKE_EVENT_CREATE) - created <= 10);
  rig_close(&r);
}

// One thread writes and reads tensors of two devices in turns.
static void devices_in_turns(void **state) {
  (void)state;
  struct tfc_device_set set = {0};
  struct tfc_buffer *memory[2] = {0};
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  assert_ok(tfc_devices_open("gpu:0-1", NULL, 0, &set));
  for (int k = 0; k < 2; k++) assert_ok(set.devices[k]->driver->allocate(set.devices[k], 256, &memory[k]));
  for (int i = 0; i < 6; i++) {
    struct tfc_device *d = set.devices[i % 2];
    struct tfc_tensor t = {.dtype = TFC_FLOAT, .shape = TFC_SHAPE(4), .size = 16, .data = memory[i % 2]->data};
    const float x[4] = {(float)i, 1, 2, 3};
    float y[4] = {0};
    assert_ok(d->driver->write(d, x, &t));
    assert_ok(d->driver->read(d, &t, y));
    assert_memory_equal(x, y, sizeof x);
  }
  assert_int_equal(tfc_cuda_fake_violations(), 0);
  for (int k = 0; k < 2; k++) tfc_buffer_release(memory[k]);
  tfc_devices_close(&set);
}

static void out_of_memory(void **state) {
  (void)state;
  static struct rig r;
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2, .memory = 64 << 20});
  struct tfc_device_set set = {0};
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &set));
  struct tfc_device *d = set.devices[0];
  struct tfc_buffer *b[4] = {0};
  assert_ok(d->driver->allocate(d, 20 << 20, &b[0]));
  assert_ok(d->driver->allocate(d, 20 << 20, &b[1]));
  assert_fails(d->driver->allocate(d, 30 << 20, &b[2]), TFC_RESOURCE_EXHAUSTED, "31.5 MB asked for, 41.9 MB in use");
  tfc_buffer_release(b[0]);
  tfc_buffer_release(b[1]);
  assert_ok(d->driver->allocate(d, 50 << 20, &b[2])); // the driver first frees the block that it had kept
  tfc_buffer_release(b[2]);
  tfc_devices_close(&set);
  // The message says how much memory is left on the device of the request, whichever device the thread used last.
  const struct tfc_memory_limit of_one = {"gpu:1", 60000000};
  assert_ok(tfc_devices_open("gpu:0-1", &of_one, 1, &set));
  assert_ok(set.devices[0]->driver->allocate(set.devices[0], 20 << 20, &b[0]));
  assert_fails(set.devices[1]->driver->allocate(set.devices[1], 61000000, &b[1]), TFC_RESOURCE_EXHAUSTED,
               "gpu:1: out of memory: 61.0 MB asked for, 0 B in use, limit 60.0 MB, largest free block 60.0 MB");
  tfc_buffer_release(b[0]);
  tfc_devices_close(&set);
  // Freed blocks that the driver keeps count too, since other devices of the same GPU need their share.
  const struct tfc_memory_limit limit = {"gpu:*", 40 << 20};
  assert_ok(tfc_devices_open("gpu:0", &limit, 1, &set));
  d = set.devices[0];
  assert_ok(d->driver->allocate(d, 16 << 20, &b[0]));
  tfc_buffer_release(b[0]);
  assert_ok(d->driver->allocate(d, 20 << 20, &b[1]));
  assert_int_equal(tfc_cuda_fake_bytes(), 36 << 20);
  assert_ok(d->driver->allocate(d, 16 << 20, &b[0])); // the kept block is used again
  assert_int_equal(tfc_cuda_fake_bytes(), 36 << 20);
  tfc_buffer_release(b[0]);
  assert_ok(d->driver->allocate(d, 8 << 20, &b[2]));
  assert_int_equal(tfc_cuda_fake_bytes(), 28 << 20);
  tfc_buffer_release(b[1]);
  tfc_buffer_release(b[2]);
  tfc_devices_close(&set);
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  rig_open(&r, "gpu:0-1", false);
  assert_ok(rig_step(&r, &r.loss));
  assert_ok(tfc_session_restore(r.session, r.start));
  tfc_plan_free(r.plan);
  r.plan = NULL;
  tfc_cuda_fake_fail(TFC_CUDA_FAKE_ALLOCATE, 1, 1, TFC_CUDA_OUT_OF_MEMORY);
  tfc_status s = tfc_plan_create(r.session, &r.spec, &r.plan);
  float got = 0;
  if (!s) s = rig_step(&r, &got);
  if (s) assert_int_equal(tfc_status_code(s), TFC_RESOURCE_EXHAUSTED);
  tfc_status_free(s);
  tfc_cuda_fake_fail(TFC_CUDA_FAKE_ALLOCATE, 0, 0, 0);
  if (!r.plan) assert_ok(tfc_plan_create(r.session, &r.spec, &r.plan));
  assert_ok(tfc_session_restore(r.session, r.start));
  assert_ok(rig_step(&r, &got));
  assert_true(got == r.loss);
  rig_close(&r);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

static void devices(void **state) {
  (void)state;
  struct tfc_device_set set = {0};
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = -1});
  assert_fails(tfc_devices_open("gpu:0", NULL, 0, &set), TFC_UNAVAILABLE, "no GPU");
  assert_fails(tfc_devices_open("vgpu:0-3", NULL, 0, &set), TFC_UNAVAILABLE, "no GPU");
  assert_ok(tfc_devices_open("2", NULL, 0, &set)); // "2" means two CPU devices if there is no GPU
  assert_string_equal(set.devices[0]->info.kind, "cpu");
  tfc_devices_close(&set);
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 1});
  assert_fails(tfc_devices_open("gpu:1", NULL, 0, &set), TFC_UNAVAILABLE, "this machine has 1");
  assert_ok(tfc_devices_open("4", NULL, 0, &set)); // "4" divides the one GPU into four virtual ones
  assert_int_equal(set.count, 4);
  for (int i = 0; i < 4; i++) {
    assert_string_equal(set.devices[i]->info.label, "virtual");
    assert_int_equal(set.devices[i]->info.cores, 32);
    assert_true(set.devices[i]->info.memory < (UINT64_C(1) << 32) / 4);
  }
  struct tfc_device_set whole = {0};
  assert_ok(tfc_devices_open_whole(set.devices[0], &whole));
  assert_string_equal(whole.devices[0]->info.name, "gpu:0");
  assert_string_equal(whole.devices[0]->info.label, "measured");
  tfc_devices_close(&whole);
  struct tfc_device_set other = {0};
  assert_fails(tfc_devices_open("vgpu:0-1", NULL, 0, &other), TFC_FAILED_PRECONDITION, "into 4 virtual devices");
  tfc_devices_close(&set);
  assert_ok(tfc_devices_open("vgpu:0-1", NULL, 0, &set));
  assert_int_equal(set.devices[0]->info.cores, 64);
  tfc_devices_close(&set);
  assert_fails(tfc_devices_open("20", NULL, 0, &set), TFC_UNAVAILABLE, "132 multiprocessors, in groups of 8");
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 4});
  assert_ok(tfc_devices_open("4", NULL, 0, &set));
  assert_string_equal(set.devices[3]->info.name, "gpu:3");
  tfc_devices_close(&set);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  tfc_driver_add(&tfc_driver_vgpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_call),
                                     cmocka_unit_test(sticky),
                                     cmocka_unit_test(which_errors_are_sticky),
                                     cmocka_unit_test(events_are_used_again),
                                     cmocka_unit_test(devices_in_turns),
                                     cmocka_unit_test(out_of_memory),
                                     cmocka_unit_test(devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
