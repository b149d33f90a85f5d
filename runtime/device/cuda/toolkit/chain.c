// Which nodes of a captured graph belong to which operation follows from their number in the order of capture. (CUDA's
// list of a graph's nodes has no defined order.) The work of one stream is a chain: beginning at the root, each node
// has one successor. Where a capture has several streams, the nodes of one launch end with the one that its stream has
// captured last, and each but the first has one predecessor. If a library forks into other streams inside its calls,
// the graph is no chain, and its nodes are assigned to no operation.
#include "runtime/device/cuda/toolkit/chain.h"

bool tfc_cuda_follow_chain(cudaGraph_t graph, cudaGraphNode_t *list, size_t count) {
  size_t n = 0;
  if (cudaGraphGetRootNodes(graph, NULL, &n) || n != 1 || cudaGraphGetRootNodes(graph, list, &n)) return false;
  for (size_t i = 0; i < count; i++) {
    // Room for two nodes, to notice a second successor, and for the data of edges: a query without it (even for the
    // number only) fails if a library lets a kernel begin before its predecessor has ended.
    cudaGraphNode_t next[2];
    cudaGraphEdgeData edges[2];
    n = 2;
    if (cudaGraphNodeGetDependentNodes(list[i], next, edges, &n) || n != (i + 1 < count)) return false;
    if (n) list[i + 1] = next[0];
  }
  return true;
}

bool tfc_cuda_follow_back(cudaGraphNode_t last, cudaGraphNode_t *list, size_t count) {
  list[count - 1] = last;
  for (size_t i = count - 1; i > 0; i--) {
    cudaGraphNode_t before[2];
    cudaGraphEdgeData edges[2];
    size_t n = 2;
    if (cudaGraphNodeGetDependencies(list[i], before, edges, &n) || n != 1) return false;
    list[i - 1] = before[0];
  }
  return true;
}
