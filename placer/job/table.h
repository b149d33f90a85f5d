// Table: the lines of the answer, one for each placement that is shown, with its speed-up over the best single device.
#ifndef TFC_PLACER_JOB_TABLE_H
#define TFC_PLACER_JOB_TABLE_H

#include "placer/job/finalists.h"
#include "placer/job/outcome.h"

// Adds a line for the candidate. Its speed-up is the step time of `single` divided by its own; NULL: no speed-up is
// shown.
TFC_MUST_USE tfc_status tfc_job_table_add(const struct tfc_job_candidates *candidates,
                                          const struct tfc_job_candidate *candidate, const char *name, const char *kind,
                                          const struct tfc_job_candidate *single, struct tfc_job_outcome *out);
// Adds the lines of the undivided machine, the answer, the single devices, the baselines and the heuristics.
TFC_MUST_USE tfc_status tfc_job_table_fill(const struct tfc_job_candidates *candidates,
                                           const struct tfc_job_candidate *single, struct tfc_job_outcome *out);
// Computes Kendall's tau between predictions (made before the placement was measured) and measured medians, over all
// pairs of rows with state "ok" that have both. Single devices have no predictions, because predictions are made from
// their profiles.
TFC_MUST_USE tfc_status tfc_job_table_correlate(const struct tfc_job_candidates *candidates,
                                                struct tfc_job_outcome *out);

#endif
