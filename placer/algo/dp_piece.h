// The current piece and its cost (dp.h).
#ifndef TFC_PLACER_ALGO_DP_PIECE_H
#define TFC_PLACER_ALGO_DP_PIECE_H

#include "placer/algo/dp.h"

// Adds a run to the current piece (sign 1) or removes it (-1).
void tfc_dp_change(struct tfc_dp *dp, uint32_t run, int sign);
void tfc_dp_clear(struct tfc_dp *dp); // empties the current piece
// Returns the shortest time that the current piece takes on a device of the type, ps; INFINITY: it cannot be there.
double tfc_dp_cost(const struct tfc_dp *dp, uint32_t type);
// Fills `in` and `out` of each type, using the best of its links, and sets `even`.
TFC_MUST_USE tfc_status tfc_dp_find_wires(struct tfc_dp *dp);

#endif
