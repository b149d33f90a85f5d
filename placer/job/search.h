// Search: rounds of simulated search, each of whose few best and different placements are measured, after which costs
// and slow-down are refit; then the learners.
#ifndef TFC_PLACER_JOB_SEARCH_H
#define TFC_PLACER_JOB_SEARCH_H

#include "placer/job/turns.h"

TFC_MUST_USE tfc_status tfc_job_search(struct tfc_job_turns *turns);

#endif
