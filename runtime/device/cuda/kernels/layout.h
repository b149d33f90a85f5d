// Copies images from one layout to another.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_LAYOUT_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_LAYOUT_H

#include "runtime/device/cuda/kernels/image.h"

// The layout of images of this size whose elements are neighbours. `first`: with channels first.
struct tfc_cuda_layout tfc_cuda_layout_packed(const int64_t size[3], int64_t channels, bool first);

struct tfc_cuda_images {
  int64_t batch, channels, size[3];
  int32_t element; // bytes
};
// One launch. Images in either layout may be larger than `images` says (padded): the rest is neither read nor written.
// Returns a cudaError_t. The two do not overlap.
int tfc_cuda_images_copy(const struct tfc_cuda_images *images, const struct tfc_cuda_layout *from_layout,
                         const void *from, const struct tfc_cuda_layout *to_layout, void *to, void *stream);

#endif
