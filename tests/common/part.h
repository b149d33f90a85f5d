// Makes small graphs from a large graph file. A golden graph contains the nodes of all cases, and passes visit all
// nodes of a graph; so each case is run on a graph that has only its own nodes.
#ifndef TFC_TESTS_COMMON_PART_H
#define TFC_TESTS_COMMON_PART_H

#include "runtime/graph/graph.h"

struct whole {
  struct tfc_graph *graph;
  struct tfc_text file;       // unpacked
  struct whole_piece *pieces; // the fields of the file, in order
  size_t count;
};
tfc_status whole_load(const char *path, struct whole *out); // a packed binary GraphDef
void whole_deinit(struct whole *w);

// Makes the graph of these nodes and of all nodes that they depend on. Names are those of the whole graph, ids are not.
tfc_status whole_part(const struct whole *w, const struct tfc_output *outputs, uint32_t output_count,
                      const uint32_t *targets, uint32_t target_count, struct tfc_graph **out);

#endif
