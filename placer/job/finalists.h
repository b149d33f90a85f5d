// Finalists: who takes part in the final turns, and how long these take. What must be compared always does (the
// incumbent, what was said to be the best so far, the fastest on several devices and on one, the undivided machine, the
// rivals); more of the fastest where there is time for two full blocks of each. Some turns choose the answer; those
// that tell what it takes come after them, of the answer and of what it is compared with.
#ifndef TFC_PLACER_JOB_FINALISTS_H
#define TFC_PLACER_JOB_FINALISTS_H

#include "placer/job/candidates.h"
#include "placer/job/schedule.h"

enum { TFC_JOB_FINAL_ROUNDS = 6, TFC_JOB_FINAL_BLOCK = 5 };

// By index: list[TFC_JOB_MOST_FINALISTS]. *out_block: timed steps of a block, fewer where there is less time.
uint32_t tfc_job_finalists(const struct tfc_job_candidates *candidates, double left_s, uint32_t *list,
                           uint32_t *out_block);
// Is measured to the end of the final turns, whoever is chosen: the undivided machine, one device, the rivals.
bool tfc_job_stays(const struct tfc_job_candidate *candidate);
// Those of the least loads, and what they are compared with.
uint32_t tfc_job_finalists_by_load(const struct tfc_job_candidates *candidates, uint32_t *list);
// What few steps of all that must be compared, and the report, would take now.
double tfc_job_final_s(const struct tfc_job_candidates *candidates, const struct tfc_job_schedule *schedule);

#endif
