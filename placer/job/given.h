// The placement that --evaluate names: checked before anything is measured, then turned into a solution.
#ifndef TFC_PLACER_JOB_GIVEN_H
#define TFC_PLACER_JOB_GIVEN_H

#include "placer/job/model.h"

// As a solution of model->problem; the caller deinits it. What is to be said about it goes to `clock`; NULL: nothing.
TFC_MUST_USE tfc_status tfc_job_given(const struct tfc_job_model *model, const struct tfc_job_clock *clock,
                                      struct tfc_solution *out);
// UNAVAILABLE: a device that is not there. Needs only `bare`: a graph's pins and groups are looked at afterwards.
TFC_MUST_USE tfc_status tfc_job_check_given_devices(const struct tfc_job_model *model);
TFC_MUST_USE tfc_status tfc_job_check_given(const struct tfc_job_model *model); // all else: needs the problem

#endif
