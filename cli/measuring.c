#include "cli/measuring.h"

#include <stdlib.h>

#include "cli/program.h"
#include "runtime/base/clock.h"

tfc_status cli_measuring_lock(bool wait, struct tfc_lock **out) {
  tfc_status s = NULL;
  char *path = NULL;
  TFC_RETURN_IF_ERROR(tfc_lock_path("tfc-measuring.lock", &path));
  for (bool told = false;; told = true) {
    s = tfc_lock_take(path, "measuring", out);
    if (tfc_status_code(s) != TFC_FAILED_PRECONDITION) break;
    tfc_status held = s;
    s = wait ? NULL
             : tfc_status_make(TFC_ABORTED,
                               "another run measures on this machine, and two would disturb each other: %s; --wait "
                               "waits until it ends",
                               tfc_status_message(held));
    if (!s && !told) tfc_say("waiting for another run that measures on this machine: %s", tfc_status_message(held));
    tfc_status_free(held);
    if (!s && atomic_load(tfc_program_cancel())) s = tfc_status_make(TFC_CANCELLED, "interrupted");
    if (s) break;
    tfc_sleep_ns(100000000);
  }
  free(path);
  return s;
}
