// Tuner: rollouts of a policy on one problem, and learning from them. First every head is tried; then new weights are
// made from the weights that did best: drawn from a normal distribution around them (the cross-entropy method,
// Rubinstein and Kroese 2004, chapter 2), or one of them plus the difference of two others (differential evolution,
// Storn and Price 1997), or one of them changed at random. The reward may be simulated or measured.
//
//   tfc_tuner_create(problem, policy, seed, threads, &t);
//   while (budget is left) {
//     tfc_tuner_ask(t, 16);   // t->trial[i]: weights, placement, its score by simulation
//     tfc_tuner_tell(t);      // with these scores, or others that the caller wrote
//   }
//   ... t->elite[0 .. t->elite_count - 1], best first
//
// One thread calls a tuner; it runs rollouts on several. The tuner's results do not depend on how many.
#ifndef TFC_RL_TUNER_H
#define TFC_RL_TUNER_H

#include "rl/policy.h"

enum { TFC_TUNER_TRIALS = 16, TFC_TUNER_ELITE = 24 };

struct tfc_trial {
  float weights[TFC_WEIGHTS];
  double temperature;
  tfc_device_id *device; // [unit]
  struct tfc_score score;
  bool ignored; // set by the caller: the tuner does not learn from this trial
  bool central; // the trial's weights were drawn around the tuner's `centre`
  bool cut;     // the trial's simulation was stopped when it was certain that the trial is worse than all of the elite
};
struct tfc_tuner {
  const struct tfc_problem *problem;
  const struct tfc_policy *policy;
  struct tfc_scene *scene;
  struct tfc_random random;
  uint32_t threads;
  struct tfc_rollout **rollout;     // [threads], created when first needed
  struct tfc_simulator **simulator; // [threads]
  uint64_t asked, told;
  const double *centre; // [TFC_WEIGHTS] a caller that moves a mean itself has half of the weights drawn around it;
                        // NULL: none
  struct tfc_trial trial[TFC_TUNER_TRIALS];
  uint32_t trial_count;
  struct tfc_trial elite[TFC_TUNER_ELITE + 1]; // the last entry is room for a new one
  uint32_t elite_count;
  uint64_t invalid; // number of told placements that are illegal or above a memory limit
  uint32_t *chosen; // [unit * device_count + device] how many told placements have the unit on the device
};
TFC_MUST_USE tfc_status tfc_tuner_create(const struct tfc_problem *problem, const struct tfc_policy *policy,
                                         uint64_t seed, uint32_t threads, struct tfc_tuner **out);
void tfc_tuner_free(struct tfc_tuner *tuner); // NULL is fine
TFC_MUST_USE tfc_status tfc_tuner_ask(struct tfc_tuner *tuner, uint32_t count);
void tfc_tuner_tell(struct tfc_tuner *tuner);
// Returns how much the placements differ whose results the tuner was given (`entropy` in placer/search/guide.h).
double tfc_tuner_entropy(const struct tfc_tuner *tuner);
// Adds the statistics of the tuner's placements to *samples, which has those of other tuners or is all 0.
void tfc_tuner_add_samples(const struct tfc_tuner *tuner, struct tfc_guide_samples *samples);
// Writes what the tuner learned and where its random numbers are, or reads it into a tuner that was just made, which
// then continues as the other one would have. Not between asking and telling.
struct tfc_archive;
void tfc_tuner_archive(struct tfc_tuner *tuner, struct tfc_archive *archive);
// Asks and tells until the budget is spent; tuner->told counts the evaluations.
TFC_MUST_USE tfc_status tfc_tuner_run(struct tfc_tuner *tuner, const struct tfc_budget *budget);

#endif
