// The keys of a placement file against the graph that it is for. A node of the graph file has its name for a key, a
// node inside a library function "function/NAME:node", whoever calls it.
#ifndef TFC_PLACER_MODEL_KEYS_H
#define TFC_PLACER_MODEL_KEYS_H

#include "placer/model/placement.h"
#include "runtime/graph/graph.h"

// INVALID_ARGUMENT: the placement names a node that the graph lacks, or lacks one of the graph's: of the file, or of a
// function that was lowered into it.
TFC_MUST_USE tfc_status tfc_placement_check_keys(const struct tfc_placement *placement, const struct tfc_graph *graph);

#endif
