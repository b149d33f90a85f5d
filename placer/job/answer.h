// The answer: which candidate it is, the table, the document, and the message that comes first.
#ifndef TFC_PLACER_JOB_ANSWER_H
#define TFC_PLACER_JOB_ANSWER_H

#include "placer/job/candidates.h"
#include "placer/job/outcome.h"

// An error where there is none, with the exit code in the outcome: nothing fits, or what was tried failed.
TFC_MUST_USE tfc_status tfc_job_answer(struct tfc_job_candidates *candidates, const struct tfc_job_clock *clock,
                                       struct tfc_job_outcome *out);

#endif
