// Search: runs rounds of simulated search. From each round a few of the best placements that differ from each other are
// measured; then costs and slow-downs are fitted again. The learners follow.
#ifndef TFC_PLACER_JOB_SEARCH_H
#define TFC_PLACER_JOB_SEARCH_H

#include "placer/job/measuring.h"
#include "placer/job/proposers.h"

// Sets *out_why to a constant string that says why the search ended, as the end of a sentence.
TFC_MUST_USE tfc_status tfc_job_search(struct tfc_job_measuring *measuring, struct tfc_job_proposers *proposers,
                                       const char **out_why);

#endif
