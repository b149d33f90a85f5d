#include "placer/job/clock.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "runtime/base/clock.h"

struct tfc_job_clock tfc_job_clock_begin(double total_s, uint32_t measured_total, const atomic_bool *cancel,
                                         void (*event)(void *user, const struct tfc_job_event *event), void *user) {
  return (struct tfc_job_clock){.begin_ns = tfc_now_ns(),
                                .total_s = total_s,
                                .cancel = cancel,
                                .event = event,
                                .user = user,
                                .measured_total = measured_total,
                                .best_us = (double)NAN};
}

void tfc_job_clock_enter(struct tfc_job_clock *c, tfc_job_phase phase) {
  c->phase = phase;
}

void tfc_job_clock_leave_out(struct tfc_job_clock *c, double seconds) {
  c->begin_ns += (int64_t)(1e9 * seconds);
}

void tfc_job_clock_resume(struct tfc_job_clock *c, double before_s) {
  c->before_s = before_s;
}

void tfc_job_clock_show(struct tfc_job_clock *c, uint32_t measured, double best_us) {
  c->measured = measured, c->best_us = best_us;
}

double tfc_job_seconds(const struct tfc_job_clock *c) {
  return c->before_s + 1e-9 * (double)(tfc_now_ns() - c->begin_ns);
}

double tfc_job_moment(const struct tfc_job_clock *c, double seconds) {
  const double moment = 1e-9 * (double)c->begin_ns - c->before_s + seconds;
  return moment > 0 ? moment : 1e-9; // the machine was started after that moment; as a deadline, 0 would mean none
}

bool tfc_job_cancelled(const struct tfc_job_clock *c) {
  return c->cancel && atomic_load(c->cancel);
}

void tfc_job_say(const struct tfc_job_clock *c, bool warning, const char *format, ...) {
  char text[1024];
  if (!c->event) return;
  if (format) {
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
  }
  const struct tfc_job_event event = {.phase = c->phase,
                                      .warning = warning,
                                      .text = format ? text : NULL,
                                      .seconds = tfc_job_seconds(c),
                                      .seconds_total = c->total_s,
                                      .measured = c->measured,
                                      .measured_total = c->measured_total,
                                      .best_us = c->best_us};
  c->event(c->user, &event);
}
