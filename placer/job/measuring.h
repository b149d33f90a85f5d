// Measuring: what a phase uses that measures candidates. The measurer runs them, until moments of the schedule; the
// candidates get the results, the journal stores them, and the model learns from them. Phases that use fewer records
// get only those (in_flight.h, repeat.h).
#ifndef TFC_PLACER_JOB_MEASURING_H
#define TFC_PLACER_JOB_MEASURING_H

#include "placer/job/journal.h"
#include "placer/job/schedule.h"

struct tfc_job_measuring { // all borrowed from the job
  struct tfc_measurer *measurer;
  struct tfc_job_clock *clock;
  struct tfc_job_schedule *schedule;
  struct tfc_job_model *model;
  struct tfc_job_candidates *candidates;
  struct tfc_job_journal *journal;
};
// Stores the measurement of a candidate: its figures, its rows in the database, and what the model learns from it.
TFC_MUST_USE tfc_status tfc_job_measuring_take(struct tfc_job_measuring *measuring, uint32_t index,
                                               const struct tfc_measured *measured, const char *phase);
// Makes the model learn how long the candidate's operations and its step take.
TFC_MUST_USE tfc_status tfc_job_measuring_learn(struct tfc_job_measuring *measuring, uint32_t index,
                                                const struct tfc_measured *measured);

#endif
