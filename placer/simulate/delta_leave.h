// Where a trial begins to differ from the incumbent.
#ifndef TFC_PLACER_SIMULATE_DELTA_LEAVE_H
#define TFC_PLACER_SIMULATE_DELTA_LEAVE_H

#include "placer/simulate/delta_private.h"

// Returns the first instant of the incumbent at which the trial, whose moves were made, may differ. Fills `silent`.
int64_t tfc_delta_leaves(struct tfc_delta *delta);
// Returns the first instant of the incumbent after `past` at which the trial may differ, if the two had the same state
// at `past`; returns `past` if they may differ at once. No transfer counts as silent.
int64_t tfc_delta_leaves_after(const struct tfc_delta *delta, int64_t past);
// Whether a silent transfer is under way at that instant, so that the states of trial and incumbent differ by it.
bool tfc_delta_within_silence(const struct tfc_delta *delta, int64_t time);
// Changes a saved state of the incumbent (`block`), of the instant `time`, into the trial's state at that instant,
// which must be before the first difference. `past`: the last instant at which the two had the same state after they
// had differed; -1: they have not differed yet.
void tfc_delta_adjust(const struct tfc_delta *delta, uint8_t *block, int64_t time, int64_t past);

#endif
