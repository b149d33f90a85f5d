// Profile: the step on one device of each kind and on the undivided machine, blocks with and without tracing in turns;
// the links; and from all that the model's costs.
#ifndef TFC_PLACER_JOB_PROFILE_H
#define TFC_PLACER_JOB_PROFILE_H

#include "placer/job/turns.h"

// Fails where no device could run the step, with the reason of the first.
TFC_MUST_USE tfc_status tfc_job_profile(struct tfc_job_turns *turns);

#endif
