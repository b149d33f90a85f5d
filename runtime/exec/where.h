// Tells where a step that does not end is stuck, for the process that is about to kill the program.
#ifndef TFC_RUNTIME_EXEC_WHERE_H
#define TFC_RUNTIME_EXEC_WHERE_H

#include "runtime/exec/session.h"

// Returns the work that devices have not ended for a long time, by names of nodes; the caller frees it. NULL: nothing
// is known. Another thread calls it while the plan runs. It is for steps in fixed order on asynchronous devices (GPUs).
char *tfc_plan_where(const struct tfc_plan *plan);

#endif
