// Lines: a command of the user's that is talked to in lines of text, over its stdin and stdout. It runs in a process
// group of its own: what a terminal sends to ours does not reach it, and what it started ends with it.
//
//   TFC_TRY(s, tfc_lines_start("python3 measure.py", -1, &lines));
//   s = tfc_lines_exchange(lines, request, &left_ns, cancel, &answer); // a line out, a line back
//   tfc_lines_stop(lines);
//
// One thread.
#ifndef TFC_PLACER_MEASURE_LINES_H
#define TFC_PLACER_MEASURE_LINES_H

#include <stdatomic.h>

#include "runtime/base/status.h"
#include "runtime/base/str.h"

struct tfc_lines;
// `/bin/sh -c command` in the current directory. What it writes to stderr goes to the descriptor `stderr_to` (-1: to
// nobody); its end is kept for tfc_lines_stop. INTERNAL: no shell, no process.
TFC_MUST_USE tfc_status tfc_lines_start(const char *command, int stderr_to, struct tfc_lines **out);
// Writes `request` and a line's end (size 0: nothing), then waits for the next line. *left_ns: for how long; what is
// left of it comes out. *out_line is valid until the next call. DEADLINE_EXCEEDED: no line came; UNAVAILABLE: the
// command has ended, or closed its stdout; RESOURCE_EXHAUSTED: a line without an end; CANCELLED: `cancel` was set.
TFC_MUST_USE tfc_status tfc_lines_exchange(struct tfc_lines *lines, tfc_str request, int64_t *left_ns,
                                           const atomic_bool *cancel, tfc_str *out_line);
// Closes its stdin and waits for it to end, two seconds at most (`hung`: not at all), then ends it and whatever it
// started. Says how it ended, free() it; NULL where it was fine or memory is out. NULL is fine.
char *tfc_lines_stop(struct tfc_lines *lines, bool hung);

#endif
