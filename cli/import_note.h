// Summarises a graph in a few lines for the user.
#ifndef TFC_CLI_IMPORT_NOTE_H
#define TFC_CLI_IMPORT_NOTE_H

#include "runtime/graph/graph.h"

// Writes the number of nodes and op types, variables and their bytes, control flow, functions, device strings,
// colocation; then each op type that this build cannot run, with the first node that has it.
void cli_import_describe(const struct tfc_graph *graph, struct tfc_text *out);

#endif
