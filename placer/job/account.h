// Account: writes a few lines about what learning contributed to a run: how good the learned model's predictions were,
// what learned policies used and found compared with the other algorithms, and which algorithm found the answer.
#ifndef TFC_PLACER_JOB_ACCOUNT_H
#define TFC_PLACER_JOB_ACCOUNT_H

#include "placer/job/candidates.h"
#include "placer/job/proposers.h"

// Writes nothing if nothing was learned and no policy proposed a placement.
void tfc_job_account(const struct tfc_job_candidates *candidates, const struct tfc_job_proposers *proposers,
                     struct tfc_text *out);

#endif
