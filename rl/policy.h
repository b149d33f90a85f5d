// Policy network: from the units of a problem to probabilities of devices for each actor.
//
//   h0 = tanh(X W0)                                   X [units, features]
//   h1 = tanh(h0 Ws + (I h0) Wi + (O h0) Wo)           I, O [units, units]: shares of producers and consumers
//   h2 = the same once more with weights of its own
//   logits = (P h2) Wd + T + forbidden                P [actors, units]; T [actors, devices], a free table
//   log p = logits - logsumexp(logits)
//
// Updates follow the gradient of  sum(weight * log p) + entropy_bonus * sum of entropies, by Adam (Kingma and Ba 2015,
// algorithm 1). The graph is built here, differentiated by tfc_gradients and run by a session on one CPU device.
// One thread at a time.
#ifndef TFC_RL_POLICY_H
#define TFC_RL_POLICY_H

#include "rl/actors.h"

struct tfc_policy;
struct tfc_policy_options {
  uint32_t hidden;      // width of h, 0: 32
  double learning_rate; // 0: 0.05
  uint64_t seed;
};
TFC_MUST_USE tfc_status tfc_policy_create(const struct tfc_actors *actors, const struct tfc_policy_options *options,
                                          struct tfc_policy **out);
void tfc_policy_free(struct tfc_policy *policy); // NULL is fine

// log p [actor_count, device_count], row-major.
TFC_MUST_USE tfc_status tfc_policy_evaluate(struct tfc_policy *policy, float *out_log_p);
// One step: `weight` [actor_count, device_count] is the sum over samples of advantage × chosen device.
TFC_MUST_USE tfc_status tfc_policy_update(struct tfc_policy *policy, const float *weight, double entropy_bonus);

#endif
