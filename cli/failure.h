// DIR/failure, in the folder of tfc-run --supervise DIR: the exit code of a task that failed for a reason that would
// only come again (2: a flag, 3: the graph or another input, 5: not enough memory), its name and its message, as in
//
//   3 /job:worker/task:1: train.worker.1.meta: ...
//
// MPI kills all processes of a job at once, and then the job's own exit code may be that of a task which only lost its
// connection (4), or a signal's. So the task leaves this file before it ends the job, and who starts jobs again
// (--restarts, configs/slurm/train.sh) asks for it.
#ifndef TFC_CLI_FAILURE_H
#define TFC_CLI_FAILURE_H

#include "runtime/base/status.h"

// Writes the file if the code is 2, 3 or 5. `name`: the task's; "" if the message begins with it. That it
// cannot be written is a warning.
void cli_failure_leave(const char *folder, int code, const char *name, const char *message);
// Removes the file. Who starts a job calls it before, and the chief of a job that has ended without an error.
void cli_failure_forget(const char *folder);
// Returns the exit code in the file. 0: there is none.
int cli_failure_read(const char *folder);

#endif
