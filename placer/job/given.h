// Given: the placement that --evaluate names is checked before anything is measured, and then turned into a solution.
#ifndef TFC_PLACER_JOB_GIVEN_H
#define TFC_PLACER_JOB_GIVEN_H

#include "placer/job/model.h"

// Makes a solution of model->problem from it, which the caller deinitialises. Messages go to `clock`; NULL: there are
// none.
TFC_MUST_USE tfc_status tfc_job_given(const struct tfc_job_model *model, const struct tfc_job_clock *clock,
                                      struct tfc_solution *out);
// UNAVAILABLE: the placement names a device that does not exist. This check needs only the model's `bare` machine; pins
// and groups are checked later.
TFC_MUST_USE tfc_status tfc_job_check_given_devices(const struct tfc_job_model *model);
// Makes all other checks, which need the problem.
TFC_MUST_USE tfc_status tfc_job_check_given(const struct tfc_job_model *model);

#endif
