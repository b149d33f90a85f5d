// Trains an example with the CUDA kernels' source in place of the CPU's kernels.
#ifndef TFC_TESTS_CUDA_KERNELS_TRAIN_H
#define TFC_TESTS_CUDA_KERNELS_TRAIN_H

#include "tests/cuda_kernels/host.h"

// Runs the initialiser and `steps` training steps; the losses must be TensorFlow's within a relative 1e-4. With 0
// steps, only the plans of both are made. `out` lists which operations had a CUDA kernel and which had none.
TFC_MUST_USE tfc_status cuda_host_train(const char *name, uint32_t steps, struct cuda_host_census *out);

#endif
