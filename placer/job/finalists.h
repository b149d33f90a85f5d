// Finalists: the candidates of the final turns, and how long these turns take. Some candidates always take part: the
// incumbent, the one that was reported as the best so far, the fastest on several devices and on one, the undivided
// machine, and the rivals; for the throughput objective also the candidates with the smallest loads. The fastest others
// on several devices take part if there is time: up to FINALISTS of them (finalists.c) if the time suffices for one
// block of each, and more if it suffices for all turns. Some turns choose the answer; the turns after them measure the
// answer and what it is compared with.
#ifndef TFC_PLACER_JOB_FINALISTS_H
#define TFC_PLACER_JOB_FINALISTS_H

#include "placer/job/candidates.h"
#include "placer/job/schedule.h"

enum { TFC_JOB_FINAL_ROUNDS = 6, TFC_JOB_FINAL_BLOCK = 5 };

// Chooses candidates by step time; fills list[TFC_JOB_MOST_FINALISTS] and returns their number. *out_block: timed steps
// of a block; fewer if there is less time.
uint32_t tfc_job_finalists(const struct tfc_job_candidates *candidates, double left_s, uint32_t *list,
                           uint32_t *out_block);
// Whether the candidate is measured until the end of the final turns even if another one is chosen: so it is for the
// undivided machine, single devices and rivals; for the throughput objective also for the smallest loads.
bool tfc_job_stays(const struct tfc_job_candidates *candidates, uint32_t index);
// For the throughput objective, chooses the candidates with the smallest loads, and those that they are compared with;
// for the shortest step, none.
uint32_t tfc_job_finalists_by_load(const struct tfc_job_candidates *candidates, uint32_t *list);
// Returns how many seconds the shortest final run would take now: a few steps of each candidate that must be compared,
// and the report.
double tfc_job_final_s(const struct tfc_job_candidates *candidates, const struct tfc_job_schedule *schedule);

#endif
