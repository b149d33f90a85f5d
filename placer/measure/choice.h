// Choice: which of several placements that were measured in turns is the fastest, and which are surely not. Pure
// functions on logarithms of block medians, log_us[entry * turns + turn]; NaN: not measured in that turn. What is said
// of the chosen one must come from other turns: of many that are alike the one chosen was lucky, and its own figures
// say less than it takes (the winner's curse; Capen, Clapp, Campbell 1971).
#ifndef TFC_PLACER_MEASURE_CHOICE_H
#define TFC_PLACER_MEASURE_CHOICE_H

#include <stdint.h>

// Of those that have all of the first `count` turns, the one with the least mean; UINT32_MAX: none has.
uint32_t tfc_choice_leader(const double *log_us, uint32_t entries, uint32_t turns, uint32_t count);
// Whether `other` is slower than `leader` by more than the first `count` turns of both may vary: never after one turn.
int tfc_choice_surely_slower(const double *leader, const double *other, uint32_t count);

#endif
