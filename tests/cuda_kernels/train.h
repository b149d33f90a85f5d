// Trains an example with the CUDA kernels' source in place of the CPU's kernels.
#ifndef TFC_TESTS_CUDA_KERNELS_TRAIN_H
#define TFC_TESTS_CUDA_KERNELS_TRAIN_H

#include "tests/cuda_kernels/host.h"

// The initialiser and `steps` training steps, whose losses must be TensorFlow's within 1e-4; 0: nothing runs, plans are
// made. What had a kernel and what had none goes to `out`.
TFC_MUST_USE tfc_status cuda_host_train(const char *name, uint32_t steps, struct cuda_host_census *out);

#endif
