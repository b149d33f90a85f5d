#ifndef TFC_PLACER_JOB_REPEAT_H
#define TFC_PLACER_JOB_REPEAT_H

#include "placer/job/candidates.h"
#include "placer/job/outcome.h"

// Makes the repeated measurements that the options ask for, and fills the outcome's pairs.
TFC_MUST_USE tfc_status tfc_job_repeat(const struct tfc_job_candidates *candidates, struct tfc_measurer *measurer,
                                       struct tfc_job_outcome *out);

#endif
