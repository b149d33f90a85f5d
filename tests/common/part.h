// Takes parts of a large graph file. A golden graph holds the nodes of all cases, and passes look at all nodes of a
// graph, so each case is run on a graph of its own nodes alone.
#ifndef TFC_TESTS_COMMON_PART_H
#define TFC_TESTS_COMMON_PART_H

#include "runtime/base/file.h"
#include "runtime/graph/graph.h"

struct whole {
  struct tfc_graph *graph;
  struct tfc_file file;
  struct whole_piece *pieces; // the fields of the file, in order
  size_t count;
};
tfc_status whole_load(const char *path, struct whole *out); // a binary GraphDef
void whole_deinit(struct whole *w);

// The graph of these nodes and of all that they are computed from. Names are as in the whole graph, ids are not.
tfc_status whole_part(const struct whole *w, const struct tfc_output *outputs, uint32_t output_count,
                      const uint32_t *targets, uint32_t target_count, struct tfc_graph **out);

#endif
