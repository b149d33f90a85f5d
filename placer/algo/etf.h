// Earliest task first (ETF): the scheduling loop of m-ETF, which m-SCT uses too. Internal to the algorithms.
#ifndef TFC_PLACER_ALGO_ETF_H
#define TFC_PLACER_ALGO_ETF_H

#include "placer/algo/algo.h"

// `favourite` (optional) [node]: the parent whose favourite child the node is, or TFC_NONE.
TFC_MUST_USE tfc_status tfc_etf_run(const struct tfc_problem *problem, const struct tfc_budget *budget,
                                    const uint32_t *favourite, struct tfc_solution *out, uint64_t *out_evaluations);

#endif
