// Runs random graphs whose nodes are in random tasks.
#ifndef TFC_TESTS_COMMON_RANDOM_GRAPH_TASKS_H
#define TFC_TESTS_COMMON_RANDOM_GRAPH_TASKS_H

#include <stdint.h>

#include "runtime/transport/transport.h"

// Runs each of the graphs `first` to `first + count - 1` in three tasks and in one, which must give the same bits. With
// `most_delay_ns`, messages are delayed at random. It prints which graphs differ, and returns their number.
int random_graphs_differ_over_tasks(uint64_t first, int count, int64_t most_delay_ns);

#endif
