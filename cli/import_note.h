// What a graph is, in a few lines for people.
#ifndef TFC_CLI_IMPORT_NOTE_H
#define TFC_CLI_IMPORT_NOTE_H

#include "runtime/graph/graph.h"

// Nodes, op types, variables and their bytes, control flow, functions, device strings, colocation; then each op type
// that this build cannot run, with the first of its nodes.
void cli_import_describe(const struct tfc_graph *graph, struct tfc_text *out);

#endif
