// The sha256 of a graph's file, by which the database recognises that runs have the same graph.
#ifndef TFC_PROFILER_GRAPH_DIGEST_H
#define TFC_PROFILER_GRAPH_DIGEST_H

#include "runtime/base/status.h"

// Writes 64 hexadecimal digits and a terminating zero: the digest of the file, or of its saved_model.pb if `graph` is a
// SavedModel's folder. NOT_FOUND, INVALID_ARGUMENT: neither can be read (tfc_file_map_document).
TFC_MUST_USE tfc_status tfc_graph_digest(const char *graph, char out_hex[65]);

#endif
