// Finalists: the candidates of the final turns, and how long these turns take. Some candidates always take part: the
// incumbent, the one that was reported as the best so far, the fastest on several devices and on one, the undivided
// machine, and the rivals. The fastest others take part if there is time: up to FINALISTS (finalists.c) on several
// devices if one block of each can choose, and more of them if all turns can be run. Some turns choose the answer; the
// turns after them measure the answer and what it is compared with.
#ifndef TFC_PLACER_JOB_FINALISTS_H
#define TFC_PLACER_JOB_FINALISTS_H

#include "placer/job/candidates.h"
#include "placer/job/schedule.h"

enum { TFC_JOB_FINAL_ROUNDS = 6, TFC_JOB_FINAL_BLOCK = 5 };

// Chooses by step time, into list[TFC_JOB_MOST_FINALISTS]. *out_block: timed steps of a block, fewer if there is less
// time.
uint32_t tfc_job_finalists(const struct tfc_job_candidates *candidates, double left_s, uint32_t *list,
                           uint32_t *out_block);
// Whether the candidate is measured to the end of the final turns even if another one is chosen: the undivided machine,
// single devices and rivals are.
bool tfc_job_stays(const struct tfc_job_candidate *candidate);
// Chooses the candidates with the least loads, and those that they are compared with.
uint32_t tfc_job_finalists_by_load(const struct tfc_job_candidates *candidates, uint32_t *list);
// The seconds that the shortest final run would take now: a few steps of each candidate that must be compared, and the
// report.
double tfc_job_final_s(const struct tfc_job_candidates *candidates, const struct tfc_job_schedule *schedule);

#endif
