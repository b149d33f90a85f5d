// Resume: reads an interrupted run from the database into model, candidates and journal, so that it can go on.
#ifndef TFC_PLACER_JOB_RESUME_H
#define TFC_PLACER_JOB_RESUME_H

#include "placer/job/journal.h"

// The run that the options name must be of the same graph, objective and devices; nothing is changed before that is
// checked. `sha256` is the graph file's.
TFC_MUST_USE tfc_status tfc_job_resume(const struct tfc_job_options *options, const char *sha256,
                                       struct tfc_job_clock *clock, struct tfc_job_model *model,
                                       struct tfc_job_candidates *candidates, struct tfc_job_journal *journal);

// Reads what the run had learned (samples of the learned model, step times, and what each algorithm proposed); to be
// called when learning has begun.
TFC_MUST_USE tfc_status tfc_job_resume_learning(const struct tfc_job_clock *clock, struct tfc_job_model *model,
                                                const struct tfc_job_candidates *candidates,
                                                struct tfc_job_journal *journal, struct tfc_job_proposers *proposers);

#endif
