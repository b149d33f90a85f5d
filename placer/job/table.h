// Table: one line of the answer for each placement that is shown, with its speed-up over the best single device.
#ifndef TFC_PLACER_JOB_TABLE_H
#define TFC_PLACER_JOB_TABLE_H

#include "placer/job/finalists.h"
#include "placer/job/outcome.h"

// `single`: what speed-ups are told against; NULL: none.
TFC_MUST_USE tfc_status tfc_job_table_add(const struct tfc_job_candidates *candidates,
                                          const struct tfc_job_candidate *candidate, const char *name, const char *kind,
                                          const struct tfc_job_candidate *single, struct tfc_job_outcome *out);
// The undivided machine, the answer, single devices, baselines, heuristics.
TFC_MUST_USE tfc_status tfc_job_table_fill(const struct tfc_job_candidates *candidates,
                                           const struct tfc_job_candidate *single, struct tfc_job_outcome *out);
// Kendall's tau of predictions, as they were before the placement was measured, against medians: the pairs of the
// database's rows that are "ok" and have both. (What a single device takes is where predictions come from: it has
// none.)
TFC_MUST_USE tfc_status tfc_job_table_correlate(const struct tfc_job_candidates *candidates,
                                                struct tfc_job_outcome *out);

#endif
