#ifndef TFC_PLACER_JOB_IN_FLIGHT_H
#define TFC_PLACER_JOB_IN_FLIGHT_H

#include "placer/job/turns.h"

// In turns until `until_s`, one by one and with several steps in flight: does nothing where the step updates variables,
// whose steps follow one another, or where the shortest step is what is looked for.
TFC_MUST_USE tfc_status tfc_job_measure_in_flight(struct tfc_job_turns *turns, const uint32_t *index, uint32_t count,
                                                  double until_s);

#endif
