// Runs those committed cases of tests/conformance/golden/FAMILY that need no state: evaluates every fetch with the
// reference kernels and compares it with TensorFlow's result, by the tolerance of the case.
#ifndef TFC_TESTS_COMMON_GOLDEN_H
#define TFC_TESTS_COMMON_GOLDEN_H

#include <stdbool.h>

#include "runtime/graph/tensor.h"

// Whether two tensors are equal by this rule (tests/conformance/README.md). If not, `why` tells where they differ.
bool golden_compare(const struct tfc_tensor *got, const struct tfc_tensor *want, const char *rule, char *why,
                    size_t room);

struct golden_result {
  int passed, failed, unsupported;
};
// Runs the family's cases whose name contains `filter` ("" for all), and prints each failure and the ops without a
// kernel. `root`: the source folder.
void golden_run(const char *root, const char *family, const char *filter, struct golden_result *out);

#endif
