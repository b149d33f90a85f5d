// Where the pixels of a resized image lie in the original, shared by the resizing ops. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_IMAGE_SCALE_H
#define TFC_RUNTIME_OPS_IMAGE_SCALE_H

#include "runtime/ops/element_types.h"
#include "runtime/ops/kernel.h"

struct ops_scale_state {
  bool align_corners, half_pixel_centers;
};
// Step in the original for one pixel of the result.
float ops_scale_step(int64_t in, int64_t out, bool align_corners);
// Position of pixel i; `nearest`: for rounding down, without the half that interpolation takes away again.
float ops_scale_at(const struct ops_scale_state *s, int64_t i, float step, bool nearest);
// One value as float. Adds to one value of a floating-point tensor, in its own precision.
float ops_pixel(const struct tfc_tensor *t, int64_t i);
void ops_add_to(struct tfc_tensor *y, int64_t at, float value);

#endif
