#ifndef TFC_PLACER_JOB_EVALUATE_H
#define TFC_PLACER_JOB_EVALUATE_H

#include "placer/job/outcome.h"
#include "placer/job/turns.h"

// --evaluate: no search, only the step time under one placement.
TFC_MUST_USE tfc_status tfc_job_evaluate(struct tfc_job_turns *turns, struct tfc_job_outcome *out);

#endif
