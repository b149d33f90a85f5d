// Times work on a stream: returns the shortest of a few rounds, after a first round that does not count.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_LIBRARY_TIMING_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_LIBRARY_TIMING_H

#include <cuda_runtime_api.h>

#include "runtime/device/cuda/kernel.h"

// `run` enqueues the work once on `stream`, which is one of the library's device. *out_ms: the time of `runs` of them
// in a row. UNIMPLEMENTED: CUDA failed to time it.
static inline tfc_status tfc_cuda_time(struct tfc_cuda_library *library, cudaStream_t stream,
                                       tfc_status (*run)(void *arg), void *arg, int runs, int rounds, float *out_ms) {
  tfc_status s = NULL;
  cudaEvent_t begin = NULL, end = NULL;
  int error = library->event(library, true, &begin);
  if (!error) error = library->event(library, true, &end);
  *out_ms = -1;
  for (int round = -1; round < rounds && !error; round++) {
    float ms = 0;
    error = (int)cudaEventRecord(begin, stream);
    for (int i = 0; i < runs && !error; i++) TFC_TRY(s, run(arg));
    if (!error) error = (int)cudaEventRecord(end, stream);
    if (!error) error = (int)cudaEventSynchronize(end);
    if (!error) error = (int)cudaEventElapsedTime(&ms, begin, end);
    if (round == 0 || (round > 0 && ms < *out_ms)) *out_ms = ms;
  }
  if (error) s = tfc_status_make(TFC_UNIMPLEMENTED, "timing it: CUDA error %d", error);
out:
  if (begin) (void)cudaEventDestroy(begin);
  if (end) (void)cudaEventDestroy(end);
  return s;
}

#endif
