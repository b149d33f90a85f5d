// Learned placement policies, behind the placer's algorithm vtable.
//
//   const struct tfc_algo *const extra[] = {&tfc_algo_rl, NULL};      // tfc_search_options.extra
//
// or, with what is known of the graph's ops and a watcher for the learning curve, by tfc_reinforce.
#ifndef TFC_RL_RL_H
#define TFC_RL_RL_H

#include "placer/algo/algo.h"
#include "rl/policy.h"

extern const struct tfc_algo tfc_algo_rl; // REINFORCE on whatever the evaluator says, no elites

struct tfc_sample { // one evaluated sample of the policy
  uint64_t index;   // from 0
  const struct tfc_solution *solution;
  const struct tfc_result *result;
  double reward, baseline, entropy; // entropy: mean over actors, nats
};

struct tfc_reinforce_options {
  const struct tfc_node_facts *facts;                         // may be NULL
  struct tfc_rules rules;                                     // how samples are measured
  uint32_t max_actors;                                        // 0: 20
  uint32_t batch;                                             // samples of one update, 0: 4
  double learning_rate;                                       // 0: 0.4
  double entropy_bonus;                                       // at the start, falls to 0 with the budget; < 0: 0.1
  void (*watch)(void *user, const struct tfc_sample *sample); // after each sample, calling thread; may be NULL
  void *user;
};
// REINFORCE (Williams 1992, section 4) with a running baseline: samples placements, has them evaluated in batches,
// follows the gradient of the expected reward, where the reward is minus the logarithm of the objective. Ends with the
// budget. *out (made by tfc_solution_init) is the best sample that is legal, within memory where there was one.
TFC_MUST_USE tfc_status tfc_reinforce(const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                                      const struct tfc_budget *budget, const struct tfc_reinforce_options *options,
                                      struct tfc_solution *out, uint64_t *out_evaluations);

#endif
