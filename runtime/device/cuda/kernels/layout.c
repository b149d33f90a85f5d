// Transposes images, for convolutions that a library computes in another layout than the graph's, and as an operation
// of its own (image.c).
#include "runtime/device/cuda/kernels/layout.h"

#include "runtime/device/cuda/kernels/move.h"

struct tfc_cuda_layout tfc_cuda_layout_packed(const int64_t size[3], int64_t channels, bool first) {
  struct tfc_cuda_layout l = {.channel_stride = 1};
  int64_t step = first ? 1 : channels;
  for (int k = 2; k >= 0; k--) {
    l.size[k] = size[k];
    l.stride[k] = step;
    step *= size[k];
  }
  if (first) l.channel_stride = step;
  l.batch_stride = first ? step * channels : step;
  return l;
}

int tfc_cuda_images_copy(const struct tfc_cuda_images *images, const struct tfc_cuda_layout *from_layout,
                         const void *from, const struct tfc_cuda_layout *to_layout, void *to, void *stream) {
  static const int by_layout[2][5] = {{0, 2, 3, 4, 1}, {0, 1, 2, 3, 4}}; // channels last, first
  const bool last = to_layout->channel_stride == 1;
  const int *order = by_layout[!last]; // neighbours in the destination are neighbours in the last dimension
  const int64_t dims[5] = {images->batch, images->channels, images->size[0], images->size[1], images->size[2]};
  const struct tfc_cuda_layout *const layouts[2] = {from_layout, to_layout};
  int64_t strides[2][5];
  for (int i = 0; i < 2; i++) {
    strides[i][0] = layouts[i]->batch_stride, strides[i][1] = layouts[i]->channel_stride;
    for (int k = 0; k < 3; k++) strides[i][2 + k] = layouts[i]->stride[k];
  }
  struct tfc_cuda_block b = {.rank = 5, .size = images->element};
  for (int k = 0; k < 5; k++) {
    b.dims[k] = dims[order[k]];
    b.src_strides[k] = strides[0][order[k]];
    b.dst_strides[k] = strides[1][order[k]];
  }
  return tfc_cuda_copy_block(&b, to, from, stream);
}
