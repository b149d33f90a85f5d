// Account: what learning did in a run, in a few lines: how good the learned model was before each reading, what learned
// proposers took and found beside the others, and whose the answer is.
#ifndef TFC_PLACER_JOB_ACCOUNT_H
#define TFC_PLACER_JOB_ACCOUNT_H

#include "placer/job/candidates.h"
#include "placer/job/proposers.h"

// Adds nothing where nothing was learned and no policy proposed.
void tfc_job_account(const struct tfc_job_candidates *candidates, const struct tfc_job_proposers *proposers,
                     struct tfc_text *out);

#endif
