// Clock: how long a job has taken and may take, whether it was cancelled, and the events that it reports.
#ifndef TFC_PLACER_JOB_CLOCK_H
#define TFC_PLACER_JOB_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "runtime/base/status.h"

typedef enum tfc_job_phase {
  TFC_JOB_IMPORT,
  TFC_JOB_PROFILE,
  TFC_JOB_SEARCH,
  TFC_JOB_FINAL,
  TFC_JOB_DONE,
} tfc_job_phase;

struct tfc_job_event {
  tfc_job_phase phase;
  bool warning;
  const char *text;              // a line for the user, NULL: progress only
  double seconds, seconds_total; // of the whole job
  uint32_t measured, measured_total;
  double best_us; // NaN: none yet
};

struct tfc_job_clock {
  int64_t begin_ns;
  double before_s;           // time that the run had taken before it was interrupted and resumed
  double total_s;            // the whole job's budget
  const atomic_bool *cancel; // may be NULL
  tfc_job_phase phase;
  void (*event)(void *user, const struct tfc_job_event *event); // may be NULL
  void *user;
  uint32_t measured, measured_total; // part of every event, like best_us; the candidates set them
  double best_us;                    // NaN: none yet
};
double tfc_job_seconds(const struct tfc_job_clock *clock); // since the job began, resumed time included
// The time at which `seconds` of the job are over, in seconds on tfc_now_ns's clock.
double tfc_job_moment(const struct tfc_job_clock *clock, double seconds);
bool tfc_job_cancelled(const struct tfc_job_clock *clock);
void tfc_job_say(const struct tfc_job_clock *clock, bool warning, const char *format, ...) TFC_PRINTF(3, 4);

#endif
