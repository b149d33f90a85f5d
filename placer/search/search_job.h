// A job of a search: it takes a placement, a method and a budget, and gives a placement that is no worse. Jobs run in
// parallel. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_SEARCH_JOB_H
#define TFC_PLACER_SEARCH_SEARCH_JOB_H

#include "placer/search/local.h"

// How a job improves its placement.
enum tfc_search_method {
  TFC_METHOD_ANNEAL,   // annealing on units
  TFC_METHOD_CLUSTERS, // annealing on clusters of units that share a device
  TFC_METHOD_LNS,      // large-neighbourhood search
  TFC_METHOD_HOT,      // annealing on units from a higher temperature
  TFC_METHOD_COMBINE,  // annealing on clusters of units that share a device in two placements
  TFC_METHOD_FRESH,    // annealing from new starts
  TFC_METHOD_NAMES,    // annealing from new starts, on clusters by name
  TFC_METHOD_REGROUP,  // annealing from the given placement, on clusters by name, which are chosen at random each time
  TFC_METHOD_PACK,     // packs communities, or pieces of a placement, again (if memory is nearly full)
  TFC_METHOD_POLICY,   // a learned policy places some units again; needs a guide
  TFC_METHOD_COUNT
};
extern const char *const tfc_search_method_names[];

struct tfc_search_job {
  enum tfc_search_method method;
  struct tfc_budget budget;
  struct tfc_solution solution, other; // solution: the placement that the job improves; other: a second one to combine
                                       // with it
  struct tfc_score score;              // of `solution`
  uint64_t evaluations;
  double seconds;    // the job's duration
  double slice;      // seconds that it may take from its beginning; 0: only its budget says when it ends
  double hot, cold;  // temperatures of the beginning and the end
  uint32_t rounds;   // annealing: number of rounds, each half as hot as the one before and from the best placement so
                     // far; 0: one
  bool policy_first; // TFC_METHOD_POLICY: first the policy's moves alone, then annealing alone, instead of turns
  const struct tfc_guide *guide; // the policy and its state for the problem, for TFC_METHOD_POLICY
  const struct tfc_guidance *guidance;
  struct tfc_score before; // of the best placement when the job was planned; what a job finds is a gain only below it
  // What the policy's own moves took and gained in a job of TFC_METHOD_POLICY; the rest is annealing's.
  struct {
    uint64_t evaluations;
    double seconds;
    int64_t gained; // ps by which they made the step shorter than `before`, where nothing else changed
    bool fits;      // they made the placement the first that is legal, or exceed memory limits by less
  } by_policy;
  tfc_status status;
};
TFC_MUST_USE tfc_status tfc_search_job_run(const struct tfc_problem *problem, struct tfc_search_job *job);

#endif
