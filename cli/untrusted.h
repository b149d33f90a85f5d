// --untrusted: shuts the program in (runtime/base/sandbox.h) once its command line is read, with the files that the
// command line names, and starts its clock.
#ifndef TFC_CLI_UNTRUSTED_H
#define TFC_CLI_UNTRUSTED_H

#include "cli/flags.h"

struct cli_untrusted_needs {
  bool programs;       // the measuring worker, gnuplot
  bool ends_with_time; // what does not notice that its time is over is ended; else the program sees to that itself
  const char *beside;  // a file beside which files are written that no flag names, or NULL
};
// -1: go on, also where the flag is not given. Otherwise the exit code. `options` as parsed.
int cli_untrusted_enter(const struct tfc_program *program, const void *options,
                        const struct cli_untrusted_needs *needs);
// Nanoseconds that a step may take, where `own` (0: no limit) is its own limit.
int64_t cli_untrusted_left(int64_t own);

#endif
