// A graph cut into parts, one for each task. A part has the nodes of its task, a _Send node for every tensor that
// leaves the task, and a _Recv node for every tensor that comes in. If a loop has nodes in several tasks, each of
// these tasks has a small loop of its own, with as many iterations: the loop's condition is sent to it in every
// iteration, and it makes the task's _Send and _Recv nodes run once in each (as in TensorFlow). Which nodes of a part a
// step runs is decided later, by the step's fetches and targets.
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
#include "runtime/pass/frames.h"

struct tfc_cut_edge { // one tensor that goes to one task; the edge's index is its key in messages
  struct tfc_output source;
  uint32_t from, to; // ranks of tasks
  uint32_t frame;    // the loop that the tensor is in; 0: none
  uint32_t order;    // its place in one order of all edges, in which an edge comes after all that its tensor depends on
};
struct tfc_cut_loop { // the small loop that a task has for a loop of the graph
  uint32_t frame, rank;
  uint32_t edge; // the edge that carries the loop's condition here; TFC_NONE: this task computes the condition
};
struct tfc_cut {
  const struct tfc_graph *graph; // borrowed
  const struct tfc_cluster_spec *spec;
  uint32_t *ranks; // [node] the task in which it runs
  TFC_ARRAY(struct tfc_cut_edge) edges;
  struct tfc_frames frames; // empty: the graph has no loops
  TFC_ARRAY(struct tfc_cut_loop) loops;
};
TFC_MUST_USE tfc_status tfc_cut_make(const struct tfc_graph *g, const struct tfc_cluster_spec *spec, uint32_t own,
                                     struct tfc_cut *out);
void tfc_cut_deinit(struct tfc_cut *cut);
TFC_MUST_USE tfc_status tfc_cut_write(const struct tfc_cut *cut, uint32_t rank, struct tfc_text *out);

// Returns the index in `loops` of a task's small loop for the loop `frame`; TFC_NONE: it has none.
uint32_t tfc_cut_loop_of(const struct tfc_cut *cut, uint32_t frame, uint32_t rank);

enum { TFC_CUT_NAME = 32 };
const char *tfc_cut_send_name(uint32_t edge, char out[TFC_CUT_NAME]);    // name of the _Send node of an edge
const char *tfc_cut_receive_name(uint32_t edge, char out[TFC_CUT_NAME]); // of the _Recv node

#endif
