// A graph's digest (profiler/graph_digest.h) for programs that go on without one.
#ifndef TFC_CLI_GRAPH_DIGEST_H
#define TFC_CLI_GRAPH_DIGEST_H

#include "runtime/base/status.h"

// Writes the digest; "" if the file cannot be read.
TFC_MUST_USE tfc_status cli_graph_digest(const char *graph, char out[65]);

#endif
