// Guidance: connects a policy to the placer's guide interface (placer/search/guide.h), through which searches use it.
// Internal to rl: others use `guide` in struct tfc_policy.
#ifndef TFC_RL_GUIDANCE_H
#define TFC_RL_GUIDANCE_H

#include "placer/search/guide.h"
#include "rl/tuner.h"

extern const struct tfc_guide tfc_guidance_guide;

// Makes a placement better by the weights that did best with the tuner, until the budget ends or nothing more is found.
TFC_MUST_USE tfc_status tfc_improve(const struct tfc_tuner *tuner, const struct tfc_budget *budget,
                                    struct tfc_solution *solution, struct tfc_score *score, uint64_t *out_evaluations);

#endif
