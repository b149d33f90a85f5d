// The plain convolution, for ops that contain one.
#ifndef TFC_RUNTIME_OPS_NN_CONV_H
#define TFC_RUNTIME_OPS_NN_CONV_H

#include "runtime/ops/nn_window.h"

// Sets output 0 to x [batch, ..., channels] convolved with filter [..., channels, filters], in the layout that `w`
// describes.
TFC_MUST_USE tfc_status tfc_conv_forward(struct tfc_kernel_ctx *ctx, const struct tfc_window *w,
                                         const struct tfc_tensor *x, const struct tfc_tensor *filter);
// Infers the output's shape of a convolution of the image `x`, which has `w`'s rank, with the filter in input `filter`.
TFC_MUST_USE tfc_status tfc_conv_infer(struct tfc_shape_ctx *ctx, const struct tfc_window *w, const struct tfc_shape *x,
                                       uint32_t filter);

#endif
