// Statistics of step times: medians and quartiles, the bootstrap interval of a speed-up, Kendall's tau. The functions
// have no state: any thread may call them.
#ifndef TFC_PROFILER_STATISTICS_H
#define TFC_PROFILER_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

// Sorts `values` (finite) in place. count 0: all NaN. Quantiles by linear interpolation between order statistics (type
// 7 of Hyndman and Fan, "Sample quantiles in statistical packages", 1996).
struct tfc_quartiles {
  double median, q1, q3, least;
};
struct tfc_quartiles tfc_quartiles_of(double *values, size_t count);

// Blocks of steps of two placements, A and B, measured in turns: block i of A was run next to block i of B.
struct tfc_block_pair {
  const double *a, *b; // step times of the block
  uint32_t a_count, b_count;
};
struct tfc_interval {
  double value, low, high; // the ratio, and its 95 % confidence interval
};
// Computes median(A) / median(B) over all steps, and its percentile bootstrap interval: `rounds` times it draws pairs
// of blocks, and steps within them (Efron 1979; whole blocks, because neighbouring steps share the machine's state).
// NaN: there is not at least one step of each.
TFC_MUST_USE tfc_status tfc_bootstrap_ratio(const struct tfc_block_pair *pairs, uint32_t count, uint32_t rounds,
                                            uint64_t seed, struct tfc_interval *out);

// Computes Kendall's tau between x and y over the pairs of observations whose y differ by more than spread[i] +
// spread[j] (spread NULL: by any amount): (concordant - discordant) / (concordant + discordant); a pair with equal x
// counts as half concordant and half discordant. NaN: there are no such pairs. *out_pairs (optional): how many there
// are.
double tfc_kendall_tau(const double *x, const double *y, const double *spread, size_t count, size_t *out_pairs);

#endif
