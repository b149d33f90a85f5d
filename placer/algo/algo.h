// Placement algorithms: one const struct each, one file each under placer/algo/. A new algorithm is a file with its
// struct and a line in TFC_ALGOS (list.h); the legality suite runs every algorithm of that list. Those with which
// `auto` begins are also in the list of names in placer/search/search.c. Learned policies are in another folder;
// tfc_search_settings.extra adds them to a search.
#ifndef TFC_PLACER_ALGO_ALGO_H
#define TFC_PLACER_ALGO_ALGO_H

#include "placer/simulate/budget.h"
#include "placer/simulate/evaluator.h"

#define TFC_NEEDS_THROUGHPUT 2u // only for the throughput objective
#define TFC_NEEDS_EVALUATOR 4u  // calls the evaluator (others simulate by themselves)
#define TFC_NEEDS_BUDGET 8u     // searches until the budget ends
#define TFC_NEEDS_SMALL 16u     // too slow to be compared by default: `auto` uses it on small problems
#define TFC_NEEDS_NAME 32u      // a rival for comparison: it runs only if the user names it

struct tfc_algo {
  const char *name;
  const char *help;  // one line that says for which problems the algorithm is good
  const char *paper; // paper and section
  uint32_t needs;
  // Writes a placement that is legal if it found a legal one (and within memory if it found one that is), and the
  // number of placements that it evaluated. *out was made by tfc_solution_init; its content counts only on success.
  // FAILED_PRECONDITION: not for this problem (too large, wrong objective), with the reason.
  tfc_status (*propose)(const struct tfc_problem *problem, struct tfc_evaluator *evaluator,
                        const struct tfc_budget *budget, struct tfc_solution *out, uint64_t *out_evaluations);
};

// Lists all algorithms of this folder; the list ends with NULL.
const struct tfc_algo *const *tfc_algos(void);
const struct tfc_algo *tfc_algo_find(tfc_str name); // NULL: no such name ("auto" is a search, not an algorithm)

#endif
