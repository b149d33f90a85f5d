// Moving and clearing bytes on a device's stream.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_MEMORY_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_MEMORY_H

#include "runtime/device/cuda/kernels/types.h"

TFC_CUDA_API int tfc_cuda_copy_bytes(void *to, const void *from, size_t bytes, void *stream); // within the device
TFC_CUDA_API int tfc_cuda_clear_bytes(void *to, size_t bytes, void *stream);

#endif
