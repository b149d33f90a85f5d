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
// Computes the advantages of the samples of one block: [count] the logarithm of the mean of the others' times minus
// that of its own. NaN times (nothing was measured) get 0 and do not count; so does a time without others.
void tfc_gradient_advantages(const double *times, uint32_t count, double *out_advantage);
// Makes one step. weights [count]: those of the samples, drawn around the mean; times [count] as above.
void tfc_gradient_step(struct tfc_gradient *gradient, const float *const *weights, const double *times, uint32_t count);

#endif
