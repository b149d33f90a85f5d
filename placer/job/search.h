// Search: rounds of simulated search. A few of the best and different placements of each round are measured; then costs
// and slow-down are refit. The learners follow.
#ifndef TFC_PLACER_JOB_SEARCH_H
#define TFC_PLACER_JOB_SEARCH_H

#include "placer/job/turns.h"

TFC_MUST_USE tfc_status tfc_job_search(struct tfc_job_turns *turns);

#endif
