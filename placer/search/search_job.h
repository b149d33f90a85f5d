// One job of a search: a placement, a method and a budget go in, a placement that is no worse comes out. Internal to
// the placer; jobs run side by side.
#ifndef TFC_PLACER_SEARCH_SEARCH_JOB_H
#define TFC_PLACER_SEARCH_SEARCH_JOB_H

#include "placer/search/local.h"

// The methods, in order: annealing on units, cool or hot; on clusters of units that share a device; on clusters of
// units that share a device in two placements; new starts; large neighbourhoods; new starts with clusters by name;
// clusters by name drawn anew each time, from the given placement; packing communities or pieces of a placement anew
// (if memory is nearly full); units that a learned policy places anew.
enum tfc_search_method {
  TFC_METHOD_ANNEAL,
  TFC_METHOD_CLUSTERS,
  TFC_METHOD_LNS,
  TFC_METHOD_HOT,
  TFC_METHOD_COMBINE,
  TFC_METHOD_FRESH,
  TFC_METHOD_NAMES,
  TFC_METHOD_REGROUP,
  TFC_METHOD_PACK,
  TFC_METHOD_POLICY, // needs a guide
  TFC_METHOD_COUNT
};
extern const char *const tfc_search_method_names[];

struct tfc_search_job {
  enum tfc_search_method method;
  struct tfc_budget budget;
  struct tfc_solution solution, other; // the placement it improves; a second one to combine with it
  struct tfc_score score;              // of `solution`
  uint64_t evaluations;
  double seconds;   // the job's duration
  double hot, cold; // temperatures of the beginning and the end
  uint32_t rounds;  // annealing: so many times, each half as hot as the last, from the best so far; 0: once
  const struct tfc_guide *guide; // the policy and its state for the problem, for TFC_METHOD_POLICY
  const struct tfc_guidance *guidance;
  tfc_status status;
};
TFC_MUST_USE tfc_status tfc_search_job_run(const struct tfc_problem *problem, struct tfc_search_job *job);

#endif
