// Turns: measures candidates in turns with the incumbent, lets the model learn from the results, and stores them in the
// journal.
#ifndef TFC_PLACER_JOB_TURNS_H
#define TFC_PLACER_JOB_TURNS_H

#include "placer/job/entries.h"
#include "placer/job/finalists.h"
#include "placer/job/journal.h"
#include "placer/job/proposers.h"

struct tfc_job_turns {
  struct tfc_job_clock *clock;
  struct tfc_job_schedule *schedule;
  struct tfc_job_model *model;
  struct tfc_job_candidates *candidates;
  struct tfc_job_journal *journal;
  struct tfc_measurer *measurer;
  struct tfc_job_proposers *proposers;
};
// Measures index[count] as a batch in turns with the incumbent, until the moment at which the search, or the phase's
// batches, must end. `thorough`: each gets four blocks, and none is stopped as too slow.
TFC_MUST_USE tfc_status tfc_job_turns_measure(struct tfc_job_turns *turns, const uint32_t *index, uint32_t count,
                                              bool thorough);
// Measures the incumbent again, in turns with the incumbent before it (`former`). If it is faster than `former`, its
// proposer gets credit; otherwise `former` becomes the incumbent again. Does nothing if there is little time.
TFC_MUST_USE tfc_status tfc_job_turns_confirm(struct tfc_job_turns *turns, uint32_t former);
// Stores the measurement of a candidate: its figures, its rows in the database, and what the model learns from it.
TFC_MUST_USE tfc_status tfc_job_turns_take(struct tfc_job_turns *turns, uint32_t index,
                                           const struct tfc_measured *measured, const char *phase);
// Makes the model learn how long the candidate's operations and its step take.
TFC_MUST_USE tfc_status tfc_job_turns_learn(struct tfc_job_turns *turns, uint32_t index,
                                            const struct tfc_measured *measured);
double tfc_job_turns_search_end_s(const struct tfc_job_turns *turns); // the end of the search, in seconds of the job

#endif
