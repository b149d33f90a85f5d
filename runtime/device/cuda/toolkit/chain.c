// Which nodes of a captured graph belong to which operation follows from their number in the order of capture. (CUDA's
// list of a graph's nodes has no defined order.) The work of one stream is a chain: beginning at the root, each node
// has one successor. If a library forks into other streams inside its calls, the graph is no chain, and its nodes are
// assigned to no operation.
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
