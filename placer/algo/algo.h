// Placement algorithms: one const struct each, one file each under placer/algo/. A new one is a file with its struct
// and a line in TFC_ALGOS; the legality suite runs every algorithm of the list. Learned policies outside this folder
// are added to a search by tfc_search_options.extra.
#ifndef TFC_PLACER_ALGO_ALGO_H
#define TFC_PLACER_ALGO_ALGO_H

#include <stdatomic.h>

#include "placer/simulate/evaluator.h"

// What limits a proposal. It ends as soon as one of the limits is met; a heuristic that is done earlier returns.
// Given only `evaluations`, the outcome depends on the seed alone, not on time or cores.
struct tfc_guide;
struct tfc_budget {
  double deadline;      // seconds on tfc_now_ns()'s clock (1e-9 * ns), 0: none
  uint64_t evaluations; // simulated or measured placements, 0: no limit
  uint64_t seed;
  uint32_t threads;              // at least 1
  const atomic_bool *cancel;     // set from outside (a signal handler's thread); NULL: never
  const struct tfc_guide *guide; // the learned policy (placer/algo/guide.h), for those that use one; NULL: none
  // Told of what searching algorithms find on their way, by the thread that found it: bytes above the limits, value in
  // ps. NULL: nobody asks.
  void (*found)(void *user, uint64_t excess, int64_t value);
  void *found_user;
};
bool tfc_budget_over(const struct tfc_budget *budget); // cancelled, or the deadline has passed

#define TFC_NEEDS_STEP 1u       // only for the step objective
#define TFC_NEEDS_THROUGHPUT 2u // only for the throughput objective
#define TFC_NEEDS_EVALUATOR 4u  // calls the evaluator (others simulate by themselves)
#define TFC_NEEDS_BUDGET 8u     // goes on until the budget ends
#define TFC_NEEDS_SMALL 16u     // exact: for coarse instances
#define TFC_NEEDS_NAME 32u      // a rival to compare with: runs only where it is asked for by name

struct tfc_algo {
  const char *name;
  const char *help;  // one line: when it is good
  const char *paper; // paper and section
  uint32_t needs;
  // Writes a placement that is legal wherever it found one (then within memory wherever it found one), and how many
  // placements it evaluated. *out was made by tfc_solution_init and is complete only on success. FAILED_PRECONDITION:
  // not for this problem (too large, wrong objective), with the reason.
  tfc_status (*propose)(const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                        const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations);
};

// All algorithms of this folder, ended by NULL.
const struct tfc_algo *const *tfc_algos(void);
const struct tfc_algo *tfc_algo_find(tfc_str name); // NULL: no such name ("auto" is a search, not an algorithm)

#endif
