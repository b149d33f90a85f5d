// Runs random graphs in several ways and compares the results.
#ifndef TFC_TESTS_COMMON_RANDOM_GRAPH_RUN_H
#define TFC_TESTS_COMMON_RANDOM_GRAPH_RUN_H

#include <stdint.h>

// Graphs `first` to `first + count - 1`: one CPU device, as the graph stands and with its rewrites, planned and in
// ready order; random placements over `devices`. Always the same bits. Returns the number of graphs that differ, after
// saying which.
int random_graphs_differ(const char *devices, uint64_t first, int count);
// The same graphs, a few steps of each: on one device as planned, and adapted on `devices`: in lanes on the cores of
// one, or in another order on several CPUs, randomly placed.
int random_graphs_differ_adapted(const char *devices, uint64_t first, int count);
// Writes N.pb and N.json (the names of the fetches), to be run by TensorFlow. Returns false after saying what failed.
int random_graphs_write(const char *directory, uint64_t first, int count);

#endif
