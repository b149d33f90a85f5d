// Where a trial equals the incumbent again.
#ifndef TFC_PLACER_SIMULATE_DELTA_JOIN_H
#define TFC_PLACER_SIMULATE_DELTA_JOIN_H

#include "placer/simulate/delta_private.h"

// Whether the engine's state equals that of the incumbent at *out_past, shifted by *out_shift ps; inputs that moved
// nodes wait for are not compared. The engine runs the trial and has paused when `reach` operations have ended.
bool tfc_delta_joins(const struct tfc_delta *delta, int64_t *out_past, int64_t *out_shift);

// Returns the index of the first transfer of a lane that has not ended after the instant `past`.
size_t tfc_delta_first_under_way(const struct tfc_engine_rides *lane, int64_t past);

#endif
