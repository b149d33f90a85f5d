// Pools, batch normalisation, softmax and local response normalisation through cuDNN, for the shapes for which it is
// faster than the kernels of this folder. Both are timed when a plan is made; the faster one is kept for that shape and
// device, as for convolutions. Where cuDNN's definition differs from TensorFlow's, only the kernels of this folder are
// used (docs/design.md says where and why).
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_DNN_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_DNN_H

#include "runtime/device/cuda/kernel.h"
#include "runtime/device/cuda/kernels/image.h"

enum {
  TFC_CUDA_DNN_POOL,
  TFC_CUDA_DNN_AVERAGE_GRAD,
  TFC_CUDA_DNN_NORM,
  TFC_CUDA_DNN_NORM_GRAD,
  TFC_CUDA_DNN_SOFTMAX,
  TFC_CUDA_DNN_LRN,
  TFC_CUDA_DNN_LRN_GRAD
};
struct tfc_cuda_dnn { // compared by bytes, so it is zeroed before it is filled
  int32_t role, type, spatial;
  int32_t flag;                   // pool: average instead of maximum; softmax: its logarithm
  struct tfc_cuda_slide slide;    // pools
  int64_t outer, channels, inner; // batch normalisation; for softmax and local response normalisation `outer` is the
                                  // number of rows and `inner` is 1
  float epsilon, unused;
  int64_t radius;
  double bias, alpha, beta;
};
// Addresses in device memory; NULL for tensors that the role does not use. out: y or dx, by role.
struct tfc_cuda_dnn_memory {
  const void *x, *y, *dy;
  void *out;
  const struct tfc_cuda_norm *norm; // batch normalisation uses this instead of the members above
};
struct tfc_cuda_dnn_plan;
// UNIMPLEMENTED: cuDNN cannot run it (then *out_declined is true, and the message is cuDNN's), or is not faster.
TFC_MUST_USE tfc_status tfc_cuda_dnn_find(struct tfc_cuda_library *library, const struct tfc_cuda_dnn *dnn,
                                          const struct tfc_cuda_dnn_plan **out, bool *out_declined);
size_t tfc_cuda_dnn_scratch(const struct tfc_cuda_dnn_plan *plan);
TFC_MUST_USE tfc_status tfc_cuda_dnn_run(struct tfc_cuda_launch *l, const struct tfc_cuda_dnn_plan *plan,
                                         const struct tfc_cuda_dnn_memory *memory);

#endif
