// Says where a step that does not end is stuck, for the process that is about to kill the program.
#ifndef TFC_RUNTIME_EXEC_WHERE_H
#define TFC_RUNTIME_EXEC_WHERE_H

#include "runtime/exec/session.h"

// Returns the work that devices were given and have not ended for a long time, named by nodes; free() it. NULL: nothing
// is known. Called from another thread while the plan runs. For steps in a fixed order on asynchronous devices (GPUs).
char *tfc_plan_where(const struct tfc_plan *plan);

#endif
