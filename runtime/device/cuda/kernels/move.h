// Moves elements: in blocks with any strides (slices, transposes, tiles, pads), and between a tensor and the parts that
// it is split into or joined from along a dimension.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_MOVE_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_MOVE_H

#include "runtime/device/cuda/kernels/types.h"

enum { TFC_CUDA_BLOCK_RANK = 12 };
// dst[dst_at + Σ i_d dst_strides[d]] = src[src_at + Σ i_d src_strides[d]] for all i in dims, in elements of `size`
// bytes (1, 2, 4, 8, 16). Source strides may be 0 or negative.
struct tfc_cuda_block {
  int32_t rank, size;
  int64_t dims[TFC_CUDA_BLOCK_RANK];
  int64_t dst_strides[TFC_CUDA_BLOCK_RANK], src_strides[TFC_CUDA_BLOCK_RANK];
  int64_t dst_at, src_at;
};
// Joins neighbouring dimensions, combines elements into larger ones where addresses allow, and copies.
TFC_CUDA_API int tfc_cuda_copy_block(const struct tfc_cuda_block *block, void *dst, const void *src, void *stream);

// A tensor `whole` [outer, width] and neighbouring parts of it, part i [outer, width_i]. Widths are in elements of
// `size` bytes. One launch takes at most TFC_CUDA_PARTS parts.
enum { TFC_CUDA_PARTS = 96 };
struct tfc_cuda_parts {
  int64_t outer, width; // width: that of `whole`, in elements
  int64_t begin;        // where the first of these parts begins in a row of `whole`
  int32_t count, size;
  int64_t ends[TFC_CUDA_PARTS]; // where each part ends, counted from `begin`
  void *data[TFC_CUDA_PARTS];
};
TFC_CUDA_API int tfc_cuda_join_parts(const struct tfc_cuda_parts *parts, void *whole, void *stream);
TFC_CUDA_API int tfc_cuda_cut_parts(const struct tfc_cuda_parts *parts, const void *whole, void *stream);

#endif
