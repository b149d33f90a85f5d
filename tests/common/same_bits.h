// Checks that random placements give the same bits.
#ifndef TFC_TESTS_COMMON_SAME_BITS_H
#define TFC_TESTS_COMMON_SAME_BITS_H

#include <stdbool.h>
#include <stdint.h>

// Trains an example for a few steps from the same start, on the first device and under `placements` random placements
// over `devices`: losses and variables have the same bits. Without rewrites the traces are checked too: each operation
// where it was placed, each cut tensor moved once, and two devices at work at the same time. If `devices` has GPUs and
// others, their kernels differ, and the values may differ by rounding.
void tfc_same_bits(const char *name, const char *devices, int placements, uint64_t seed, bool no_rewrites);

#endif
