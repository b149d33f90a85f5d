// Rivals: policies of the literature, each in a file of its own as a placement algorithm. This is their common part:
// samples that are evaluated in batches, the best of them, and the budget. Every evaluated placement counts. Each rival
// has a control, which draws the same actions at random, without learning.
#ifndef TFC_RL_RIVAL_H
#define TFC_RL_RIVAL_H

#include "placer/search/local.h"

extern const struct tfc_algo tfc_algo_hdp, tfc_algo_hdp_random;         // hdp.c
extern const struct tfc_algo tfc_algo_placeto, tfc_algo_placeto_random; // placeto.c
extern const struct tfc_algo tfc_algo_doppler;                          // doppler.c; its control is `random`

struct tfc_rival {
  const struct tfc_problem *problem;
  struct tfc_evaluator *evaluator;
  const struct tfc_budget *budget;
  struct tfc_solution *out; // the best so far
  struct tfc_random random;
  struct tfc_score best;
  struct tfc_solution *samples; // [batch]
  struct tfc_result *results;   // [batch]
  // [batch] the cost of each sample that was evaluated last: its value divided by the time of all work in sequence. For
  // a placement that could not run it is at least twice `worst`.
  double *cost;
  uint32_t batch;
  uint64_t used, limit;
  double worst; // largest cost of a placement that could run
};

TFC_MUST_USE tfc_status tfc_rival_init(struct tfc_rival *r, const struct tfc_problem *problem,
                                       struct tfc_evaluator *evaluator, const struct tfc_budget *budget, uint32_t batch,
                                       struct tfc_solution *out);
void tfc_rival_deinit(struct tfc_rival *r);
// Returns how many placements of a batch the budget still allows; 0: the budget is spent.
uint32_t tfc_rival_room(const struct tfc_rival *r);
// Moves units of the first `count` samples if memory limits or missing links require it, evaluates these samples, fills
// `cost`, and keeps the best.
TFC_MUST_USE tfc_status tfc_rival_evaluate(struct tfc_rival *r, uint32_t count);
// FAILED_PRECONDITION: no sample could run. Otherwise sets the number of evaluations.
TFC_MUST_USE tfc_status tfc_rival_end(const struct tfc_rival *r, const char *name, uint64_t *out_evaluations);

// Draws an index with the probabilities exp(log_p[i]).
uint32_t tfc_rival_draw(struct tfc_random *random, const float *log_p, uint32_t count);
// Returns the first allowed device from `device` upwards, cyclically.
tfc_device_id tfc_rival_allowed(const struct tfc_problem *problem, uint32_t unit, uint32_t device);
// The features of a unit, which all rivals use, scaled to about [0, 1].
enum { TFC_RIVAL_FACTS = 7 };
void tfc_rival_facts(const struct tfc_problem *problem, float *out_facts); // [unit, TFC_RIVAL_FACTS]
// Returns the unit's time on the fastest device that may have it, ps.
int64_t tfc_rival_fastest(const struct tfc_problem *problem, uint32_t unit);

#endif
