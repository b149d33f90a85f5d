// --restarts N of tfc-run and tfc-place: starts the processes of a job with mpirun, and starts them again after a
// failure. When a process of the job is killed, the whole job ends, so the process that restarts it must not be part
// of it.
//
//   int code = cli_restart(&(struct cli_restart){.program = "tfc-run", .restarts = 3, .tasks = 2, .argv = argv});
#ifndef TFC_CLI_RESTART_H
#define TFC_CLI_RESTART_H

#include <stdint.h>

struct cli_restart {
  const char *program;
  int64_t restarts;
  uint32_t tasks;
  char **argv;        // of this program; the job's processes get the same without --restarts
  const char *folder; // of --supervise, where tasks say what would only fail again (cli/failure.h); NULL: there is none
  // Returns one more word for the command line of the next start; NULL: none is needed. Called after each failure; it
  // stays the caller's, until the next call. `again` NULL: none is needed.
  const char *(*again)(void *user);
  void *user;
};
// Returns the exit code of the last start.
int cli_restart(const struct cli_restart *restart);

#endif
