// Runs random graphs in several ways and compares the results.
#ifndef TFC_TESTS_COMMON_RANDOM_GRAPH_RUN_H
#define TFC_TESTS_COMMON_RANDOM_GRAPH_RUN_H

#include <stdint.h>

// Runs the graphs `first` to `first + count - 1` on one CPU device, without and with rewrites, in fixed order and in
// ready order, and under random placements over `devices`. All must give the same bits. It prints which graphs differ,
// and returns their number.
int random_graphs_differ(const char *devices, uint64_t first, int count);
// Runs a few steps of each of these graphs twice: on one CPU device without adaptation, and on `devices` with it. Both
// must give the same bits. One device of several cores is divided into lanes; on several devices the nodes are placed
// at random, and the order of operations changes.
int random_graphs_differ_adapted(const char *devices, uint64_t first, int count);
// Writes N.pb and N.json (the names of the fetches), which TensorFlow can run. False: it failed, and printed why.
int random_graphs_write(const char *directory, uint64_t first, int count);

#endif
