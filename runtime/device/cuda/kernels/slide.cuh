// Finds where the windows of struct tfc_cuda_slide are.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_SLIDE_CUH
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_SLIDE_CUH

#include "runtime/device/cuda/kernels/device.cuh"
#include "runtime/device/cuda/kernels/image.h"

namespace tfc {

struct spot { // the coordinates of an element of a batch of images
  int64_t image, cell[3], channel;
};
// Returns the i-th element in the order of memory, so that neighbouring threads access neighbouring addresses.
TFC_HD spot spot_of(int64_t i, const tfc_cuda_layout &l, int64_t channels) {
  spot s;
  if (l.channel_stride == 1) {
    i = divide(i, channels, &s.channel);
    for (int k = 2; k >= 0; k--) i = divide(i, l.size[k], &s.cell[k]);
  } else {
    for (int k = 2; k >= 0; k--) i = divide(i, l.size[k], &s.cell[k]);
    i = divide(i, channels, &s.channel);
  }
  s.image = i;
  return s;
}
TFC_HD int64_t place_in(const tfc_cuda_layout &l, int64_t image, int64_t a, int64_t b, int64_t c, int64_t channel) {
  return image * l.batch_stride + a * l.stride[0] + b * l.stride[1] + c * l.stride[2] + channel * l.channel_stride;
}
// Finds the cells [lo, hi) of the image under an undilated window.
TFC_HD void window_of(const tfc_cuda_slide &s, const int64_t *at, int64_t *lo, int64_t *hi) {
  for (int k = 0; k < 3; k++) {
    int64_t begin = at[k] * s.step[k] - s.before[k];
    hi[k] = smaller(begin + s.size[k], s.x.size[k]);
    lo[k] = larger(begin, (int64_t)0);
  }
}
TFC_HD int64_t elements_of(const tfc_cuda_slide &s, const tfc_cuda_layout &l, int64_t channels) {
  return s.batch * l.size[0] * l.size[1] * l.size[2] * channels;
}

} // namespace tfc

#endif
