// For --untrusted: after the command line was read, restricts the process (runtime/base/sandbox.h) to the files that
// the command line names, and starts its time limit.
#ifndef TFC_CLI_UNTRUSTED_H
#define TFC_CLI_UNTRUSTED_H

#include "cli/flags.h"

struct cli_untrusted_needs {
  bool programs;       // also allows the programs that it starts: the measuring worker, gnuplot
  bool ends_with_time; // the process is killed at its time limit; false: the program ends itself
  const char *beside;  // a file in whose folder the program writes files that no flag names; or NULL
};
// Returns -1 to go on (also if the flag is not given), else the exit code. `options` as parsed.
int cli_untrusted_enter(const struct tfc_program *program, const void *options,
                        const struct cli_untrusted_needs *needs);
// Returns how many nanoseconds a step may take: the time left, or `own` if that is shorter (0: the step has no limit of
// its own).
int64_t cli_untrusted_left(int64_t own);

#endif
