// Document: the placement file of an answer, made from its candidate and the outcome (placer/model/placement.h).
#ifndef TFC_PLACER_JOB_DOCUMENT_H
#define TFC_PLACER_JOB_DOCUMENT_H

#include "placer/job/candidates.h"
#include "placer/job/outcome.h"

// Makes the placement file of a candidate as out->placement. It contains the rows and the bound of the outcome.
TFC_MUST_USE tfc_status tfc_job_document(const struct tfc_job_candidates *candidates,
                                         const struct tfc_job_candidate *candidate, struct tfc_job_outcome *out);

#endif
