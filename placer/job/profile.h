// Profile: runs the step on one device of each kind and on the undivided machine, in blocks with and without tracing in
// turns, and times the links. The model's costs come from all of that.
#ifndef TFC_PLACER_JOB_PROFILE_H
#define TFC_PLACER_JOB_PROFILE_H

#include "placer/job/measuring.h"

// Fails if no device could run the step, with the reason of the first failure.
TFC_MUST_USE tfc_status tfc_job_profile(struct tfc_job_measuring *measuring);

#endif
