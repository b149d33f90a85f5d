// Choice: finds which of several placements that were measured in turns is the fastest, and which are surely slower.
// The functions work on logarithms of block medians, log_us[entry * turns + turn]; NaN: not measured in that turn. The
// chosen placement must then be measured in other turns: the best of many similar placements was also lucky, so the
// figures by which it was chosen are too low (the winner's curse; Capen, Clapp, Campbell 1971).
#ifndef TFC_PLACER_MEASURE_CHOICE_H
#define TFC_PLACER_MEASURE_CHOICE_H

#include <stdint.h>

// Returns the entry with the smallest mean, among those that were measured in all of the first `count` turns;
// TFC_NONE: there is none.
uint32_t tfc_choice_leader(const double *log_us, uint32_t entries, uint32_t turns, uint32_t count);
// Whether `other` is slower than `leader` by more than the variation of both over the first `count` turns; false after
// one turn.
int tfc_choice_surely_slower(const double *leader, const double *other, uint32_t count);

#endif
