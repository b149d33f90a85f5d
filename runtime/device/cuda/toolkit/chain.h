// The order of a captured graph's nodes.
#ifndef TFC_RUNTIME_DEVICE_CUDA_TOOLKIT_CHAIN_H
#define TFC_RUNTIME_DEVICE_CUDA_TOOLKIT_CHAIN_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

// Fills `list` with the graph's `count` nodes in the order of their edges, from the root on. False: the graph is no
// chain, or a call failed, whose error cudaGetLastError returns.
bool tfc_cuda_follow_chain(cudaGraph_t graph, cudaGraphNode_t *list, size_t count);
// Fills `list` with `count` nodes (at least 1), each of them the only predecessor of the next, up to `last`. False: one
// has several predecessors or none, or a call failed.
bool tfc_cuda_follow_back(cudaGraphNode_t last, cudaGraphNode_t *list, size_t count);

#endif
