// What depends on the order of elements. The largest k are found one after the other, each by a reduction over the row
// for what comes behind the last one found: k is small where models use it (beams, top-5), the lower index comes first
// among equals as in the reference kernel, and the result does not depend on how threads share the row. NaN come last;
// which of them the reference kernel returns among others follows from the way it searches a row, and is not copied.
// Running sums go along their line in one thread, in the reference's order: a parallel scan would round otherwise, and
// the lines of a tensor are enough to fill a device.
#include "runtime/device/cuda/kernels/order.h"

#include "runtime/device/cuda/kernels/group.cuh"

namespace tfc {
namespace {

template <class C> struct ranked {
  C value;
  int64_t at; // -1: nothing
};
// Does `a` come before `b`?
template <class C> TFC_HD bool before(ranked<C> a, ranked<C> b) {
  bool a_none = a.value != a.value, b_none = b.value != b.value; // NaN
  if (a_none != b_none) return b_none;
  if (!a_none && a.value != b.value) return a.value > b.value;
  return a.at < b.at;
}
template <class C> struct earlier {
  TFC_HD ranked<C> operator()(ranked<C> a, ranked<C> b) const {
    return a.at < 0 ? b : b.at < 0 || before(a, b) ? a : b;
  }
};

// A block per row finds one after the other: the first of those that come behind the last one found.
template <class T, class I>
__global__ void top_kernel(int64_t rows, int64_t n, int64_t k, const T *x, T *values, I *indices) {
  typedef typename number<T>::C C;
  __shared__ ranked<C> shared[THREADS];
  group g = {(int)threadIdx.x, (int)THREADS, 1};
  earlier<C> join;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *from = x + row * n;
    ranked<C> last = {C(), -1};
    for (int64_t found = 0; found < k; found++) {
      ranked<C> best = {C(), -1};
      for (int64_t i = g.lane; i < n; i += THREADS) {
        ranked<C> next = {get(from[i]), i};
        if (last.at < 0 || before(last, next)) best = join(best, next);
      }
      last = join_group(best, shared, g, join);
      if (!g.lane) {
        values[row * k + found] = from[last.at];
        indices[row * k + found] = (I)last.at;
      }
    }
  }
}
template <class T>
int top(int index_type, int64_t rows, int64_t n, int64_t k, const void *x, void *values, void *indices, void *stream) {
  unsigned blocks = blocks_for(rows, 1);
  if (index_type == TFC_CUDA_i32)
    return launch_shared(top_kernel<T, i32>, blocks, THREADS, stream, rows, n, k, (const T *)x, (T *)values,
                         (i32 *)indices);
  if (index_type == TFC_CUDA_i64)
    return launch_shared(top_kernel<T, i64>, blocks, THREADS, stream, rows, n, k, (const T *)x, (T *)values,
                         (i64 *)indices);
  return TFC_CUDA_INVALID_VALUE;
}

// A thread per line, from one end to the other.
template <class T>
__global__ void scan_kernel(bool product, bool exclusive, bool reverse, int64_t outer, int64_t n, int64_t inner,
                            const T *x, T *y) {
  typedef typename number<T>::U U;
  typedef typename number<T>::C C;
  for (int64_t i = first(); i < outer * inner; i += stride()) {
    int64_t column, base = divide(i, inner, &column) * n * inner + column;
    T sum = put<T>(product ? 1 : 0);
    for (int64_t k = 0; k < n; k++) {
      int64_t at = base + (reverse ? n - 1 - k : k) * inner;
      const U a = (U)get(sum), b = (U)get(x[at]);
      T next = put<T>((C)(product ? a * b : a + b));
      y[at] = exclusive ? sum : next;
      sum = next;
    }
  }
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_top_k(int type, int index_type, int64_t rows, int64_t n, int64_t k, const void *x,
                                void *values, void *indices, void *stream) {
  using namespace tfc;
  switch (type) {
#define TOP_CASE(t, ...)                                                                                               \
  case TFC_CUDA_##t: return top<t>(index_type, rows, n, k, x, values, indices, stream);
    TFC_CUDA_REALS(TOP_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_scan(int type, bool product, bool exclusive, bool reverse, int64_t outer, int64_t n,
                               int64_t inner, const void *x, void *y, void *stream) {
  using namespace tfc;
  switch (type) {
#define SCAN_CASE(t, ...)                                                                                              \
  case TFC_CUDA_##t:                                                                                                   \
    return launch(scan_kernel<t>, blocks_for(outer * inner), THREADS, stream, product, exclusive, reverse, outer, n,   \
                  inner, (const t *)x, (t *)y);
    TFC_CUDA_REALS(SCAN_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
