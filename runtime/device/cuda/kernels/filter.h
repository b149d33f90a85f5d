// Filters in the forms that libraries read (runtime/ops/transposed_filter.h).
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_FILTER_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_FILTER_H

#include "runtime/device/cuda/kernels/conv.h"
#include "runtime/ops/transposed_filter.h"

// Copies a convolution's filter from one form to another, by one launch. Returns a cudaError_t. The two do not overlap.
int tfc_cuda_filter_transpose(const struct tfc_cuda_conv *conv, tfc_filter_form from_form, const void *from,
                              tfc_filter_form to_form, void *to, void *stream);

#endif
