// Evaluate: the run that --evaluate asks for. It measures a given placement in turns and searches nothing.
#ifndef TFC_PLACER_JOB_EVALUATE_H
#define TFC_PLACER_JOB_EVALUATE_H

#include "placer/job/measuring.h"
#include "placer/job/outcome.h"

// For --evaluate: measures the step time of one placement, without a search.
TFC_MUST_USE tfc_status tfc_job_evaluate(struct tfc_job_measuring *measuring, struct tfc_job_outcome *out);

#endif
