// Where a step is that does not end, for whoever is about to end its process.
#ifndef TFC_RUNTIME_EXEC_WHERE_H
#define TFC_RUNTIME_EXEC_WHERE_H

#include "runtime/exec/session.h"

// What devices were given and have not ended for long, by nodes; malloc'd, NULL: nothing is known. While the plan runs,
// on another thread. Of steps in a fixed order on devices that work on their own (GPUs).
char *tfc_plan_where(const struct tfc_plan *plan);

#endif
