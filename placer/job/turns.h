// Turns: measures candidates in turns with the incumbent.
#ifndef TFC_PLACER_JOB_TURNS_H
#define TFC_PLACER_JOB_TURNS_H

#include "placer/job/measuring.h"

// Measures index[count] as a batch in turns with the incumbent, until the moment at which the search, or the phase's
// batches, must end. `thorough`: each gets four blocks, and none is stopped as too slow.
TFC_MUST_USE tfc_status tfc_job_turns_measure(struct tfc_job_measuring *measuring, const uint32_t *index,
                                              uint32_t count, bool thorough);
// Measures the incumbent again, in turns with the incumbent before it (`former`). If it is faster, *out_winner is
// the algorithm that proposed it, otherwise NULL. If it is slower, `former` becomes the incumbent again. Does nothing
// if there is little time.
TFC_MUST_USE tfc_status tfc_job_turns_confirm(struct tfc_job_measuring *measuring, uint32_t former,
                                              const char **out_winner);
// the end of the search, in seconds of the job
double tfc_job_turns_search_end_s(const struct tfc_job_measuring *measuring);

#endif
