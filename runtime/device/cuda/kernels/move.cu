// Every op that moves elements without reading them is one strided copy: a transpose, a slice, a tile, a reversal
// differ only in strides and offsets. So they share one kernel per element size. Before the launch, dimensions that are
// contiguous on both sides are joined, and small elements are combined up to 16 bytes, because the number of memory
// requests limits such a copy. Only a transpose of the innermost dimension needs more: in whatever order threads go,
// one side would be accessed with a stride, so tiles go through shared memory. Concatenation and splitting have many
// sources or destinations; one kernel looks up the part for each element, instead of a launch for each part.
#include "runtime/device/cuda/kernels/move.h"

#include "runtime/device/cuda/kernels/device.cuh"

namespace tfc {
namespace {

struct alignas(16) sixteen {
  uint64_t halves[2];
};

// --- Blocks ------------------------------------------------------------------------------------------------------
template <class T> __global__ void copy_kernel(tfc_cuda_block b, int64_t total, T *dst, const T *src) {
  for (int64_t i = first(); i < total; i += stride()) {
    int64_t rest = i, to = b.dst_at, from = b.src_at;
    for (int d = b.rank - 1; d > 0; d--) {
      int64_t at;
      rest = divide(rest, b.dims[d], &at);
      to += at * b.dst_strides[d];
      from += at * b.src_strides[d];
    }
    dst[to + rest * b.dst_strides[0]] = src[from + rest * b.src_strides[0]];
  }
}

// For a source that is contiguous along dimension `along` and a destination that is contiguous along the last: tiles of
// 32 × 32 go through shared memory, so that both sides are accessed contiguously.
const int TILE = 32, TILE_ROWS = 8;
template <class T> __global__ void transpose_kernel(tfc_cuda_block b, int along, int64_t tiles, T *dst, const T *src) {
  __shared__ T tile[TILE][TILE + 1];
  int last = b.rank - 1, x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
  int64_t wide = (b.dims[last] + TILE - 1) / TILE, high = (b.dims[along] + TILE - 1) / TILE;
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    int64_t column, row, rest = divide(divide(t, wide, &column), high, &row), to = b.dst_at, from = b.src_at;
    for (int d = last - 1; d >= 0; d--) {
      if (d == along) continue;
      int64_t at;
      rest = divide(rest, b.dims[d], &at);
      to += at * b.dst_strides[d];
      from += at * b.src_strides[d];
    }
    column *= TILE;
    row *= TILE;
    // Neighbouring threads read neighbouring elements along dimension `along`, in which the source is contiguous.
    for (int k = y; k < TILE; k += TILE_ROWS)
      if (row + x < b.dims[along] && column + k < b.dims[last])
        tile[k][x] = src[from + (row + x) * b.src_strides[along] + (column + k) * b.src_strides[last]];
    __syncthreads();
    for (int k = y; k < TILE; k += TILE_ROWS)
      if (column + x < b.dims[last] && row + k < b.dims[along])
        dst[to + (row + k) * b.dst_strides[along] + (column + x) * b.dst_strides[last]] = tile[x][k];
    __syncthreads();
  }
}

// Removes dimensions of size 1, and joins neighbouring dimensions that one stride describes on both sides. False: there
// is nothing to copy.
bool simplify(tfc_cuda_block *b) {
  int rank = 0;
  for (int d = 0; d < b->rank; d++) {
    int64_t n = b->dims[d], to = b->dst_strides[d], from = b->src_strides[d];
    if (n == 0) return false;
    if (n == 1) continue;
    if (rank && b->dst_strides[rank - 1] == n * to && b->src_strides[rank - 1] == n * from) {
      b->dims[rank - 1] *= n;
      b->dst_strides[rank - 1] = to;
      b->src_strides[rank - 1] = from;
    } else {
      b->dims[rank] = n;
      b->dst_strides[rank] = to;
      b->src_strides[rank++] = from;
    }
  }
  if (!rank) {
    b->dims[0] = b->dst_strides[0] = b->src_strides[0] = 1;
    rank = 1;
  }
  b->rank = rank;
  return true;
}

// Combines pairs of elements into one of twice the size, up to 16 bytes, as far as dimensions, strides, offsets and
// addresses allow.
void widen(tfc_cuda_block *b, const void *dst, const void *src) {
  int last = b->rank - 1;
  while (b->size < 16) {
    uintptr_t wide = (uintptr_t)b->size * 2;
    bool fits = b->dst_strides[last] == 1 && b->src_strides[last] == 1 && b->dims[last] % 2 == 0 &&
                b->dst_at % 2 == 0 && b->src_at % 2 == 0 && (uintptr_t)dst % wide == 0 && (uintptr_t)src % wide == 0;
    for (int d = 0; d < last; d++) fits = fits && b->dst_strides[d] % 2 == 0 && b->src_strides[d] % 2 == 0;
    if (!fits) return;
    b->size *= 2;
    b->dims[last] /= 2;
    b->dst_at /= 2;
    b->src_at /= 2;
    for (int d = 0; d < last; d++) {
      b->dst_strides[d] /= 2;
      b->src_strides[d] /= 2;
    }
  }
}

template <class T> int copy(const tfc_cuda_block &b, void *dst, const void *src, void *stream) {
  int last = b.rank - 1, along = -1;
  int64_t total = 1;
  for (int d = 0; d < b.rank; d++) {
    total *= b.dims[d];
    if (d < last && b.src_strides[d] == 1 && b.dims[d] >= 8) along = d;
  }
  if (along >= 0 && b.dst_strides[last] == 1 && b.src_strides[last] != 0 && b.src_strides[last] != 1 &&
      b.dims[last] >= 8 && sizeof(T) <= 8) {
    int64_t tiles = (b.dims[last] + TILE - 1) / TILE * ((b.dims[along] + TILE - 1) / TILE);
    for (int d = 0; d < last; d++)
      if (d != along) tiles *= b.dims[d];
    return launch_shared(transpose_kernel<T>, blocks_for(tiles, 1), TILE * TILE_ROWS, stream, b, along, tiles, (T *)dst,
                         (const T *)src);
  }
  return launch(copy_kernel<T>, blocks_for(total), THREADS, stream, b, total, (T *)dst, (const T *)src);
}

// --- Parts -------------------------------------------------------------------------------------------------------
template <class T, bool join> __global__ void parts_kernel(tfc_cuda_parts p, T *whole) {
  int64_t width = p.ends[p.count - 1], total = p.outer * width;
  for (int64_t i = first(); i < total; i += stride()) {
    int64_t column, row = divide(i, width, &column);
    int low = 0, high = p.count - 1; // the first part that ends behind the column
    while (low < high) {
      int middle = (low + high) / 2;
      if (p.ends[middle] > column)
        high = middle;
      else
        low = middle + 1;
    }
    int64_t begin = low ? p.ends[low - 1] : 0;
    T *part = (T *)p.data[low] + row * (p.ends[low] - begin) + (column - begin);
    T *place = whole + row * p.width + p.begin + column;
    if (join)
      *place = *part;
    else
      *part = *place;
  }
}

// Combines elements into larger ones, as `widen` does, if the sizes and addresses of all parts allow it.
void widen_parts(tfc_cuda_parts *p, const void *whole) {
  while (p->size < 16) {
    uintptr_t wide = (uintptr_t)p->size * 2;
    bool fits = p->width % 2 == 0 && p->begin % 2 == 0 && (uintptr_t)whole % wide == 0;
    for (int i = 0; i < p->count && fits; i++) fits = p->ends[i] % 2 == 0 && (uintptr_t)p->data[i] % wide == 0;
    if (!fits) return;
    p->size *= 2;
    p->width /= 2;
    p->begin /= 2;
    for (int i = 0; i < p->count; i++) p->ends[i] /= 2;
  }
}

template <bool join> int move_parts(const tfc_cuda_parts *given, void *whole, void *stream) {
  tfc_cuda_parts p = *given;
  if (!p.count || !p.outer || !p.ends[p.count - 1]) return 0;
  widen_parts(&p, whole);
  unsigned blocks = blocks_for(p.outer * p.ends[p.count - 1]);
  switch (p.size) {
  case 1: return launch(parts_kernel<uint8_t, join>, blocks, THREADS, stream, p, (uint8_t *)whole);
  case 2: return launch(parts_kernel<uint16_t, join>, blocks, THREADS, stream, p, (uint16_t *)whole);
  case 4: return launch(parts_kernel<uint32_t, join>, blocks, THREADS, stream, p, (uint32_t *)whole);
  case 8: return launch(parts_kernel<uint64_t, join>, blocks, THREADS, stream, p, (uint64_t *)whole);
  case 16: return launch(parts_kernel<sixteen, join>, blocks, THREADS, stream, p, (sixteen *)whole);
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_copy_block(const tfc_cuda_block *block, void *dst, const void *src, void *stream) {
  using namespace tfc;
  tfc_cuda_block b = *block;
  if (!simplify(&b)) return 0;
  widen(&b, dst, src);
  switch (b.size) {
  case 1: return copy<uint8_t>(b, dst, src, stream);
  case 2: return copy<uint16_t>(b, dst, src, stream);
  case 4: return copy<uint32_t>(b, dst, src, stream);
  case 8: return copy<uint64_t>(b, dst, src, stream);
  case 16: return copy<sixteen>(b, dst, src, stream);
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_join_parts(const tfc_cuda_parts *parts, void *whole, void *stream) {
  return tfc::move_parts<true>(parts, whole, stream);
}
TFC_CUDA_API int tfc_cuda_cut_parts(const tfc_cuda_parts *parts, const void *whole, void *stream) {
  return tfc::move_parts<false>(parts, (void *)(uintptr_t)whole, stream);
}
