// Kernels on images: pooling, batch normalisation, local response normalisation, and convolution by plain loops.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_IMAGE_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_IMAGE_H

#include "runtime/device/cuda/kernels/types.h"

// The layout of a batch of images, in elements. Images with two spatial dimensions use the last two of the three.
struct tfc_cuda_layout {
  int64_t size[3], stride[3], batch_stride, channel_stride;
};
// A window that slides over images x and produces images y.
struct tfc_cuda_slide {
  int64_t batch;
  struct tfc_cuda_layout x, y;
  int64_t size[3], step[3], dilation[3], before[3];
  int64_t channels;        // of x (and, in pools, of y)
  int64_t filters, groups; // convolutions only
};

// Padding is neither a maximum nor counted in an average. Of equal maxima the first one in the window gets the
// gradient; with `each` all of them do. Results are the same in every run.
TFC_CUDA_API int tfc_cuda_pool(int type, bool average, const struct tfc_cuda_slide *s, const void *x, void *y,
                               void *stream);
TFC_CUDA_API int tfc_cuda_max_pool_grad(int type, bool each, const struct tfc_cuda_slide *s, const void *x,
                                        const void *y, const void *dy, void *dx, void *stream);
TFC_CUDA_API int tfc_cuda_average_pool_grad(int type, const struct tfc_cuda_slide *s, const void *dy, void *dx,
                                            void *stream);

// x is [outer, channels, inner]; statistics are float32, the sums for them float64.
struct tfc_cuda_norm {
  int64_t outer, channels, inner;
  bool training;
  float epsilon, factor; // factor: the weight of the batch's statistics in the running ones
  const void *x, *dy;
  const float *scale, *offset, *mean, *variance; // inputs
  void *y;                                       // y or dx
  float *out_mean, *out_variance, *saved_mean, *saved_variance, *dscale, *doffset;
};
// Bytes of scratch in device memory that each of the two functions needs.
TFC_CUDA_API size_t tfc_cuda_norm_scratch(const struct tfc_cuda_norm *n);
TFC_CUDA_API int tfc_cuda_norm_forward(int type, const struct tfc_cuda_norm *n, void *scratch, void *stream);
TFC_CUDA_API int tfc_cuda_norm_backward(int type, const struct tfc_cuda_norm *n, void *scratch, void *stream);

// Conversions of statistics [channels]. tfc_cuda_norm_scale: out = in * factor; tfc_cuda_norm_inverse: out = 1 /
// sqrt(in + epsilon).
TFC_CUDA_API int tfc_cuda_norm_scale(int64_t channels, double factor, const float *in, float *out, void *stream);
TFC_CUDA_API int tfc_cuda_norm_inverse(int64_t channels, float epsilon, const float *in, void *out, void *stream);

// x is [rows, channels]: y = x / (bias + alpha Σ over neighbouring channels of x²) ^ beta
struct tfc_cuda_lrn {
  int64_t rows, channels, radius;
  double bias, alpha, beta;
};
TFC_CUDA_API int tfc_cuda_lrn_forward(int type, const struct tfc_cuda_lrn *l, const void *x, void *y, void *stream);
TFC_CUDA_API int tfc_cuda_lrn_backward(int type, const struct tfc_cuda_lrn *l, const void *dy, const void *x,
                                       const void *y, void *dx, void *stream);

// Convolution without a library: it is slow, but available everywhere. Filters are [size0, size1, size2, channels /
// groups, filters].
TFC_CUDA_API int tfc_cuda_conv_forward(int type, const struct tfc_cuda_slide *s, const void *x, const void *w, void *y,
                                       void *stream);
TFC_CUDA_API int tfc_cuda_conv_input(int type, const struct tfc_cuda_slide *s, const void *w, const void *dy, void *dx,
                                     void *stream);
TFC_CUDA_API int tfc_cuda_conv_filter(int type, const struct tfc_cuda_slide *s, const void *x, const void *dy, void *dw,
                                      void *stream);

#endif
