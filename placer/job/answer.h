// Answer: chooses the candidate that is the answer, and makes the table, the document and the first line of the
// message.
#ifndef TFC_PLACER_JOB_ANSWER_H
#define TFC_PLACER_JOB_ANSWER_H

#include "placer/job/candidates.h"
#include "placer/job/outcome.h"

// Returns an error if there is no answer (no placement fits, or everything that was tried failed); the outcome then has
// the exit code.
TFC_MUST_USE tfc_status tfc_job_answer(struct tfc_job_candidates *candidates, const struct tfc_job_clock *clock,
                                       struct tfc_job_outcome *out);

#endif
