// The patches of an image as the matrix A of a product (gemm.h). With them a convolution is a matrix product. The
// patches are read from the image when they are packed; the matrix itself is never written to memory.
#ifndef TFC_RUNTIME_DEVICE_CPU_CONV_PATCHES_H
#define TFC_RUNTIME_DEVICE_CPU_CONV_PATCHES_H

#include "runtime/host/gemm/split.h"
#include "runtime/ops/kernel.h"

// Row (n, y, x) of out[0] x out[1] positions; column (i, j, c): image[n, y * stride[0] + i * dilation[0] - before[0],
// x * stride[1] + j * dilation[1] - before[1], c], or 0 outside of the image. A volume also has planes (index 2 of the
// arrays): row (n, z, y, x) and column (h, i, j, c).
enum { TFC_PATCHES_MOST_OFFSETS = 1024 };
struct tfc_patches {
  struct tfc_gemm_source base; // by tfc_patches_init
  const float *image;          // [batch, in[2], in[0], in[1], channels]
  int64_t batch, in[3], out[3], channels, size[3], stride[3], dilation[3], before[3];
  const float *zeros;                        // at least size[1] * channels zeros
  bool inside;                               // no window reaches over the edge, and behind the image are 16 more floats
  int32_t offsets[TFC_PATCHES_MOST_OFFSETS]; // by tfc_patches_scatter
};
void tfc_patches_init(struct tfc_patches *p); // sets `base`; the caller has set the other members
// Lets products read windows in place, by the distances of a window's elements from its first one, if a window has at
// most TFC_PATCHES_MOST_OFFSETS elements. Call it after tfc_patches_pad, which changes these distances.
void tfc_patches_scatter(struct tfc_patches *p);
bool tfc_patches_are_flat(const struct tfc_patches *p); // images are two-dimensional

// The matrix of patches, transposed: row (i, j, c); the columns are `count` positions from `first` on, at most
// TFC_PATCHES_POSITIONS. `lines`: the positions by lines of the image, which all rows have in common.
enum { TFC_PATCHES_POSITIONS = 512 };
struct tfc_patches_line {
  const float *image;
  int64_t z, y;         // of the windows' first cells
  int64_t start, count; // the first window begins at this element of a line; number of windows
};
struct tfc_patches_transposed {
  struct tfc_gemm_source base;
  const struct tfc_patches *patches;
  int64_t line_count;
  struct tfc_patches_line lines[TFC_PATCHES_POSITIONS];
};
void tfc_patches_transpose(const struct tfc_patches *p, int64_t first, int64_t count,
                           struct tfc_patches_transposed *out);

// Finds the steps of the chains of the rows of one cell: where the cell is inside of the image. The steps are for the
// cell's first channel. Returns the number of steps; `out` has room for TFC_PATCHES_POSITIONS.
struct tfc_gemm_steps;
int64_t tfc_patches_steps(const struct tfc_patches_transposed *t, int64_t cell, struct tfc_gemm_steps *out);

// As tfc_patches_steps, for row 0 of the matrix. The patches are `inside`, so all rows have the same steps: row r
// begins offsets[r] elements (tfc_patches_scatter) behind row 0.
int64_t tfc_patches_lines(const struct tfc_patches_transposed *t, struct tfc_gemm_steps *out);

// For two-dimensional images: the matrix of the pixels that cell (i, j) of the window meets, one row of `channels`
// elements for each position from `first` on.
struct tfc_patches_cell {
  const struct tfc_patches *patches;
  int64_t i, j, first;
};
struct tfc_split_matrix tfc_patches_of_cell(const struct tfc_patches_cell *cell); // `cell` must outlive the result

#endif
