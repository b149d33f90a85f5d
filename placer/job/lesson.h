// Lesson: a traced step of a placement in the form that the learned model reads, by nodes of the cost graph.
#ifndef TFC_PLACER_JOB_LESSON_H
#define TFC_PLACER_JOB_LESSON_H

#include "placer/job/model.h"

// Teaches the learned model the measured steps: their total time and, if they were traced, their operations. Does
// nothing if nothing is learned (--model prior).
TFC_MUST_USE tfc_status tfc_job_lesson(struct tfc_job_model *model, const struct tfc_solution *solution, double step_us,
                                       const struct tfc_measured *measured);

#endif
