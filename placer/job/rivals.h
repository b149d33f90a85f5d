// Rivals: the expert's device strings, the user's files, the heuristics; the best are measured.
#ifndef TFC_PLACER_JOB_RIVALS_H
#define TFC_PLACER_JOB_RIVALS_H

#include "placer/job/turns.h"

// Afterwards the fastest of the rivals and the single devices is the incumbent.
TFC_MUST_USE tfc_status tfc_job_rivals(struct tfc_job_turns *turns);

#endif
