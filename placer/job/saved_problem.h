#ifndef TFC_PLACER_JOB_SAVED_PROBLEM_H
#define TFC_PLACER_JOB_SAVED_PROBLEM_H

#include "placer/job/model.h"

// Does nothing if the problem is not to be saved or does not exist yet. DATA_LOSS: it cannot be written.
TFC_MUST_USE tfc_status tfc_job_save_problem(const struct tfc_job_model *model, const struct tfc_job_clock *clock);
// The same for the answer's document; NULL: nothing is written.
TFC_MUST_USE tfc_status tfc_job_save_placement(const struct tfc_job_model *model, const struct tfc_placement *document);

#endif
