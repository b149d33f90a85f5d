// Reads golden files that are kept packed with gzip: they are mostly the same words, and a fifth of their size so.
#ifndef TFC_TESTS_COMMON_PACKED_H
#define TFC_TESTS_COMMON_PACKED_H

#include "runtime/graph/graph.h"

// Adds the whole content to `out`. NOT_FOUND, or INVALID_ARGUMENT where the file is not packed or is cut off.
tfc_status packed_read(const char *path, struct tfc_text *out);
tfc_status packed_graph_load(const char *path, struct tfc_graph **out); // as tfc_graph_load()

#endif
