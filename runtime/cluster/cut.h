// A graph cut into parts, one for each task. A part has the nodes of its task, a _Send node for every tensor that
// leaves the task, and a _Recv node for every tensor that comes in. Which nodes of a part a step runs is decided later,
// by the step's fetches and targets.
//
//   struct tfc_cut cut = {0};
//   TFC_TRY(s, tfc_cut_make(graph, &spec, own, &cut));
//   struct tfc_text part = {0};
//   TFC_TRY(s, tfc_cut_write(&cut, rank, &part)); // a GraphDef
//   tfc_cut_deinit(&cut);
#ifndef TFC_RUNTIME_CLUSTER_CUT_H
#define TFC_RUNTIME_CLUSTER_CUT_H

#include "runtime/cluster/spec.h"
#include "runtime/graph/graph.h"

struct tfc_cut_edge { // one tensor that goes to one task; the edge's index is its key in messages
  struct tfc_output source;
  uint32_t from, to; // ranks of tasks
};
struct tfc_cut {
  const struct tfc_graph *graph; // borrowed
  const struct tfc_cluster_spec *spec;
  uint32_t *ranks; // [node] the task it runs in
  TFC_ARRAY(struct tfc_cut_edge) edges;
};
TFC_MUST_USE tfc_status tfc_cut_make(const struct tfc_graph *g, const struct tfc_cluster_spec *spec, uint32_t own,
                                     struct tfc_cut *out);
void tfc_cut_deinit(struct tfc_cut *cut);
TFC_MUST_USE tfc_status tfc_cut_write(const struct tfc_cut *cut, uint32_t rank, struct tfc_text *out);

enum { TFC_CUT_NAME = 32 };
const char *tfc_cut_send_name(uint32_t edge, char out[TFC_CUT_NAME]); // name of the _Send node of an edge

#endif
