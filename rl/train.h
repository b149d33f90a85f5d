// Training: from placement problems to a policy, by the cross-entropy method in the simulator. Three stages:
//
//   common   one head for all problems: minimises the mean logarithm of the step time over a few problems at a time
//   own      a head for each problem, tuned from the common one (and from the chosen ones, the second time)
//   choose   of all of these, those which together are best on the problems that they were not tuned on
//
// Every stage ends with a state that can be saved and gone on from; with the same seed and problems the outcome is the
// same however often training was interrupted.
#ifndef TFC_RL_TRAIN_H
#define TFC_RL_TRAIN_H

#include "rl/policy.h"

struct tfc_lesson {
  const struct tfc_problem *problem;
  uint32_t source; // lessons made of one graph share a number: what was tuned on one of them is not tried on another
};
struct tfc_train_options {
  const struct tfc_lesson *lessons;
  uint32_t lesson_count;
  uint64_t seed;
  uint32_t threads;
  uint32_t generations; // of the first stage, 0: 150
  uint32_t rollouts;    // for each lesson's own head, 0: 300
  uint32_t heads;       // of the policy, 0: 20
  const char *state;    // file that training is saved in and goes on from; NULL: none
  const atomic_bool *cancel;
  void (*say)(void *user, const char *line); // may be NULL
  void *user;
};
// CANCELLED: interrupted, and the state is saved.
TFC_MUST_USE tfc_status tfc_train(const struct tfc_train_options *options, struct tfc_policy **out);

#endif
