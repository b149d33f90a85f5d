// Tests the list of drivers: each is found by its kind, and the message about an unknown kind names them all.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/device/driver.h"
#include "runtime/device/list_kinds.h"

static void drivers_are_found_by_kind(void **state) {
  (void)state;
  size_t count = 0;
  const struct tfc_device_driver *const *all = tfc_driver_built_in(&count);
  assert_true(count > 0);
  for (size_t i = 0; i < count; i++) {
    const struct tfc_device_driver *found = NULL;
    assert_ok(tfc_driver_find(all[i]->kind, &found));
    assert_ptr_equal(found, all[i]);
  }
}

static void unknown_kinds_are_told_the_known_ones(void **state) {
  (void)state;
  size_t count = 0;
  const struct tfc_device_driver *const *all = tfc_driver_built_in(&count), *found = NULL;
  tfc_status s = tfc_driver_find("abacus", &found);
  assert_int_equal(tfc_status_code(s), TFC_UNAVAILABLE);
  const char *known = strchr(tfc_status_message(s), '(');
  assert_non_null(known);
  for (size_t i = 0; i < count; i++)
    if (!strstr(known, all[i]->kind)) fail_msg("%s is not in %s", all[i]->kind, known);
  assert_non_null(strstr(known, "vgpu"));
  tfc_status_free(s);
}

static void lists_of_gpus_run_on_their_own(void **state) {
  (void)state;
  const char *own[] = {"gpu:0", "cpu:0-3,gpu:0", "vgpu:0-1", "gpu", "vgpu:0-1,shared"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) assert_true(tfc_device_list_may_run_on_its_own(own[i]));
  const char *launched[] = {"cpu:0", "cpu:0-3,emu:0", "plain:0", "a-kind-whose-name-has-gpu-in-it:0"};
  for (size_t i = 0; i < sizeof launched / sizeof *launched; i++)
    assert_false(tfc_device_list_may_run_on_its_own(launched[i]));
  // what is no list is as a number: it depends on whether this machine may have GPUs
  assert_int_equal(tfc_device_list_may_run_on_its_own(NULL), tfc_device_list_may_run_on_its_own("4"));
  assert_int_equal(tfc_device_list_may_run_on_its_own(""), tfc_device_list_may_run_on_its_own("4"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(drivers_are_found_by_kind),
      cmocka_unit_test(unknown_kinds_are_told_the_known_ones),
      cmocka_unit_test(lists_of_gpus_run_on_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
