// Training: from placement problems to a policy, by the cross-entropy method in the simulator. Three stages:
//
// - common: trains one head for all problems; it minimises the mean logarithm of the step time over a few problems at a
//   time.
// - own: tunes a head for each problem, from the common one (the second time also from the chosen ones).
// - choose: selects among all of these the heads that together are best on problems that they were not tuned on.
//
// `own` and `choose` run twice.
//
// The state is saved after every few generations or problems, and training resumes from it; with the same seed and
// problems the outcome is the same however often training was interrupted.
#ifndef TFC_RL_TRAIN_H
#define TFC_RL_TRAIN_H

#include "rl/policy.h"

struct tfc_lesson {
  const struct tfc_problem *problem;
  uint32_t source; // lessons made of one graph share a number: a head tuned on one is not tried on the others
};
struct tfc_train_options {
  const struct tfc_lesson *lessons;
  uint32_t lesson_count;
  uint64_t seed;
  uint32_t threads;
  uint32_t generations; // number in the first stage, 0: 150
  uint32_t rollouts;    // for each lesson's own head, 0: 300
  uint32_t heads;       // number in the policy, 0: 20
  const char *state;    // file in which training is saved and from which it resumes; NULL: none
  const atomic_bool *cancel;
  void (*say)(void *user, const char *line); // may be NULL
  void *user;
};
// CANCELLED: interrupted, and the state is saved.
TFC_MUST_USE tfc_status tfc_train(const struct tfc_train_options *options, struct tfc_policy **out);

#endif
