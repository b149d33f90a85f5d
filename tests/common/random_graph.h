// Makes random graphs from the op table. They contain every op that has no state, with the inputs and attributes of its
// samples, connected by type and shape, with branches (Switch, Merge) and loops (Enter, Merge, Switch, Exit).
//
// Between ops, values are rounded to a grid of 1/16 and limited to [-4, 4], so that rounding errors do not grow from op
// to op: if the ops of two runtimes agree to a few units in the last place, the whole graph agrees.
#ifndef TFC_TESTS_COMMON_RANDOM_GRAPH_H
#define TFC_TESTS_COMMON_RANDOM_GRAPH_H

#include "runtime/graph/op_def.h"

enum { RANDOM_GRAPH_FETCHES = 24 };
struct random_graph {
  struct tfc_graph *graph;
  struct tfc_output fetches[RANDOM_GRAPH_FETCHES];
  uint32_t fetch_count;
};
// The same seed gives the same graph.
TFC_MUST_USE tfc_status random_graph_make(uint64_t seed, struct random_graph *out);
void random_graph_deinit(struct random_graph *g);

#endif
