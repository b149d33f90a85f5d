// Pieces of segments that are captured as CUDA graphs.
#ifndef TFC_RUNTIME_DEVICE_CUDA_GRAPH_H
#define TFC_RUNTIME_DEVICE_CUDA_GRAPH_H

#include "runtime/device/cuda/segment.h"

// `from`: the index of the next call of a segment. If a captured piece begins there, replays it (and captures it first
// if needed); *out_next is the call after the piece. If no piece begins there, *out_next == from, and the caller must
// launch this call itself. Every run of the segment begins with from = 0.
TFC_MUST_USE tfc_status tfc_cuda_graph_run(struct tfc_cuda_device *d, struct tfc_prepared *p, struct tfc_step *step,
                                           uint32_t from, uint32_t *out_next);
void tfc_cuda_graph_release(struct tfc_cuda_device *d, struct tfc_cuda_capture *capture); // NULL is fine

#endif
