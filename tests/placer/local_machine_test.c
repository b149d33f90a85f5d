// Tests how the devices, links and slow-downs of the local machine are computed from what calibration measured.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/measure/local_machine.h"
#include "placer/model/problem.h"
#include "tests/placer/links.h"

static struct tfc_device_info devices[3] = {
    {.name = "cpu:0", .kind = "cpu", .tensorflow = "/device:CPU:0", .label = "oversubscribed", .memory = UINT64_MAX},
    {.name = "cpu:1", .kind = "cpu", .tensorflow = "/device:CPU:1", .label = "measured", .memory = UINT64_MAX},
    {.name = "emu:0", .kind = "emu", .label = "emulated", .memory = 1 << 20, .address_space = 1}};
static const struct tfc_measure_info info = {.devices = devices, .device_count = 3};

static void test_kinds(void **state) {
  (void)state;
  assert_int_equal(tfc_kind_of_device(&info, 0), 0);
  assert_int_equal(tfc_kind_of_device(&info, 1), 0);
  assert_int_equal(tfc_kind_of_device(&info, 2), 1);
}

// With four devices on two cores, operations take at least one and a half times as long if three devices work at once,
// and twice as long if four do, whatever was measured.
static void test_oversubscribed(void **state) {
  (void)state;
  struct tfc_device_info four[4];
  for (int d = 0; d < 4; d++) four[d] = devices[0];
  const struct tfc_measure_info shared = {.devices = four, .device_count = 4, .whole = {.cores = 2}};
  struct tfc_calibration c;
  double factors[4];
  assert_ok(tfc_calibration_init(&c, &shared));
  tfc_calibration_slowdown(&c, 0, factors);
  assert_true(factors[0] == 1 && factors[1] == 1 && factors[2] == 1.5 && factors[3] == 2);
  c.kinds[0].measured_us[4] = 6000, c.kinds[0].alone_us[4] = 4000; // 1.5 times, less than the cores imply
  c.kinds[0].measured_us[3] = 8000, c.kinds[0].alone_us[3] = 4000; // 2 times, more than the cores imply
  tfc_calibration_slowdown(&c, 0, factors);
  assert_true(factors[2] == 2 && factors[3] == 2);
  tfc_calibration_deinit(&c);
}

static void test_slowdown(void **state) {
  (void)state;
  struct tfc_calibration c;
  double factors[3];
  assert_ok(tfc_calibration_init(&c, &info));
  tfc_calibration_slowdown(&c, 0, factors);
  assert_true(factors[0] == 1 && factors[1] == 1 && factors[2] == 1); // nothing was measured, so there is no factor
  c.kinds[0].measured_us[1] = 5000, c.kinds[0].alone_us[1] = 4000;    // the factor of one device is 1 by definition
  c.kinds[0].measured_us[3] = 6000, c.kinds[0].alone_us[3] = 4000;
  tfc_calibration_slowdown(&c, 0, factors);
  // the factor for two devices is the mean of those for one and for three
  assert_true(factors[0] == 1 && fabs(factors[1] - 1.25) < 1e-12 && factors[2] == 1.5);
  c.kinds[0].measured_us[2] = 7000, c.kinds[0].alone_us[2] = 4000;
  tfc_calibration_slowdown(&c, 0, factors);
  assert_true(factors[1] == 1.75 && factors[2] == 1.75); // factors never fall when more devices run
  tfc_calibration_deinit(&c);
}

static void test_machine(void **state) {
  (void)state;
  struct tfc_calibration c;
  struct tfc_machine *m = NULL;
  assert_ok(tfc_calibration_init(&c, &info));
  static const struct tfc_link_time times[] = {
      {0, 1, 65536, 6, 9}, {0, 1, 4, 2, 9}, {0, 1, 1048576, 5, 9}, {0, 2, 4, 30, 9}, {2, 0, 4, 40, 9}};
  c.links = malloc(sizeof times);
  memcpy(c.links, times, sizeof times);
  c.link_count = 5;
  c.kinds[0].dispatch_us = 0.5;
  struct tfc_memory_limit limit = {"cpu:*", 1000};
  assert_ok(tfc_local_machine(&info, &c, &limit, 1, &m));
  assert_int_equal(m->device_count, 3);
  assert_true(m->devices[0].memory == 1000 && m->devices[2].memory == 1 << 20);
  assert_true(m->devices[1].dispatch_us == 0.5 && m->devices[2].dispatch_us == 0);
  assert_int_equal(m->devices[0].label, TFC_LABEL_OVERSUBSCRIBED);
  // it has the times of the pair of the same kinds that was timed
  const struct tfc_link *back = link_between(m, 1, 0);
  assert_true(back->latency_us == 2 && back->curve_count == 3);
  assert_true(back->curve[0].time_us == 0 && back->curve[1].time_us == 4 && back->curve[2].time_us == 4);
  assert_true(tfc_str_is(back->wire, "none"));
  const struct tfc_link *out = link_between(m, 1, 2), *in = link_between(m, 2, 1);
  assert_true(out->latency_us == 30 && in->latency_us == 40 && !out->wire.data);
  assert_fails(tfc_local_machine(&info, &c, &(struct tfc_memory_limit){"gpu:*", 1}, 1, &m), TFC_UNAVAILABLE, "gpu");
  tfc_machine_free(m);
  tfc_calibration_deinit(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_slowdown),
                                     cmocka_unit_test(test_oversubscribed), cmocka_unit_test(test_machine)};
  return cmocka_run_group_tests_name("local_machine", tests, NULL, NULL);
}
