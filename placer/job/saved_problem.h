#ifndef TFC_PLACER_JOB_SAVED_PROBLEM_H
#define TFC_PLACER_JOB_SAVED_PROBLEM_H

#include "placer/job/model.h"

// Writes the problem to the folder of --save-problem. Does nothing without that option, or if the profile did not end.
// DATA_LOSS: it cannot be written.
TFC_MUST_USE tfc_status tfc_job_save_problem(const struct tfc_job_model *model, const struct tfc_job_clock *clock);
// As the function above, for the document of the answer; NULL: nothing is written.
TFC_MUST_USE tfc_status tfc_job_save_placement(const struct tfc_job_model *model, const struct tfc_placement *document);

#endif
