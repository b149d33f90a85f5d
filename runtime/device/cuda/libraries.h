// Handles of cuBLASLt and cuDNN, made when they are first needed.
#ifndef TFC_RUNTIME_DEVICE_CUDA_LIBRARIES_H
#define TFC_RUNTIME_DEVICE_CUDA_LIBRARIES_H

#include "runtime/device/cuda/device.h"

// These are the functions in struct tfc_cuda_library. The caller holds launch_lock.
TFC_MUST_USE tfc_status tfc_cuda_blaslt(struct tfc_cuda_library *library, struct cublasLtContext **out);
TFC_MUST_USE tfc_status tfc_cuda_cudnn(struct tfc_cuda_library *library, struct cudnnContext **out);
// Make the green context of a virtual device current, which may be so on one thread at a time, and no longer. The first
// returns CUDA's error; then the second is not called. No handle of cuDNN may be entered meanwhile by the same thread.
TFC_MUST_USE int tfc_cuda_green_enter(struct tfc_cuda_device *d);
void tfc_cuda_green_leave(struct tfc_cuda_device *d);
// Returns cuDNN's handle and makes the handle's context current. Call tfc_cuda_cudnn_leave afterwards in every case,
// also after a failure.
TFC_MUST_USE tfc_status tfc_cuda_cudnn_enter(struct tfc_cuda_device *d, struct cudnnContext **out);
void tfc_cuda_cudnn_leave(struct tfc_cuda_device *d);
// Destroys the handles. No thread uses them any more.
void tfc_cuda_libraries_close(struct tfc_cuda_device *d);

#endif
