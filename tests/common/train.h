// Trains an example and compares its losses with TensorFlow's.
#ifndef TFC_TESTS_COMMON_TRAIN_H
#define TFC_TESTS_COMMON_TRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct train_options {
  const char *devices; // NULL: "cpu:0"
  uint32_t steps;      // 0: as many as there are golden losses (20)
  bool dynamic;        // run in ready order, although the graph's shapes are static
  bool no_rewrites;
  double tolerance; // largest relative error of a loss; 0: 1e-4
};
// Fails the test at the first loss that differs from TensorFlow's by more than the tolerance. Returns whether the plan
// was static. With VERBOSE in the environment every loss is printed.
bool train_example(const char *name, const struct train_options *options);

#endif
