// Compares the results of a device's fast kernels, run in a session, with those of the reference kernels.
#ifndef TFC_TESTS_COMMON_FAST_H
#define TFC_TESTS_COMMON_FAST_H

#include "runtime/graph/builder.h"

// Finishes the builder's graph, feeds random values in [-1, 1) to its placeholders (float or double, with static
// shapes), and runs `outputs` in sessions on "cpu:0", with exact rewrites and with all rewrites, and with the reference
// kernels. Fails the test if elements differ by more than `tolerance` times the output's largest magnitude.
void fast_compare(struct tfc_builder *b, const struct tfc_output *outputs, uint32_t count, double tolerance,
                  const char *what);

#endif
