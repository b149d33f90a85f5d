// Computes where the pixels of a resized image lie in the original, for all resizing ops. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_IMAGE_SCALE_H
#define TFC_RUNTIME_OPS_IMAGE_SCALE_H

#include "runtime/ops/element_types.h"
#include "runtime/ops/kernel.h"

struct ops_scale_state {
  bool align_corners, half_pixel_centers;
};
// Returns the distance in the original between two neighbouring pixels of the result.
float ops_scale_step(int64_t in, int64_t out, bool align_corners);
// Returns the position of pixel i in the original. With half-pixel centres, positions for interpolation are 0.5 lower
// than `nearest` ones, which are only rounded down.
float ops_scale_at(const struct ops_scale_state *s, int64_t i, float step, bool nearest);
// ops_pixel returns element i as a float. ops_add_to adds to an element of a floating-point tensor, in the tensor's own
// precision.
float ops_pixel(const struct tfc_tensor *t, int64_t i);
void ops_add_to(struct tfc_tensor *y, int64_t at, float value);

#endif
