// Gradient: moves the mean of a normal distribution over a policy's weights towards weights whose placements took less
// time when measured (REINFORCE, Williams 1992, on parameters: Sehnke et al. 2010, Parameter-exploring Policy
// Gradients, section 2.2; the step is the natural gradient, Wierstra et al. 2014, Natural Evolution Strategies).
//
// Measured times of different blocks cannot be compared, because a machine becomes faster and slower. So the advantage
// of a sample is how much shorter its time is than the mean of the others in the same interleaved block, as a
// logarithm (leave one out: Kool, van Hoof, Welling 2019, Buy 4 REINFORCE Samples, Get a Baseline for Free). What slows
// down the whole block cancels out.
#ifndef TFC_RL_GRADIENT_H
#define TFC_RL_GRADIENT_H

#include "rl/policy.h"

struct tfc_gradient {
  double mean[TFC_WEIGHTS];
  double scale; // mean absolute advantage of the blocks so far, newer ones count more; 0: none yet
};
// Computes the advantages of the samples of one block: [count] the logarithm of the mean of the other samples' times
// minus the logarithm of the sample's own time. A sample that was not measured (its time is NaN) gets 0 and does not
// count for the others. A sample that was measured alone gets 0.
void tfc_gradient_advantages(const double *times, uint32_t count, double *out_advantage);
// Moves the mean towards the weights of those samples of one block that took less time than the others. The caller drew
// the weights of the samples, weights [count], from the normal distribution around the mean, and measured the times of
// the samples, times [count]; NaN: a sample was not measured.
void tfc_gradient_step(struct tfc_gradient *gradient, const float *const *weights, const double *times, uint32_t count);

#endif
