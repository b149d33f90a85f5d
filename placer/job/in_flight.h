#ifndef TFC_PLACER_JOB_IN_FLIGHT_H
#define TFC_PLACER_JOB_IN_FLIGHT_H

#include "placer/job/journal.h"

// Measures the candidates index[count] until `until_s` seconds of the job, in turns: blocks with one step after
// another, and blocks with several steps in flight. Does nothing if the step updates variables (then steps cannot
// overlap), or if the objective is the shortest step.
TFC_MUST_USE tfc_status tfc_job_measure_in_flight(struct tfc_job_candidates *candidates,
                                                  struct tfc_job_journal *journal, struct tfc_measurer *measurer,
                                                  const uint32_t *index, uint32_t count, double until_s);

#endif
