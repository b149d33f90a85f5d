#ifndef TFC_PLACER_JOB_SAVED_PROBLEM_H
#define TFC_PLACER_JOB_SAVED_PROBLEM_H

#include "placer/job/model.h"

// Nothing where nobody wants the problem saved, or where there is none yet. DATA_LOSS: it cannot be written.
TFC_MUST_USE tfc_status tfc_job_save_problem(const struct tfc_job_model *model, const struct tfc_job_clock *clock);
// Once there is a document; NULL: nothing.
TFC_MUST_USE tfc_status tfc_job_save_placement(const struct tfc_job_model *model, const struct tfc_placement *document);

#endif
