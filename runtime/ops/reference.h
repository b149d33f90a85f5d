// Whether a tensor is a reference variable's own memory.
#ifndef TFC_RUNTIME_OPS_REFERENCE_H
#define TFC_RUNTIME_OPS_REFERENCE_H

#include "runtime/graph/graph.h"

// A later operation may write to it while a message with it is sent. Follows what hands its input on unchanged.
bool tfc_output_may_change(const struct tfc_graph *g, struct tfc_output o);

#endif
