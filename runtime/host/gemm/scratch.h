// Scratch memory of a thread, which grows to the largest request and stays until the thread ends.
#ifndef TFC_RUNTIME_HOST_GEMM_SCRATCH_H
#define TFC_RUNTIME_HOST_GEMM_SCRATCH_H

#include <stddef.h>

enum {
  TFC_SCRATCH_A,
  TFC_SCRATCH_B,
  TFC_SCRATCH_FILTER,
  TFC_SCRATCH_IMAGE,
  TFC_SCRATCH_TRANSPOSED,
  TFC_SCRATCH_PADDED,
  TFC_SCRATCH_PLACES
};

// Returns `bytes` bytes, aligned to 64 and not cleared. The bytes are valid until the next call for the same place by
// this thread. NULL: out of memory.
void *tfc_thread_scratch(int place, size_t bytes);

#endif
