// Explain: how near the answer is to the lower bound, what is on its critical path, and how many bytes cross between
// devices.
#ifndef TFC_PLACER_JOB_EXPLAIN_H
#define TFC_PLACER_JOB_EXPLAIN_H

#include "placer/job/candidates.h"
#include "placer/job/outcome.h"

TFC_MUST_USE tfc_status tfc_job_explain_bound(const struct tfc_job_candidates *candidates,
                                              const struct tfc_job_clock *clock, struct tfc_job_outcome *out);
TFC_MUST_USE tfc_status tfc_job_explain_placement(const struct tfc_job_model *model,
                                                  const struct tfc_job_candidate *candidate,
                                                  struct tfc_job_outcome *out);

#endif
