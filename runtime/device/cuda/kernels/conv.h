// Convolutions through a library: with the CUDA toolkit library/cudnn.c, in tests matrix products over patches. The
// rows (image.c) describe the convolution; if the library declines, they use plain loops.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_CONV_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_CONV_H

#include "runtime/device/cuda/kernel.h"
#include "runtime/device/cuda/kernels/image.h"
#include "runtime/ops/transposed_filter.h"

enum tfc_cuda_conv_role { TFC_CUDA_CONV_FORWARD, TFC_CUDA_CONV_INPUT, TFC_CUDA_CONV_FILTER };
struct tfc_cuda_conv { // compared by bytes, so the caller zeroes all of it first
  int32_t role, type;  // type: a tfc_dtype, float32, float64, float16 or bfloat16
  int32_t spatial;     // 2 or 3 dimensions
  int32_t channels_first;
  int64_t after[3]; // zeros that are added after the image in each dimension, as far as windows reach
  struct tfc_cuda_slide slide;
};
struct tfc_cuda_conv_plan; // the chosen algorithm; exists as long as the process

// Finds the plan of a convolution; it is made at the first request and kept for later ones of the same shape.
// UNIMPLEMENTED: the library has no plan for it.
TFC_MUST_USE tfc_status tfc_cuda_conv_find(struct tfc_cuda_library *library, const struct tfc_cuda_conv *conv,
                                           const struct tfc_cuda_conv_plan **out);
size_t tfc_cuda_conv_scratch(const struct tfc_cuda_conv_plan *plan);
// The form in which the library reads the filter; in another one it is transposed first, in scratch.
tfc_filter_form tfc_cuda_conv_form(const struct tfc_cuda_conv_plan *plan);
// Returns the time that the convolution takes with channels first minus the time that it takes with channels last, in
// µs. The time in the graph's layout includes the conversion of images to the other layout and back, if the library
// chose to convert them. NaN: the library cannot run the convolution in the layout that the graph does not have.
double tfc_cuda_conv_channels_last_gain_us(const struct tfc_cuda_conv_plan *plan);
// Enqueues the convolution. It reads two of x (image), w (filter) and y, and writes the third, which the role names:
// y for FORWARD, x for INPUT, w for FILTER. form: w's; that of the graph if w is written.
TFC_MUST_USE tfc_status tfc_cuda_conv_run(struct tfc_cuda_launch *l, const struct tfc_cuda_conv_plan *plan, void *x,
                                          void *w, tfc_filter_form form, void *y, void *scratch);

#endif
