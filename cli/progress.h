// Shows the progress of phases, one after another. On a terminal it is one line that is redrawn, with a bar and the
// remaining time. Otherwise it prints a line when a phase ends, and one every 15 seconds during a phase. With --quiet
// it prints nothing. Only the main thread may call these functions, except tfc_progress_hide, which the message
// functions of cli/program.h call under their lock.
#ifndef TFC_CLI_PROGRESS_H
#define TFC_CLI_PROGRESS_H

#include <stdbool.h>

// Begins a phase ("profile"), after ending the one before if necessary.
void tfc_progress_begin(const char *phase);
// Shows the progress. `fraction`: in [0, 1]; negative: not known. `seconds_left`: if it is negative, it is estimated
// from the fraction and the time so far. May be called often: it draws at most ten times a second.
void tfc_progress_update(double fraction, double seconds_left, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Ends the phase and prints its result.
void tfc_progress_end(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Removes the bar from the terminal, so that something else can be printed.
void tfc_progress_hide(void);

#endif
