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
  const char *text;              // a line for the user; NULL: the event only shows progress
  double seconds, seconds_total; // of the whole job
  uint32_t measured, measured_total;
  double best_us; // NaN: nothing was measured yet
};

struct tfc_job_clock {
  int64_t begin_ns;
  double before_s;           // time that the run had used before it was interrupted
  double total_s;            // the whole job's budget
  const atomic_bool *cancel; // may be NULL
  tfc_job_phase phase;
  void (*event)(void *user, const struct tfc_job_event *event); // may be NULL
  void *user;
  uint32_t measured, measured_total; // these and best_us are shown with every event
  double best_us;                    // NaN: nothing was measured yet
};
// Begins now.
struct tfc_job_clock tfc_job_clock_begin(double total_s, uint32_t measured_total, const atomic_bool *cancel,
                                         void (*event)(void *user, const struct tfc_job_event *event), void *user);
void tfc_job_clock_enter(struct tfc_job_clock *clock, tfc_job_phase phase);
void tfc_job_clock_leave_out(struct tfc_job_clock *clock, double seconds); // time in which the job only waited
void tfc_job_clock_resume(struct tfc_job_clock *clock, double before_s);
// Sets what is shown with every event.
void tfc_job_clock_show(struct tfc_job_clock *clock, uint32_t measured, double best_us);
// the time that the job has used, that before an interruption included
double tfc_job_seconds(const struct tfc_job_clock *clock);
// Returns the moment on tfc_now_ns's clock, in seconds, at which the job has used `seconds`; more
// than 0, because a deadline of 0 means none.
double tfc_job_moment(const struct tfc_job_clock *clock, double seconds);
bool tfc_job_cancelled(const struct tfc_job_clock *clock);
void tfc_job_say(const struct tfc_job_clock *clock, bool warning, const char *format, ...) TFC_PRINTF(3, 4);

#endif
