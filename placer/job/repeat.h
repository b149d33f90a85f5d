#ifndef TFC_PLACER_JOB_REPEAT_H
#define TFC_PLACER_JOB_REPEAT_H

#include "placer/job/outcome.h"
#include "placer/job/turns.h"

// Makes the repeated measurements that the options ask for, and fills the outcome's pairs.
TFC_MUST_USE tfc_status tfc_job_repeat(struct tfc_job_turns *turns, struct tfc_job_outcome *out);

#endif
