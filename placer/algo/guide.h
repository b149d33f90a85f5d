// Guide: what a search knows of a learned policy. The placer does not know what it learned or how; it asks for whole
// placements to begin with, and for a placement made better. Implemented in rl/.
#ifndef TFC_PLACER_ALGO_GUIDE_H
#define TFC_PLACER_ALGO_GUIDE_H

#include "placer/search/local.h"

// What a guide made of one problem; belongs to one search.
struct tfc_guidance;
struct tfc_guide {
  // Proposes up to budget->evaluations placements, each simulated; the best of them, no two of one value, go to
  // found(user, ...), best first, at most `count`. Keeps what it learned of the problem on the way.
  tfc_status (*open)(const struct tfc_guide *guide, const struct tfc_problem *problem, struct tfc_guidance **out);
  tfc_status (*propose)(struct tfc_guidance *guidance, const struct tfc_budget *budget, uint32_t count,
                        tfc_status (*found)(void *user, const struct tfc_solution *solution, struct tfc_score score),
                        void *user, uint64_t *out_evaluations);
  // Makes a placement better until the budget ends; any number of threads may do so at once, but not beside `propose`.
  tfc_status (*improve)(const struct tfc_guidance *guidance, const struct tfc_budget *budget,
                        struct tfc_solution *solution, struct tfc_score *score, uint64_t *out_evaluations);
  void (*close)(struct tfc_guidance *guidance); // NULL is fine
};

#endif
