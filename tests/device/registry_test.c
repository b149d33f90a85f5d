// Tests the list of drivers: each is found by its kind, and the message about an unknown kind names them all.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/device/driver.h"

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(drivers_are_found_by_kind),
      cmocka_unit_test(unknown_kinds_are_told_the_known_ones),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
