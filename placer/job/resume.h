// Resume: reads an interrupted run from the database into the model, the candidates and the journal, so that the job
// continues it.
#ifndef TFC_PLACER_JOB_RESUME_H
#define TFC_PLACER_JOB_RESUME_H

#include "placer/job/journal.h"

// The run that the options name must have the same graph, objective and devices as this job; that is checked before
// anything is changed. `sha256`: of the graph file.
TFC_MUST_USE tfc_status tfc_job_resume(const struct tfc_job_options *options, const char *sha256,
                                       struct tfc_job_clock *clock, struct tfc_job_model *model,
                                       struct tfc_job_candidates *candidates, struct tfc_job_journal *journal);

// Reads what the run had learned: samples of the learned model, step times, and what each algorithm proposed. Call it
// when learning has begun.
TFC_MUST_USE tfc_status tfc_job_resume_learning(const struct tfc_job_clock *clock, struct tfc_job_model *model,
                                                const struct tfc_job_candidates *candidates,
                                                struct tfc_job_journal *journal, struct tfc_job_proposers *proposers);

#endif
