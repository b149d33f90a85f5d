// A fake of a captured CUDA graph, with the calls that list its nodes. As CUDA's headers say, a call that asks for
// edges without room for the edges' data fails if an edge has data.
#include <string.h>

#include "runtime/device/cuda/toolkit/chain.h"
#include "tests/cuda_kernels/host.h"

enum { NODES = 4 };
struct CUgraphNode_st {
  cudaGraphNode_t next[3];
  size_t count;
  bool early; // the edges from this node have data (as those of programmatic launches)
};
static struct CUgraphNode_st nodes[NODES];

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *out, size_t *count) {
  (void)graph;
  if (out) out[0] = &nodes[0];
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *out, cudaGraphEdgeData *edges,
                                           size_t *count) {
  if (edges && !out) return cudaErrorInvalidValue;
  if (node->early && node->count && !edges) return cudaErrorLossyQuery;
  if (!out) {
    *count = node->count;
    return cudaSuccess;
  }
  memset(out, 0, *count * sizeof *out);
  if (*count > node->count) *count = node->count;
  memcpy(out, node->next, *count * sizeof *out);
  if (edges) memset(edges, 0, *count * sizeof *edges);
  return cudaSuccess;
}

bool cuda_fake_chain(uint32_t successors, bool early) {
  static const int order[NODES] = {0, 2, 1, 3};
  cudaGraphNode_t list[NODES];
  memset(nodes, 0, sizeof nodes);
  for (int i = 0; i + 1 < NODES; i++)
    nodes[order[i]] = (struct CUgraphNode_st){.next = {&nodes[order[i + 1]]}, .count = 1, .early = early};
  struct CUgraphNode_st *second = &nodes[order[1]];
  for (second->count = 0; second->count < successors; second->count++)
    second->next[second->count] = &nodes[order[2 + second->count % 2]];
  if (!tfc_cuda_follow_chain(NULL, list, NODES)) return false;
  for (int i = 0; i < NODES; i++)
    if (list[i] != &nodes[order[i]]) return false;
  return true;
}
