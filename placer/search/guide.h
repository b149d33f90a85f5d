// Guide: the interface through which a search uses a learned policy, without knowing what it learned or how. The policy
// proposes whole placements to start from, and improves a given placement. Implemented in rl/.
#ifndef TFC_PLACER_SEARCH_GUIDE_H
#define TFC_PLACER_SEARCH_GUIDE_H

#include "placer/search/archive.h"

// The state of a guide for one problem; it belongs to one search.
struct tfc_guidance;
// Statistics of the placements that the policy itself proposed for a problem.
struct tfc_guide_samples {
  uint64_t count;
  double invalid_share; // share of the placements that are illegal or above a memory limit
  // How much the placements differ: the entropy of a unit's device over all of them, divided by the entropy of a
  // uniform choice among the devices; the mean over the units. 0: all equal; 1: any device as often as any other.
  double entropy;
};
struct tfc_guide {
  // Makes the guide's state for the problem, which `close` frees.
  tfc_status (*open)(const struct tfc_guide *guide, const struct tfc_problem *problem, struct tfc_guidance **out);
  // Proposes and simulates up to budget->evaluations placements. The best of them, at most `count` and no two of equal
  // value, go to found(user, ...), the best first. What the policy learns of the problem in these is stored for
  // `improve`.
  tfc_status (*propose)(struct tfc_guidance *guidance, const struct tfc_budget *budget, uint32_t count,
                        tfc_status (*found)(void *user, const struct tfc_solution *solution, struct tfc_score score),
                        void *user, uint64_t *out_evaluations);
  // Improves a placement until the budget ends. Any number of threads may call it at once, but not while `propose`
  // runs.
  tfc_status (*improve)(const struct tfc_guidance *guidance, const struct tfc_budget *budget,
                        struct tfc_solution *solution, struct tfc_score *score, uint64_t *out_evaluations);
  void (*samples)(const struct tfc_guidance *guidance, struct tfc_guide_samples *out);
  void (*close)(struct tfc_guidance *guidance); // NULL is fine
  // Writes what the guide learned and the state for the problem (*guidance NULL: there is none), or reads both and
  // makes *guidance as it was. Optional: without it, a resumed search continues without what this guide learned.
  tfc_status (*archive)(const struct tfc_guide *guide, const struct tfc_problem *problem, uint32_t threads,
                        struct tfc_guidance **guidance, struct tfc_archive *archive);
  // Makes `propose` begin anew: it forgets what it learned of the problem, and draws other random numbers. `improve`
  // uses what led to the best of all placements, proposed before or after. Optional: without it, `propose` continues.
  void (*begin_anew)(struct tfc_guidance *guidance);
};

#endif
