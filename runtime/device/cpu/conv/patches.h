// The patches of an image as the matrix A of a product (gemm.h): what makes a convolution a matrix product without
// writing the patches to memory.
#ifndef TFC_RUNTIME_DEVICE_CPU_CONV_PATCHES_H
#define TFC_RUNTIME_DEVICE_CPU_CONV_PATCHES_H

#include "runtime/host/gemm/split.h"

// Row (n, y, x) of out[0] x out[1] positions; column (i, j, c): image[n, y * stride[0] + i * dilation[0] - before[0],
// x * stride[1] + j * dilation[1] - before[1], c], or 0 outside. Of a volume there are planes, dimension 2, before
// rows: row (n, z, y, x) and column (h, i, j, c).
struct tfc_patches {
  struct tfc_gemm_source base; // by tfc_patches_init
  const float *image;          // [batch, in[2], in[0], in[1], channels]
  int64_t batch, in[3], out[3], channels, size[3], stride[3], dilation[3], before[3];
  const float *zeros; // at least size[1] * channels of them
};
void tfc_patches_init(struct tfc_patches *p);           // the other members are set
bool tfc_patches_are_flat(const struct tfc_patches *p); // of pictures

// The same matrix transposed: row (i, j, c), column: positions from `first` on, `count` of them.
struct tfc_patches_transposed {
  struct tfc_gemm_source base;
  const struct tfc_patches *patches;
  int64_t first, count;
};
void tfc_patches_transpose(const struct tfc_patches *p, int64_t first, int64_t count,
                           struct tfc_patches_transposed *out);

// Of pictures: what one cell (i, j) of the window meets at each position from `first` on: rows of `channels` elements.
struct tfc_patches_cell {
  const struct tfc_patches *patches;
  int64_t i, j, first;
};
struct tfc_split_matrix tfc_patches_of_cell(const struct tfc_patches_cell *cell); // which must stay

#endif
