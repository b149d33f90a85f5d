// Simulated annealing of a placement, from given temperatures or from a sample of moves. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_ANNEAL_H
#define TFC_PLACER_SEARCH_ANNEAL_H

#include "placer/search/local.h"

struct tfc_anneal_options {
  double hot, cold;        // temperatures as shares of the value; hot 0: descent
  const uint32_t *cluster; // [unit], or NULL: units move alone and in small neighbourhoods
  uint32_t cluster_count;
  bool orders;        // also exchanges precedences of operations (step objective only)
  uint32_t squarings; // throughput: the energy is the 2^squarings-norm of the loads; 0 stands for 4
  double critical;  // single units: this share of the moves begins at an operation without slack (step objective only)
  uint32_t regions; // single units: so many of 16 moves take a connected region, at most 12; 0 stands for 3
  bool kinds;       // single units: also moves several units of one kind together (step objective only)
  // The price of memory above the limits: `excess` bytes multiply the value by 1 + price * excess / (bytes of all
  // units). The price rises to 100 times as much at the end of the budget. 0: no move may increase the excess.
  double price;
  bool by_loads; // the loads are the objective and the score, whatever the problem's objective is
};
// Anneals from `solution`, which becomes the best placement found; *score is its score, on entry and on return. The
// temperature falls with the share of the budget that is spent. Kirkpatrick, Gelatt, Vecchi 1983.
TFC_MUST_USE tfc_status tfc_local_anneal(const struct tfc_problem *problem, const struct tfc_budget *budget,
                                         const struct tfc_anneal_options *options, struct tfc_solution *solution,
                                         struct tfc_score *score, uint64_t *out_evaluations);
// Finds the temperature (a share of the value) at which the median of the changes for the worse is accepted with
// probability `chance`. It takes a sample of moves of one unit, with at most a twentieth of the budget's evaluations
// (Johnson et al. 1989, section 3.2). For the step objective. Adds its evaluations to *evaluations.
TFC_MUST_USE tfc_status tfc_local_temperature(const struct tfc_problem *problem, const struct tfc_budget *budget,
                                              const struct tfc_solution *from, double chance, struct tfc_random *random,
                                              double *out_temperature, uint64_t *evaluations);

#endif
