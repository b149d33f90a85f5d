// Whether a tensor is a reference variable's own memory.
#ifndef TFC_RUNTIME_OPS_REFERENCE_H
#define TFC_RUNTIME_OPS_REFERENCE_H

#include "runtime/graph/graph.h"

// Whether a later operation may write to the output's memory while a message with it is being sent. Looks through
// operations that pass their input on unchanged.
bool tfc_output_may_change(const struct tfc_graph *g, struct tfc_output o);

#endif
