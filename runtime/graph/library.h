// The calls within a library of functions.
#ifndef TFC_RUNTIME_GRAPH_LIBRARY_H
#define TFC_RUNTIME_GRAPH_LIBRARY_H

#include "runtime/graph/graph.h"

// Function f names functions callee[first[f]] to callee[first[f + 1] - 1], each as often as a node of its body does.
struct tfc_library_calls {
  uint32_t *first; // [function_count + 1]
  uint32_t *callee;
};
TFC_MUST_USE tfc_status tfc_library_calls(const struct tfc_graph *g, struct tfc_library_calls *out);
void tfc_library_calls_deinit(struct tfc_library_calls *calls);

// Sets the value of each function to the largest value among itself and all functions that it calls, directly or not.
TFC_MUST_USE tfc_status tfc_library_raise(uint32_t count, const struct tfc_library_calls *calls, uint8_t *values);

// Fills out [function_count] with the number of nodes of each function after all calls are replaced by the callee's
// nodes, at most UINT64_MAX. A recursive call counts once.
TFC_MUST_USE tfc_status tfc_library_measure(const struct tfc_graph *g, uint64_t *out);

#endif
