// Copies that an operation makes itself, beside those functions of kernel.h that kernels call.
#ifndef TFC_RUNTIME_DEVICE_CUDA_ROWS_H
#define TFC_RUNTIME_DEVICE_CUDA_ROWS_H

#include "runtime/device/cuda/device.h"

// Makes a copy that is part of an operation, and counts it among the operation's launches. Returns CUDA's error.
int tfc_cuda_launch_copy(struct tfc_cuda_device *d, void *to, const void *from, size_t bytes, tfc_cuda_stream stream);

#endif
