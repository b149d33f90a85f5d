// What the fakes of cuDNN share: descriptors, and elements of any type.
#ifndef TFC_TESTS_CUDA_KERNELS_FAKE_CUDNN_H
#define TFC_TESTS_CUDA_KERNELS_FAKE_CUDNN_H

#include <cudnn.h>
#include <stdlib.h>

enum { CUDA_FAKE_RANK = 5 };
struct cudnnTensorStruct {
  cudnnDataType_t type;
  int rank, dims[CUDA_FAKE_RANK], strides[CUDA_FAKE_RANK];
};
double cuda_fake_get(cudnnDataType_t type, const void *x, long i);
void cuda_fake_put(cudnnDataType_t type, void *x, long i, double v);
long cuda_fake_elements(const int *dims, int rank);
long cuda_fake_place(const int *strides, int a, int b, const int *at, int n); // at[n]: the spatial position
double cuda_fake_scalar(cudnnDataType_t type, const void *v);                 // the value of alpha or beta

// Defines the calls that make and destroy one kind of descriptor; its fields begin as zeros.
#define CUDA_FAKE_LIFE(Name, type)                                                                                     \
  cudnnStatus_t cudnnCreate##Name(type *out) {                                                                         \
    *out = calloc(1, sizeof **out);                                                                                    \
    return *out ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR;                                                  \
  }                                                                                                                    \
  cudnnStatus_t cudnnDestroy##Name(type it) {                                                                          \
    free(it);                                                                                                          \
    return CUDNN_STATUS_SUCCESS;                                                                                       \
  }

#endif
