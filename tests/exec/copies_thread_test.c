// Steps in ready order move values between devices by the devices' own copies. This suite tests that on emulated
// devices whose work and copies take random times, whose calls fail by number, and that have little memory.
#include "tests/common/test.h"

#include <string.h>

#include "profiler/collector.h"
#include "runtime/device/emulated/emulated.h"
#include "tests/common/spread_loop.h"

#ifdef TFC_SANITIZED
enum { SEEDS = 3, PLACES = 4, ITERATIONS = 8 };
#else
enum { SEEDS = 8, PLACES = 16, ITERATIONS = 16 };
#endif

static uint64_t calls(const struct spread_loop *l, tfc_emulated_call call) {
  return tfc_emulated_calls(l->set.devices[0], call) + tfc_emulated_calls(l->set.devices[1], call);
}

static void delay(const struct spread_loop *l, uint64_t seed, int64_t ns) {
  for (uint64_t d = 0; d < 2; d++)
    tfc_emulated_delay(l->set.devices[d],
                       &(struct tfc_emulated_delay){.run_ns = ns, .copy_ns = ns, .jitter = 2 * seed + d});
}

// More iterations make more copies; but the host reads and writes only fetched values.
static void nothing_by_the_host(void **state) {
  (void)state;
  struct spread_loop l;
  spread_loop_open(&l, "emu:0-1,cpu:0", NULL);
  for (int32_t n = 5; n < 20; n += 7) {
    const uint64_t reads = calls(&l, TFC_EMULATED_READ), copies = calls(&l, TFC_EMULATED_COPY),
                   moved = calls(&l, TFC_EMULATED_COPY_RUN);
    assert_ok(spread_loop_run(&l, n, NULL));
    assert_true(calls(&l, TFC_EMULATED_COPY) - copies >= 3 * (uint64_t)n);
    assert_int_equal(calls(&l, TFC_EMULATED_COPY_RUN) - moved, calls(&l, TFC_EMULATED_COPY) - copies);
    // Each copy between emulated devices makes one read; the two other reads are those of the fetches.
    assert_true(calls(&l, TFC_EMULATED_READ) - reads <= calls(&l, TFC_EMULATED_COPY) - copies + 2);
  }
  spread_loop_close(&l);
}

static void random_delays(void **state) {
  (void)state;
  struct spread_loop l;
  spread_loop_open(&l, "emu:0-1,cpu:0", NULL);
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    delay(&l, seed, 300000);
    assert_ok(spread_loop_run(&l, ITERATIONS, NULL));
  }
  spread_loop_close(&l);
}

// Makes each call fail in turn, by its number: the step's error names the call, and the next step is right.
static void failures(void **state) {
  (void)state;
  static const tfc_emulated_call kinds[] = {TFC_EMULATED_COPY,  TFC_EMULATED_COPY_RUN, TFC_EMULATED_READ,
                                            TFC_EMULATED_WRITE, TFC_EMULATED_POST,     TFC_EMULATED_ANY};
  struct spread_loop l;
  spread_loop_open(&l, "emu:0-1,cpu:0", NULL);
  delay(&l, 1, 100000);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (uint64_t n = 1; n <= PLACES; n++) {
      struct tfc_device *device = l.set.devices[n % 2];
      const uint64_t before = tfc_emulated_calls(device, kinds[k]);
      tfc_emulated_inject(device, &(struct tfc_emulated_fault){.call = kinds[k], .number = n});
      tfc_status s = spread_loop_run(&l, ITERATIONS, NULL);
      const bool reached = tfc_emulated_calls(device, kinds[k]) - before >= n;
      if (reached != (s != NULL))
        fail_msg("%u calls fail, number %llu: no failure", (unsigned)k, (unsigned long long)n);
      if (s && !strstr(tfc_status_message(s), "injected failure"))
        fail_msg("not what failed: %s", tfc_status_message(s));
      tfc_status_free(s);
      tfc_emulated_inject(device, NULL);
      assert_ok(spread_loop_run(&l, 2, NULL));
    }
  spread_loop_close(&l);
}

// Copies on their way hold memory; an allocation that finds no free memory waits for them. On one device the loop holds
// at most 15 tensors: one for each of ten iterations that run ahead and for the next one, and four of the iteration
// that is being computed.
static void little_memory(void **state) {
  (void)state;
  struct spread_loop l;
  enum { TENSOR = SPREAD_LOOP_SIZE * 4 };
  spread_loop_open(&l, "emu:0-1,cpu:0", &(struct tfc_memory_limit){"emu:*", 16 * TENSOR});
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    delay(&l, seed, 200000);
    assert_ok(spread_loop_run(&l, ITERATIONS, NULL));
  }
  spread_loop_close(&l);
}

static void profiled(void **state) {
  (void)state;
  struct spread_loop l;
  struct tfc_collector *c = NULL;
  struct tfc_step_profile p = {0};
  spread_loop_open(&l, "emu:0-1,cpu:0", NULL);
  assert_ok(tfc_collector_create(l.set.count, 1000, &c));
  for (int32_t n = 1; n < 10; n += 4) {
    tfc_collector_reset(c);
    assert_ok(spread_loop_run(&l, n, &(struct tfc_run_options){.trace = tfc_collector_sink(c)}));
    assert_ok(tfc_collector_drain(c, NULL, NULL, &p));
    spread_loop_check_transfers(&l, n, &p, true);
  }
  tfc_step_profile_deinit(&p);
  tfc_collector_free(c);
  spread_loop_close(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_by_the_host), cmocka_unit_test(random_delays),
                                     cmocka_unit_test(failures), cmocka_unit_test(little_memory),
                                     cmocka_unit_test(profiled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
