// The plain convolution, for the ops that have one inside.
#ifndef TFC_RUNTIME_OPS_NN_CONV_H
#define TFC_RUNTIME_OPS_NN_CONV_H

#include "runtime/ops/nn_window.h"

// Output 0 becomes x [batch, ..., channels] convolved with filter [..., channels, filters], laid out as `w` says.
TFC_MUST_USE tfc_status tfc_conv_forward(struct tfc_kernel_ctx *ctx, const struct tfc_window *w,
                                         const struct tfc_tensor *x, const struct tfc_tensor *filter);
// What the shape function of a convolution tells of the image `x` of `w`'s rank.
TFC_MUST_USE tfc_status tfc_conv_infer(struct tfc_shape_ctx *ctx, const struct tfc_window *w, const struct tfc_shape *x,
                                       uint32_t filter);

#endif
