// Learned placement policies, behind the placer's algorithm vtable and its guide.
//
//   tfc_policy_read(path, &policy);
//   const struct tfc_algo *const *extra = tfc_rl_algos();                  // tfc_search_settings.extra
//   tfc_search_settings.guide = &policy->guide;                            // NULL: without a learned policy
//   ... tfc_policy_learned(policy, &better): what the search learned, to be saved
#ifndef TFC_RL_RL_H
#define TFC_RL_RL_H

#include "rl/policy.h"

extern const struct tfc_algo tfc_algo_rl; // needs budget.guide
// Controls: algorithms with the policy's actions, but without what it learned.
extern const struct tfc_algo tfc_algo_policy_random, tfc_algo_policy_anneal, tfc_algo_policy_untrained;
const struct tfc_algo *const *tfc_rl_algos(void); // all four, ended by NULL

#endif
