// Writing to variables on a device: what the rows of state, training and scatter ops share. As runtime/ops/state_common
// does it on the host, with copies on the stream.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_STATE_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_STATE_H

#include "runtime/device/cuda/kernels/common.h"

// The variable behind input `i`, initialised and with memory that only it holds: a resource variable that readers still
// hold is copied first; readers of a reference see the write.
TFC_MUST_USE tfc_status tfc_cuda_writable(struct tfc_cuda_launch *l, uint32_t i, struct tfc_variable **out);
// Reference output 0 is the variable of input 0 (nothing to do for resource ops, which have no outputs).
TFC_MUST_USE tfc_status tfc_cuda_forward_ref(struct tfc_cuda_launch *l);

#endif
