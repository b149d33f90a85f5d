// Parses the signature strings of an op's row (see struct tfc_op_def).
#ifndef TFC_RUNTIME_GRAPH_SIGNATURE_H
#define TFC_RUNTIME_GRAPH_SIGNATURE_H

#include "runtime/graph/op_def.h"

// All of `out` is allocated in the arena. INVALID_ARGUMENT says which part of the row cannot be read.
TFC_MUST_USE tfc_status tfc_signature_parse(const struct tfc_op_def *def, struct tfc_arena *arena,
                                            struct tfc_op_signature *out);

#endif
