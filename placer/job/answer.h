// The answer: which candidate it is, the table, the document, and the first line of the message.
#ifndef TFC_PLACER_JOB_ANSWER_H
#define TFC_PLACER_JOB_ANSWER_H

#include "placer/job/candidates.h"
#include "placer/job/outcome.h"

// An error if there is no answer, with the exit code in the outcome: nothing fits, or everything that was tried failed.
TFC_MUST_USE tfc_status tfc_job_answer(struct tfc_job_candidates *candidates, const struct tfc_job_clock *clock,
                                       struct tfc_job_outcome *out);

#endif
