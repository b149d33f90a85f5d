// Runs the conformance tests on every driver of this machine, and tests how lists of devices are read.
#include "tests/common/conformance.h"
#include "tests/common/test.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void names(void **state) {
  (void)state;
  struct tfc_device_set set = {0};
  assert_fails(tfc_devices_open("tpu:0", NULL, 0, &set), TFC_UNAVAILABLE, "'tpu'");
  assert_fails(tfc_devices_open("cpu:x", NULL, 0, &set), TFC_INVALID_ARGUMENT, "'cpu:x'");
  assert_fails(tfc_devices_open("cpu:0,cpu:0", NULL, 0, &set), TFC_INVALID_ARGUMENT, "twice");
  assert_fails(tfc_devices_open("cpu:3-1", NULL, 0, &set), TFC_INVALID_ARGUMENT, "'cpu:3-1'");
  assert_fails(tfc_devices_open("0", NULL, 0, &set), TFC_INVALID_ARGUMENT, "between 1");
  assert_fails(tfc_devices_open("", NULL, 0, &set), TFC_INVALID_ARGUMENT, "no device");
  assert_ok(tfc_devices_open("emu:1,cpu:0", NULL, 0, &set));
  assert_string_equal(set.devices[0]->info.name, "emu:1");
  assert_string_equal(set.devices[1]->info.name, "cpu:0");
  struct tfc_device_set whole = {0};
  assert_ok(tfc_devices_open_whole(set.devices[1], &whole));
  assert_int_equal(whole.count, 1);
  tfc_devices_close(&whole);
  tfc_devices_close(&set);
  assert_ok(tfc_devices_open("cpu:0-1000", NULL, 0, &set)); // the list has more cores than this machine
  assert_non_null(strstr(set.note, "oversubscribed"));
  assert_string_equal(set.devices[7]->info.label, "oversubscribed");
  tfc_devices_close(&set);
}

// Each kind of device is numbered from 0, and address spaces differ between kinds, however many devices one kind has.
static void address_spaces_of_kinds(void **state) {
  (void)state;
  static struct tfc_device_driver other;
  struct tfc_device_set set;
  other = tfc_driver_emulated;
  other.kind = "other";
  tfc_driver_add(&other);
  assert_ok(tfc_devices_open("other:0-1,cpu:0,emu:0-1,emu:1000,cpu:1", NULL, 0, &set));
  for (uint32_t i = 0; i < set.count; i++) {
    const uint32_t space = set.devices[i]->info.address_space;
    assert_int_equal(space == 0, i == 2 || i == 6);
    for (uint32_t k = 0; space && k < i; k++) assert_int_not_equal(space, set.devices[k]->info.address_space);
  }
  tfc_devices_close(&set);
  assert_fails(tfc_devices_open("2000", NULL, 0, &set), TFC_INVALID_ARGUMENT, "between 1 and 1024");
  assert_fails(tfc_devices_open("emu:1024", NULL, 0, &set), TFC_UNAVAILABLE, "emu:1024 is not there");
  assert_fails(tfc_devices_open("emu:0-1023,cpu:0", NULL, 0, &set), TFC_UNAVAILABLE, "no more than 1024");
}

static void address_space(void **state) { // host code that writes to an emulated device's memory is killed
  (void)state;
#ifndef TFC_SANITIZED
  struct tfc_device_set set = {0};
  assert_ok(tfc_devices_open("emu:0", NULL, 0, &set));
  struct tfc_buffer *b = NULL;
  assert_ok(set.devices[0]->driver->allocate(set.devices[0], 64, &b));
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    *(volatile char *)b->data = 1;
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  tfc_buffer_release(b);
  tfc_devices_close(&set);
#endif
}

// Arguments: device lists to check instead ("gpu:0-1" on a machine that has them).
int main(int argc, char **argv) {
  if (argc > 1) return tfc_conformance_run((const char *const *)argv + 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(address_spaces_of_kinds),
                                     cmocka_unit_test(address_space)};
  int failed = tfc_conformance_run((const char *const[]){"cpu:0-1", "emu:0-1", "plain:0-1", NULL});
  return failed + cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
