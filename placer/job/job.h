// Job: finds the placement of a TensorFlow graph on local devices that is measurably the best. Its phases are: profile
// and baselines (a third of the time), search and learning (the rest), final measurement and report (a quarter is kept
// for them). Some of the final turns choose the answer; its figures come from the turns after them. Everything is
// written to the database immediately, and an interrupted job can be resumed from there. The calling program only
// parses flags, shows events and prints the outcome.
//
//   struct tfc_job_outcome outcome = {0};
//   tfc_status s = tfc_job_run(&options, &outcome);
//   ... print outcome.rows, outcome.placement or the status's message; exit(outcome.exit_code);
//   tfc_job_outcome_deinit(&outcome);
#ifndef TFC_PLACER_JOB_JOB_H
#define TFC_PLACER_JOB_JOB_H

#include "placer/job/options.h"
#include "placer/job/outcome.h"

TFC_MUST_USE tfc_status tfc_job_run(const struct tfc_job_options *options, struct tfc_job_outcome *out);

#endif
