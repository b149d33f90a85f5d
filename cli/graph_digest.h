// The sha256 of a graph's file, by which the database recognises that runs have the same graph.
#ifndef TFC_CLI_GRAPH_DIGEST_H
#define TFC_CLI_GRAPH_DIGEST_H

#include "runtime/base/status.h"

// Writes the digest, which is that of saved_model.pb if `graph` is a SavedModel's folder; "" if the file cannot be
// read.
TFC_MUST_USE tfc_status cli_graph_digest(const char *graph, char out[65]);

#endif
