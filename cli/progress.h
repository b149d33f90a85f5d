// Progress of one phase after another. On a terminal: one line that is redrawn, with a bar and the time left.
// Elsewhere: a line when a phase ends, and one every quarter of a minute while it lasts. Nothing with --quiet.
// Main thread only, but for tfc_progress_hide, which the messages of cli/program.h call under their lock.
#ifndef TFC_CLI_PROGRESS_H
#define TFC_CLI_PROGRESS_H

#include <stdbool.h>

// Begins a phase ("profile"). A phase that did not end is ended.
void tfc_progress_begin(const char *phase);
// `fraction` in [0, 1], negative: unknown. `seconds_left` negative: worked out from the fraction and the time so far.
// Cheap to call often: draws at most ten times a second.
void tfc_progress_update(double fraction, double seconds_left, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Ends the phase and says what came out of it.
void tfc_progress_end(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Takes the bar off the terminal, so that something else can be printed.
void tfc_progress_hide(void);

#endif
