// Lines: a dialogue in lines of text with a user's command, over its stdin and stdout. The command runs in a process
// group of its own: signals that a terminal sends to this process do not reach it, and the processes that it started
// end with it.
//
//   TFC_TRY(s, tfc_lines_start("python3 measure.py", -1, &lines));
//   s = tfc_lines_exchange(lines, request, 1 << 20, &left_ns, cancel, &answer); // a line out, a line back
//   free(tfc_lines_stop(lines, false));
//
// Only one thread at a time may use a dialogue.
#ifndef TFC_PLACER_MEASURE_LINES_H
#define TFC_PLACER_MEASURE_LINES_H

#include <stdatomic.h>

#include "runtime/base/status.h"
#include "runtime/base/str.h"

struct tfc_lines;
// Starts `/bin/sh -c command` in the current directory. Its stderr goes to the descriptor `stderr_to` (-1: it is
// discarded); tfc_lines_stop returns the last part of it. INTERNAL: there is no shell, or no process could be made.
TFC_MUST_USE tfc_status tfc_lines_start(const char *command, int stderr_to, struct tfc_lines **out);
// Writes `request` and a newline (size 0: it writes nothing), then waits for the next line, of at most about `longest`
// bytes. *left_ns: how long it may wait; on return, how much of that is left. *out_line is valid until the next call.
// DEADLINE_EXCEEDED: no line came; UNAVAILABLE: the command has ended, or closed its stdout; RESOURCE_EXHAUSTED: the
// line is too long; CANCELLED: `cancel` was set.
TFC_MUST_USE tfc_status tfc_lines_exchange(struct tfc_lines *lines, tfc_str request, size_t longest, int64_t *left_ns,
                                           const atomic_bool *cancel, tfc_str *out_line);
// Closes the command's stdin and waits at most five seconds for it to end (`hung`: it does not wait), then kills it and
// everything it started. Returns a text on how it ended, which the caller frees; NULL if it ended normally or memory
// ran out. `lines` may be NULL.
char *tfc_lines_stop(struct tfc_lines *lines, bool hung);

#endif
