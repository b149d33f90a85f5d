// Lesson: a traced step of a placement as the learned model reads it, by nodes of the cost graph.
#ifndef TFC_PLACER_JOB_LESSON_H
#define TFC_PLACER_JOB_LESSON_H

#include "placer/job/model.h"

// What the steps that were measured teach about costs: their operations where they were traced, and how long they took.
// Nothing where nothing is learned (--model prior).
TFC_MUST_USE tfc_status tfc_job_lesson(struct tfc_job_model *model, const struct tfc_solution *solution, double step_us,
                                       const struct tfc_measured *measured);

#endif
