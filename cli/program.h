// What every program does at its start and its end: a clean environment for OpenBLAS, signals, where messages go, and
// which exit code a status stands for. Messages go to stderr as "name: text"; a progress bar that is being drawn makes
// room for them. tfc_say and friends may be called from any thread; the rest belongs to the main one.
#ifndef TFC_CLI_PROGRAM_H
#define TFC_CLI_PROGRAM_H

#include <stdatomic.h>
#include <stdio.h>

#include "cli/flags.h"
#include "runtime/base/status.h"

// First thing in main. Runs the program again without OPENBLAS_CORETYPE where that is set (OpenBLAS reads it when it
// is loaded, which is before main), installs the signal handlers and the log sink.
void tfc_program_start(const char *name, char **argv);
void tfc_program_set_output(bool quiet, bool verbose, tfc_color color);

// Set by SIGINT, SIGTERM and SIGHUP. A second signal, half a second or more after the first, ends the program at once.
const atomic_bool *tfc_program_cancel(void);

// The exit code that a status stands for; 0 for OK.
int tfc_exit_code(tfc_status status);
// Prints the error, frees it and returns its exit code; 0 for OK.
int tfc_program_fail(tfc_status status);
// Flushes stdout: 6 instead of `code` where that fails.
int tfc_program_finish(int code);

// While a job runs, what libraries print on stdout (partitioners do) goes nowhere, or to stderr with --verbose: stdout
// is for results. Each call of the one is followed by one of the other, on the main thread.
void tfc_program_close_stdout(void);
void tfc_program_open_stdout(void);

void tfc_say(const char *format, ...) __attribute__((format(printf, 1, 2))); // unless --quiet
void tfc_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool tfc_quiet(void);

// The escape sequence "\033[<code>m" where this stream is coloured, else "".
const char *tfc_paint(FILE *stream, const char *code);

#endif
