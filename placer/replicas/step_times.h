// Step times: how much the time of a step varies around its median. Most steps vary a little (the logarithm of their
// time has a normal distribution); a few, the stragglers, are late by a factor, and synchronous replicas wait for them.
#ifndef TFC_PLACER_REPLICAS_STEP_TIMES_H
#define TFC_PLACER_REPLICAS_STEP_TIMES_H

#include "runtime/base/random.h"
#include "runtime/base/status.h"

struct tfc_step_times {
  double sigma;       // standard deviation of the logarithm
  double late_share;  // of steps that are late
  double late_factor; // the factor by which late steps are longer, at least 1
  uint32_t samples;   // number of steps to which the distribution was fitted; 0: it was assumed
};
enum { TFC_STEP_TIMES_LEAST = 20 };
// Fits the distribution to step times that were divided by the median of their placement (the array gets sorted).
// INVALID_ARGUMENT: there are fewer than TFC_STEP_TIMES_LEAST.
TFC_MUST_USE tfc_status tfc_step_times_fit(double *ratio, uint32_t count, struct tfc_step_times *out);
// Draws the factor of one step.
double tfc_step_times_draw(const struct tfc_step_times *times, struct tfc_random *random);

#endif
