// Generates placement problems for benchmarks: families of graphs like those of models, of any size. Everything follows
// from the seed. Times are microseconds on kind "acc"; kind "cpu" is ten times slower.
#ifndef TFC_TESTS_BENCH_FAMILIES_H
#define TFC_TESTS_BENCH_FAMILIES_H

#include "placer/placer.h"

// name, description
#define FAMILIES(X)                                                                                                    \
  X(layered, "layered random graph, work and bytes of mixed sizes")                                                    \
  X(grid, "unrolled recurrent grid, forward only: layers by time steps, optimum known")                                \
  X(towers, "towers joined by one concat, optimum known")                                                              \
  X(seq2seq, "encoder, decoder, attention, softmax; forward, backward and updates")                                    \
  X(recurrent, "stack of recurrent layers, unrolled; forward, backward and updates")                                   \
  X(blocks, "Transformer blocks, parts of a batch side by side; forward, backward and updates")                        \
  X(series, "series-parallel graph")                                                                                   \
  X(layers, "layer graph of a training step: forward and backward of a layer in one group")                            \
  X(operators, "operator graph of a training step: blocks with branches, groups of forward and backward")

struct family_request {
  const char *family;
  uint32_t nodes, devices; // `devices`: accelerators
  uint32_t cpus;
  tfc_objective objective;
  double tightness; // memory of all devices divided by the memory that the graph needs; 0: no limits
  bool mixed;       // every other accelerator is half as fast (kind "old")
  uint64_t seed;
};
struct family_problem {
  struct tfc_cost_graph *graph;
  struct tfc_machine *machine;
  struct tfc_problem *problem;
  int64_t optimum; // ps, 0: not known
};
TFC_MUST_USE tfc_status family_make(const struct family_request *request, struct family_problem *out);
void family_free(struct family_problem *problem);

#endif
