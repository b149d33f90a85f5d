// Operations are told apart by counting nodes in the order of capture, which is the order of one stream's chain: from
// the root on, each has one that follows. (A graph's list of nodes promises no order.) A library that forks inside its
// calls makes another graph, whose nodes are then nobody's.
#include "runtime/device/cuda/toolkit/chain.h"

bool tfc_cuda_follow_chain(cudaGraph_t graph, cudaGraphNode_t *list, size_t count) {
  size_t n = 0;
  if (cudaGraphGetRootNodes(graph, NULL, &n) || n != 1 || cudaGraphGetRootNodes(graph, list, &n)) return false;
  for (size_t i = 0; i < count; i++) {
    // Room for one too many, and for edges' data: a query without, be it for the number alone, fails where a library
    // lets a kernel begin early.
    cudaGraphNode_t next[2];
    cudaGraphEdgeData edges[2];
    n = 2;
    if (cudaGraphNodeGetDependentNodes(list[i], next, edges, &n) || n != (i + 1 < count)) return false;
    if (n) list[i + 1] = next[0];
  }
  return true;
}
