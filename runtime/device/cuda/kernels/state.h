// Writing to variables on a device: what the rows of state, training and scatter ops share. It does what
// runtime/ops/state_common does on the host, with copies on the stream.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_STATE_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_STATE_H

#include "runtime/device/cuda/kernels/common.h"

// Finds the variable behind input `i`, ready to be written; an error if it has no value. If readers of a resource
// variable still hold its memory, the value is copied to new memory first. Readers of a reference see the write.
TFC_MUST_USE tfc_status tfc_cuda_writable(struct tfc_cuda_launch *l, uint32_t i, struct tfc_variable **out);
// Reference output 0 is the variable of input 0 (nothing to do for resource ops, which have no outputs).
TFC_MUST_USE tfc_status tfc_cuda_forward_ref(struct tfc_cuda_launch *l);

#endif
