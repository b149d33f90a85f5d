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

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *out, cudaGraphEdgeData *edges,
                                         size_t *count) {
  size_t found = 0, early = 0;
  cudaGraphNode_t all[NODES * 3] = {0};
  for (int i = 0; i < NODES; i++)
    for (size_t k = 0; k < nodes[i].count; k++)
      if (nodes[i].next[k] == node) all[found++] = &nodes[i], early += nodes[i].early;
  if (edges && !out) return cudaErrorInvalidValue;
  if (early && !edges) return cudaErrorLossyQuery;
  if (out) {
    memset(out, 0, *count * sizeof *out);
    memcpy(out, all, (*count < found ? *count : found) * sizeof *out);
    if (edges) memset(edges, 0, *count * sizeof *edges);
  }
  if (!out || *count > found) *count = found;
  return cudaSuccess;
}

bool cuda_fake_chain_back(uint32_t joins, bool early) {
  static const int order[NODES] = {0, 2, 1, 3};
  cudaGraphNode_t list[NODES] = {0};
  memset(nodes, 0, sizeof nodes);
  for (int i = 0; i + 1 < NODES; i++)
    nodes[order[i]] = (struct CUgraphNode_st){.next = {&nodes[order[i + 1]]}, .count = 1, .early = early};
  if (joins) // the third node comes directly after the first, too
    nodes[order[0]].next[1] = &nodes[order[2]], nodes[order[0]].count = 2;
  const bool all = tfc_cuda_follow_back(&nodes[order[3]], list, NODES);
  for (int i = 0; all && i < NODES; i++)
    if (list[i] != &nodes[order[i]]) return false;
  // The last two nodes follow each other in any case.
  if (!tfc_cuda_follow_back(&nodes[order[3]], list, 2) || list[0] != &nodes[order[2]]) return false;
  return all;
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
