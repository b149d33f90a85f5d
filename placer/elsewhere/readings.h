// Readings: the step times that the user's program reports.
#ifndef TFC_PLACER_ELSEWHERE_READINGS_H
#define TFC_PLACER_ELSEWHERE_READINGS_H

#include "placer/elsewhere/state.h"

// Measures the listed placements in turns with the reference, stores the readings, learns from them, and makes the best
// placement the new incumbent.
TFC_MUST_USE tfc_status tfc_elsewhere_read(struct tfc_elsewhere *run, const uint32_t *list, uint32_t count);
// Takes one reading; called by the evaluator, with the run as its user.
tfc_status tfc_elsewhere_observe(void *run, uint32_t index, const struct tfc_solution *candidate,
                                 const struct tfc_command_answer *answer, const struct tfc_result *result);

#endif
