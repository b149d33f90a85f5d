// Random graphs from the op table: every op of it that has no state, with the inputs and attributes of its samples,
// typed and shaped, fed from one another; branches (Switch, Merge) and loops (Enter, Merge, Switch, Exit) among them.
//
// Between ops values are brought to a grid of 1/16 and into [-4, 4], so that rounding does not grow from op to op: two
// runtimes whose ops agree to a few units in the last place agree in the whole graph.
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
