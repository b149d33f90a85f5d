#include "cli/device_list.h"

#include "runtime/base/str.h"
#include "runtime/device/list.h"

char *cli_device_list_error(const char *text, bool described) {
  struct tfc_device_list list = {0};
  tfc_status s = tfc_device_list_parse(text, described, &list);
  char *error = tfc_status_code(s) == TFC_INVALID_ARGUMENT ? tfc_format("%s", tfc_status_message(s)) : NULL;
  tfc_status_free(s); // a missing device is reported later, with its own exit code
  tfc_device_list_deinit(&list);
  return error;
}
