// Cumulative sums and products. Contiguous lines are scanned by groups of threads, tile by tile: each thread scans its
// few elements, then the threads' results are joined pairwise. A line whose elements are `inner` apart is scanned by
// one thread, so that neighbouring threads read neighbouring elements. A few long lines are divided into chunks: a
// first launch computes the totals of chunks, the second starts each chunk with the totals before it. So memory is read
// twice. There are scans that read it once (a block waits for the sum of the block before it), but they add in an order
// that differs from run to run.
//
// Sums of float32 are computed in float64, so that partial sums stay in range. If rounding at each step is visible
// (16-bit floats), or a partial result may leave the range for good (products of floats: 0, 1e300, 1e300 must be 0, and
// so must all that follows), one thread scans the line in the reference's order.
#include "runtime/device/cuda/kernels/scan.h"

#include "runtime/device/cuda/kernels/group.cuh"

namespace tfc {
namespace {

// The type in which sums and products are computed.
template <class T> struct wide { typedef typename number<T>::U A; };
template <> struct wide<f32> { typedef double A; };

template <class A> struct join_of {
  bool product;
  TFC_HD A none() const { return product ? (A)1 : (A)0; }
  TFC_HD A operator()(A a, A b) const { return product ? a * b : a + b; }
};
// Returns the next value of a scan, rounded to the type of the elements.
template <class T> TFC_HD T step(bool product, T sum, T x) {
  typedef typename number<T>::U U;
  const U a = (U)get(sum), b = (U)get(x);
  return put<T>((typename number<T>::C)(product ? a * b : a + b));
}
template <class T, class A> TFC_HD T narrow(A a) {
  return put<T>((typename number<T>::C)a);
}
// Returns where element `p` of a scan lies in its line: with `reverse` the scan begins at the end.
TFC_HD int64_t place_of(const tfc_cuda_scan &s, int64_t p) {
  return s.reverse ? s.n - 1 - p : p;
}

// --- Contiguous lines (inner is 1) ---------------------------------------------------------------------------------
// How many elements of a tile each thread scans: an odd number, so that neighbouring threads access different banks of
// shared memory.
const int ITEMS = 5;
const int64_t TILE = THREADS * ITEMS;

// Returns the sum (or product) of the values of the group's threads before this one. *total: the sum (or product) of
// the values of all its threads.
template <class A> __device__ __forceinline__ A sum_before(A value, A *shared, group g, join_of<A> join, A *total) {
  int t = (int)threadIdx.x;
  __syncthreads();
  shared[t] = value;
  for (int w = 1; w < g.lanes; w *= 2) {
    __syncthreads();
    A before = g.lane >= w ? shared[t - w] : join.none();
    __syncthreads();
    shared[t] = join(before, shared[t]);
  }
  __syncthreads();
  *total = shared[t - g.lane + g.lanes - 1];
  return g.lane ? shared[t - 1] : join.none();
}

// Scans a tile in shared memory. *carry: the sum (or product) of all elements before the tile; updated.
template <class T>
__device__ __forceinline__ void scan_tile(const tfc_cuda_scan &s, T *tile, typename wide<T>::A *sums, group g,
                                          typename wide<T>::A *carry) {
  typedef typename wide<T>::A A;
  const join_of<A> join = {s.product};
  A mine[ITEMS], sum = join.none(), total;
  for (int k = 0; k < ITEMS; k++) {
    A next = join(sum, (A)get(tile[g.lane * ITEMS + k]));
    mine[k] = s.exclusive ? sum : next;
    sum = next;
  }
  A base = join(*carry, sum_before(sum, sums, g, join, &total));
  for (int k = 0; k < ITEMS; k++) tile[g.lane * ITEMS + k] = narrow<T>(join(base, mine[k]));
  *carry = join(*carry, total);
}
template <class T> __device__ __forceinline__ void step_tile(const tfc_cuda_scan &s, T *tile, int64_t n, T *carry) {
  T sum = *carry;
  for (int64_t k = 0; k < n; k++) {
    T next = step(s.product, sum, tile[k]);
    tile[k] = s.exclusive ? sum : next;
    sum = next;
  }
  *carry = sum;
}

// A group of threads scans a chunk of a line. totals [outer, chunks] has the total of each chunk.
template <class T>
__global__ void lines_kernel(tfc_cuda_scan s, int lanes, const typename wide<T>::A *totals, const T *x, T *y) {
  typedef typename wide<T>::A A;
  __shared__ T tiles[TILE];
  __shared__ A sums[THREADS];
  const join_of<A> join = {s.product};
  const int64_t width = THREADS / lanes, local = (int)threadIdx.x / lanes, all = s.outer * s.chunks;
  const group g = {(int)threadIdx.x % lanes, lanes, 1};
  T *tile = tiles + local * lanes * ITEMS;
  for (int64_t b = blockIdx.x; b < (all + width - 1) / width; b += gridDim.x) {
    int64_t piece = b * width + local, chunk, line = divide(piece, s.chunks, &chunk);
    const bool mine = piece < all;
    const T *from = x + (mine ? line * s.n : 0);
    T *to = y + (mine ? line * s.n : 0), stepped = put<T>(s.product ? 1 : 0);
    A carry = join.none();
    if (s.chunks > 1) { // then all threads of a block work on one chunk
      for (int64_t c = g.lane; c < chunk; c += lanes) carry = join(carry, totals[line * s.chunks + c]);
      carry = join_group(carry, sums, g, join);
    }
    const int64_t end = smaller((chunk + 1) * s.chunk, s.n);
    for (int64_t begin = chunk * s.chunk; begin < chunk * s.chunk + s.chunk; begin += lanes * ITEMS) {
      for (int k = g.lane; k < lanes * ITEMS; k += lanes)
        tile[k] = mine && begin + k < end ? from[place_of(s, begin + k)] : put<T>(0);
      __syncthreads();
      if (!s.in_order)
        scan_tile(s, tile, sums, g, &carry);
      else if (!g.lane)
        step_tile(s, tile, smaller(end - begin, (int64_t)(lanes * ITEMS)), &stepped);
      __syncthreads();
      for (int k = g.lane; k < lanes * ITEMS; k += lanes)
        if (mine && begin + k < end) to[place_of(s, begin + k)] = tile[k];
      __syncthreads();
    }
  }
}
template <class T> __global__ void line_totals_kernel(tfc_cuda_scan s, const T *x, typename wide<T>::A *totals) {
  typedef typename wide<T>::A A;
  __shared__ A sums[THREADS];
  const join_of<A> join = {s.product};
  const group g = {(int)threadIdx.x, (int)THREADS, 1};
  for (int64_t piece = blockIdx.x; piece < s.outer * s.chunks; piece += gridDim.x) {
    int64_t chunk, line = divide(piece, s.chunks, &chunk), end = smaller((chunk + 1) * s.chunk, s.n);
    A sum = join.none();
    for (int64_t p = chunk * s.chunk + g.lane; p < end; p += THREADS)
      sum = join(sum, (A)get(x[line * s.n + place_of(s, p)]));
    sum = join_group(sum, sums, g, join);
    if (!g.lane) totals[piece] = sum;
  }
}

// Each thread scans one line.
template <class T> __global__ void columns_kernel(tfc_cuda_scan s, const T *x, T *y) {
  for (int64_t i = first(); i < s.outer * s.inner; i += stride()) {
    int64_t column, base = divide(i, s.inner, &column) * s.n * s.inner + column;
    T sum = put<T>(s.product ? 1 : 0);
    for (int64_t p = 0; p < s.n; p++) {
      int64_t at = base + place_of(s, p) * s.inner;
      T next = step(s.product, sum, x[at]);
      y[at] = s.exclusive ? sum : next;
      sum = next;
    }
  }
}
// Scans a chunk of a line: writes the chunk's total to totals [outer, chunks, inner], or, if y is not NULL, the scanned
// elements to y. One thread handles one chunk.
template <class T> __global__ void chunks_kernel(tfc_cuda_scan s, typename wide<T>::A *totals, const T *x, T *y) {
  typedef typename wide<T>::A A;
  const join_of<A> join = {s.product};
  for (int64_t i = first(); i < s.outer * s.chunks * s.inner; i += stride()) {
    int64_t column, chunk, line = divide(divide(i, s.inner, &column), s.chunks, &chunk);
    const int64_t base = line * s.n * s.inner + column, end = smaller((chunk + 1) * s.chunk, s.n);
    A sum = join.none();
    for (int64_t c = 0; y && c < chunk; c++) sum = join(sum, totals[i - (chunk - c) * s.inner]);
    for (int64_t p = chunk * s.chunk; p < end; p++) {
      const int64_t at = base + place_of(s, p) * s.inner;
      A next = join(sum, (A)get(x[at]));
      if (y) y[at] = narrow<T>(s.exclusive ? sum : next);
      sum = next;
    }
    if (!y) totals[i] = sum;
  }
}

template <class T> int scan(const tfc_cuda_scan &s, const void *xv, void *yv, void *scratch, void *stream) {
  typedef typename wide<T>::A A;
  const T *x = (const T *)xv;
  T *y = (T *)yv;
  A *totals = (A *)scratch;
  int failed = 0;
  if (s.inner > 1 && s.chunks == 1)
    return launch(columns_kernel<T>, blocks_for(s.outer * s.inner), THREADS, stream, s, x, y);
  if (s.inner > 1) {
    const unsigned blocks = blocks_for(s.outer * s.chunks * s.inner);
    failed = launch(chunks_kernel<T>, blocks, THREADS, stream, s, totals, x, (T *)NULL);
    return failed ? failed : launch(chunks_kernel<T>, blocks, THREADS, stream, s, totals, x, y);
  }
  int lanes = s.chunks > 1 || s.n > 32 * ITEMS ? (int)THREADS : s.n > 8 * ITEMS ? 32 : 8;
  if (s.in_order) lanes = s.outer < 1024 ? (int)THREADS : 32;
  if (s.chunks > 1)
    failed = launch_shared(line_totals_kernel<T>, blocks_for(s.outer * s.chunks, 1), THREADS, stream, s, x, totals);
  if (failed) return failed;
  return launch_shared(lines_kernel<T>, blocks_for(s.outer * s.chunks, THREADS / lanes), THREADS, stream, s, lanes,
                       (const A *)totals, x, y);
}

} // namespace
} // namespace tfc

