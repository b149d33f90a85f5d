// Operations that have no kernel on a GPU.
#ifndef TFC_RUNTIME_DEVICE_CUDA_HOST_H
#define TFC_RUNTIME_DEVICE_CUDA_HOST_H

#include "runtime/device/cuda/device.h"

// Runs an operation without a kernel on the host: waits for the stream, copies inputs, runs the reference kernel,
// copies outputs.
TFC_MUST_USE tfc_status tfc_cuda_host_run(struct tfc_cuda_device *d, const struct tfc_segment_op *op,
                                          struct tfc_kernel_ctx *ctx, tfc_cuda_stream stream);

#endif
