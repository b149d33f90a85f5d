// A graph cut into the parts of tasks: each part has the nodes of its task, a _Send for every tensor that leaves it,
// and a _Recv for every one that comes. What a step runs of it is chosen later, by the step's fetches and targets.
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

struct tfc_cut_edge { // one tensor to one task; its number is its key
  struct tfc_output source;
  uint32_t from, to; // ranks
};
struct tfc_cut {
  const struct tfc_graph *graph; // borrowed
  const struct tfc_cluster_spec *spec;
  uint32_t *ranks; // [node]
  TFC_ARRAY(struct tfc_cut_edge) edges;
  struct tfc_cut_loops *loops; // those that run in several tasks, or NULL
};
TFC_MUST_USE tfc_status tfc_cut_make(const struct tfc_graph *g, const struct tfc_cluster_spec *spec, uint32_t own,
                                     struct tfc_cut *out);
void tfc_cut_deinit(struct tfc_cut *cut);
TFC_MUST_USE tfc_status tfc_cut_write(const struct tfc_cut *cut, uint32_t rank, struct tfc_text *out);
// The edge by which a tensor (or a control output) comes to a task; UINT32_MAX: it does not.
uint32_t tfc_cut_edge_of(const struct tfc_cut *cut, struct tfc_output source, uint32_t to);

enum { TFC_CUT_NAME = 32 };
const char *tfc_cut_send_name(uint32_t edge, char out[TFC_CUT_NAME]); // of the node that sends it

#endif