TFC_CUDA_API void tfc_cuda_scan_split(int type, tfc_cuda_scan *s) {
  using namespace tfc;
  const bool narrow = type == OPS_DT_f16 || type == OPS_DT_b16;
  // Makes enough chunks to fill the largest GPU of today, each of at least `least` elements.
  const int64_t pieces = s->inner > 1 ? 131072 / (s->outer * s->inner) : 528 / s->outer;
  const int64_t least = s->inner > 1 ? 64 : 4 * TILE;
  int64_t most = 256; // the most chunks: each thread adds up the chunks before its own, so there are no more chunks
                      // than elements in a chunk
  while (s->inner > 1 && most * most < s->n) most *= 2;
  s->in_order = narrow || (s->product && (type == OPS_DT_f32 || type == OPS_DT_f64));
  int64_t chunks = s->in_order ? 1 : smaller(s->inner > 1 ? smaller(pieces, most) : pieces, s->n / least);
  s->chunk = chunks > 1 ? (s->n + chunks - 1) / chunks : s->n;
  if (chunks > 1 && s->inner == 1) s->chunk = (s->chunk + TILE - 1) / TILE * TILE;
  s->chunks = (s->n + s->chunk - 1) / s->chunk;
}

TFC_CUDA_API int tfc_cuda_run_scan(int type, const tfc_cuda_scan *s, const void *x, void *y, void *scratch,
                                   void *stream) {
  using namespace tfc;
  switch (type) {
#define SCAN_CASE(t, ...)                                                                                              \
  case OPS_DT_##t: return scan<t>(*s, x, y, scratch, stream);
    TFC_CUDA_REALS(SCAN_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
