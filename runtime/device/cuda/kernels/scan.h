// Cumulative sums and products along one dimension.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_SCAN_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_SCAN_H

#include "runtime/device/cuda/kernels/types.h"

// y [outer, n, inner]: each element is the sum (or product) of x along n up to this element; exclusive: without the
// element itself.
struct tfc_cuda_scan {
  int64_t outer, n, inner;
  bool product, exclusive, reverse;
  bool in_order; // set by tfc_cuda_scan_split: one thread scans a line, in the reference kernel's order and rounding
  int64_t chunks, chunk; // set by tfc_cuda_scan_split: chunks of a line, and elements of a chunk
};
// Sets in_order, chunks and chunk, from type and shape alone.
TFC_CUDA_API void tfc_cuda_scan_split(int type, struct tfc_cuda_scan *s);
// Returns the bytes of scratch in device memory that a launch needs.
static inline size_t tfc_cuda_scan_scratch(const struct tfc_cuda_scan *s) {
  return s->chunks > 1 ? (size_t)(s->outer * s->chunks * s->inner) * 8 : 0;
}
TFC_CUDA_API int tfc_cuda_run_scan(int type, const struct tfc_cuda_scan *s, const void *x, void *y, void *scratch,
                                   void *stream);

#endif
