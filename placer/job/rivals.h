// Rivals: simulates the placements that exist without a search (the expert's device strings, the user's files, the
// heuristics), and measures the best of them.
#ifndef TFC_PLACER_JOB_RIVALS_H
#define TFC_PLACER_JOB_RIVALS_H

#include "placer/job/measuring.h"
#include "placer/job/proposers.h"

// Afterwards the incumbent is the fastest one of the rivals and the single devices.
TFC_MUST_USE tfc_status tfc_job_rivals(struct tfc_job_measuring *measuring, struct tfc_job_proposers *proposers);

#endif
