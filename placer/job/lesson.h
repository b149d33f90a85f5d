// Lesson: converts a traced step of a placement to the form that the learned model reads, with nodes of the cost graph.
#ifndef TFC_PLACER_JOB_LESSON_H
#define TFC_PLACER_JOB_LESSON_H

#include "placer/job/model.h"

// Makes the model learn from measured steps: from their total time and, if they were traced, from their operations.
// Does nothing with --model prior, where nothing is learned.
TFC_MUST_USE tfc_status tfc_job_lesson(struct tfc_job_model *model, const struct tfc_solution *solution, double step_us,
                                       const struct tfc_measured *measured);

#endif
