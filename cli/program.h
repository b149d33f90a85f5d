// The start and the end of every program: removes environment variables that disturb OpenBLAS, handles signals, prints
// messages, and knows exit codes. Messages go to stderr as "name: text"; a progress bar on the screen is removed first.
// Any thread may call tfc_say and the other message functions; only the main thread may call the rest.
#ifndef TFC_CLI_PROGRAM_H
#define TFC_CLI_PROGRAM_H

#include <stdatomic.h>
#include <stdio.h>

#include "cli/flags.h"
#include "runtime/base/status.h"

struct tfc_warnings;

// Call it first in main. Restarts the program without OPENBLAS_CORETYPE if that is set (OpenBLAS reads it when it is
// loaded, which is before main). Installs the signal handlers and the log sink. From then on each line that goes to
// stderr is one write, so that lines of several processes (tasks under mpirun) do not mix on a terminal or in a log.
void tfc_program_start(const char *name, char **argv);
// Lets OpenBLAS choose kernels again if it does not know this processor and took slow ones (runtime/ops/blas_core.h);
// what OPENBLAS_CORETYPE says stays. tfc_program_start calls it; a benchmark does before it starts threads.
void tfc_program_choose_blas(void);
// Returns the whole command line, for the database; the caller frees it. NULL: out of memory.
char *tfc_program_command_line(void);
void tfc_program_set_output(bool quiet, bool verbose, tfc_color color);

// Set by SIGINT, SIGTERM, SIGHUP and SIGUSR1 (the signal that mpirun passes on to all tasks). A second signal, half a
// second or more after the first, ends the program at once.
const atomic_bool *tfc_program_cancel(void);
// Sets it, as a first signal does.
void tfc_program_stop(void);
// For programs that save at a signal what steps have changed: a step that is broken off leaves variables half updated.
// So after a signal the running step ends, and what was trained is saved; tfc_program_cut_off is set 20 s after the
// signal, and stops both. `timed`: false: it is never set. From the call on, tfc_interrupted asks it, too.
void tfc_program_finish_steps(bool timed);
const atomic_bool *tfc_program_cut_off(void);
// Call it before writing what was found: a signal that has come interrupts nothing any more (tfc_interrupted). It is
// still in tfc_program_cancel, and a second signal ends the program.
void tfc_program_forget_signal(void);
// Call it before (`begins`) and after each step whose `cancel` is tfc_program_cancel or tfc_program_cut_off. If such a
// step is still running 3 s after its flag was set, one of its operations does not end: then the program ends with 130.
void tfc_program_step(bool begins);

// Returns the exit code for a status; 0 for OK.
int tfc_exit_code(tfc_status status);
// Prints the error, frees it and returns its exit code; 0 for OK.
int tfc_program_fail(tfc_status status);
// Flushes stdout. Returns `code`, or 6 if that fails.
int tfc_program_finish(int code);

// Only results go to stdout. While a job runs, text that libraries print there (some partitioners do) is discarded or,
// with --verbose, goes to stderr. Each call of tfc_program_close_stdout is followed by one of tfc_program_open_stdout,
// both on the main thread.
void tfc_program_close_stdout(void);
void tfc_program_open_stdout(void);

void tfc_say(const char *format, ...) __attribute__((format(printf, 1, 2))); // unless --quiet
void tfc_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool tfc_quiet(void);
size_t tfc_output_columns(void); // of stdout: those of the terminal, at least 80; 80 where it is none
// All warnings that were printed, also those of libraries, for the database.
struct tfc_warnings *tfc_program_warnings(void);

// Returns the escape sequence "\033[<code>m" if this stream is coloured, otherwise "".
const char *tfc_paint(FILE *stream, const char *code);

#endif
