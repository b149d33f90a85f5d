// Where the pixels of a resized image lie in the original, shared by the resizing ops. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_IMAGE_SCALE_H
#define TFC_RUNTIME_OPS_IMAGE_SCALE_H

#include "runtime/ops/kernel.h"
#include "runtime/ops/math_types.h"

struct ops_scale_state {
  bool align_corners, half_pixel_centers;
};
tfc_status ops_prepare_scale(struct tfc_prepare_ctx *ctx);
// Step in the original for one pixel of the result.
float ops_scale_step(int64_t in, int64_t out, bool align_corners);
// Position of pixel i; `nearest`: for rounding down, without the half that interpolation takes away again.
float ops_scale_at(const struct ops_scale_state *s, int64_t i, float step, bool nearest);

// Sizes of an image resize: images [batch, height, width, channels], size [2].
struct ops_resize {
  int64_t batch, in_height, in_width, out_height, out_width, channels;
  float height_step, width_step;
};
TFC_MUST_USE tfc_status ops_resize_plan(struct tfc_kernel_ctx *ctx, bool align_corners, struct ops_resize *out);
tfc_status ops_shape_resize(struct tfc_shape_ctx *ctx);      // [batch, size, channels]
tfc_status ops_shape_resize_grad(struct tfc_shape_ctx *ctx); // of input 1
// One value as float. Adds to one value of a floating-point tensor, in its own precision.
float ops_pixel(const struct tfc_tensor *t, int64_t i);
void ops_add_to(struct tfc_tensor *y, int64_t at, float value);

#endif
