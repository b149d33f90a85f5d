// Writes to variables on a device, for the rows of state, training and scatter ops. It does what
// runtime/ops/state_common does on the host, with copies on the stream.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_STATE_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_STATE_H

#include "runtime/device/cuda/kernels/common.h"

// Finds the variable behind input `i` and makes it ready to be written; it is an error if it has no value. If readers
// of a resource variable still hold its memory, the value is first copied to new memory. Readers of a reference see the
// new value.
TFC_MUST_USE tfc_status tfc_cuda_writable(struct tfc_cuda_launch *l, uint32_t i, struct tfc_variable **out);
// Makes reference output 0 the variable of input 0. (Resource ops have no outputs, so there is nothing to do for them.)
TFC_MUST_USE tfc_status tfc_cuda_forward_ref(struct tfc_cuda_launch *l);

#endif
