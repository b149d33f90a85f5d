// Compares the keys of a placement file with the graph that it is for. The key of a node of the graph file is its name;
// the key of a node inside a library function is "function/NAME:node", whichever node calls the function.
#ifndef TFC_PLACER_MODEL_KEYS_H
#define TFC_PLACER_MODEL_KEYS_H

#include "placer/model/placement.h"
#include "runtime/graph/graph.h"

// INVALID_ARGUMENT: the placement names a node that the graph does not have, or has no entry for one of the graph's
// nodes (of the graph file, or of a function that was lowered into the graph).
TFC_MUST_USE tfc_status tfc_placement_check_keys(const struct tfc_placement *placement, const struct tfc_graph *graph);

#endif
