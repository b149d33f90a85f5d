// Ends a step with an error. A step keeps its first error; later ones are freed.
#include "runtime/device/driver.h"

void tfc_step_fail(struct tfc_step *step, tfc_status status) {
  if (!atomic_exchange(&step->failed, true))
    step->status = status;
  else
    tfc_status_free(status);
}
