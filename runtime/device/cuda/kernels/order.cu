// The largest k of a row are found one after the other, each by a reduction over the row for what comes behind the last
// one found: k is small where models use it (beams, top-5), the lower index comes first among equals as in the
// reference kernel, and the result does not depend on how threads share the row. A row with NaN in it is left to one
// thread, which searches it as the reference kernel does: which of them come out follows from the way of searching.
#include "runtime/device/cuda/kernels/order.h"

#include "runtime/device/cuda/kernels/group.cuh"

namespace tfc {
namespace {

template <class C> struct ranked {
  C value;
  int64_t at; // -1: nothing
};
// Does `a` come before `b`? Neither is NaN.
template <class C> TFC_HD bool before(ranked<C> a, ranked<C> b) {
  return a.value != b.value ? a.value > b.value : a.at < b.at;
}
template <class C> struct earlier {
  TFC_HD ranked<C> operator()(ranked<C> a, ranked<C> b) const {
    return a.at < 0 ? b : b.at < 0 || before(a, b) ? a : b;
  }
};
struct either {
  TFC_HD bool operator()(bool a, bool b) const { return a || b; }
};

// One thread, one row.
template <class T> struct searcher {
  struct row_view {
    const T *x;
  };
#define TOP_FN static __device__
#define TOP_ROW row_view
#define TOP_ABOVE(r, a, b) (get((r)->x[b]) < get((r)->x[a]))
#define TOP_SAME(r, a, b) (get((r)->x[a]) == get((r)->x[b]))
#define TOP_NEXT(r, i, n, than) next((r)->x, i, n, than)
  static __device__ int32_t next(const T *x, int32_t from, int32_t n, int32_t than) {
    while (from < n && !(get(x[than]) < get(x[from]))) from++;
    return from;
  }
#include "runtime/ops/math_top_search.h"
  static __device__ int32_t best(const T *x, int32_t n) {
    TOP_BEST(x, n, get, (int32_t)(sizeof(T) == 8 ? 4 : 8));
  }
  static __device__ void search(const T *x, int32_t n, int32_t k, bool sorted, int32_t *found, top_span *spans) {
    const row_view row = {x};
    if (k == 1)
      found[0] = best(x, n);
    else if (k == n)
      top_sort_row(&row, found, n, spans);
    else
      top_best_of_row(&row, found, k, n, sorted);
  }
};

struct top_of {
  int64_t rows, n, k;
  bool sorted;
  int32_t *found; // [blocks, k + 1], for rows with NaN
};
// A block per row finds one after the other: the first of those that come behind the last one found.
template <class T, class I> __global__ void top_kernel(top_of t, const T *x, T *values, I *indices) {
  typedef typename number<T>::C C;
  __shared__ ranked<C> shared[THREADS];
  __shared__ bool shared_odd[THREADS];
  __shared__ typename searcher<T>::top_span spans[searcher<T>::TOP_SPANS];
  group g = {(int)threadIdx.x, (int)THREADS, 1};
  earlier<C> join;
  for (int64_t row = blockIdx.x; row < t.rows; row += gridDim.x) {
    const T *from = x + row * t.n;
    T *value = values + row * t.k;
    I *index = indices + row * t.k;
    ranked<C> last = {C(), -1};
    for (int64_t found = 0; found < t.k; found++) {
      ranked<C> best = {C(), -1};
      bool odd = false;
      for (int64_t i = g.lane; i < t.n; i += THREADS) {
        ranked<C> next = {get(from[i]), i};
        odd = odd || next.value != next.value;
        if (last.at < 0 || before(last, next)) best = join(best, next);
      }
      if (is_float<T>::value && !found && join_group(odd, shared_odd, g, either())) {
        int32_t *list = t.found + blockIdx.x * (t.k + 1);
        if (!g.lane) searcher<T>::search(from, (int32_t)t.n, (int32_t)t.k, t.sorted, list, spans);
        __syncthreads();
        for (int64_t i = g.lane; i < t.k; i += THREADS) {
          value[i] = from[list[i]];
          index[i] = (I)list[i];
        }
        __syncthreads();
        break;
      }
      last = join_group(best, shared, g, join);
      if (!g.lane) {
        value[found] = from[last.at];
        index[found] = (I)last.at;
      }
    }
  }
}
template <class T> int top(int index_type, const top_of &t, const void *x, void *values, void *indices, void *stream) {
  unsigned blocks = blocks_for(t.rows, 1);
  if (index_type == TFC_CUDA_i32)
    return launch_shared(top_kernel<T, i32>, blocks, THREADS, stream, t, (const T *)x, (T *)values, (i32 *)indices);
  if (index_type == TFC_CUDA_i64)
    return launch_shared(top_kernel<T, i64>, blocks, THREADS, stream, t, (const T *)x, (T *)values, (i64 *)indices);
  return TFC_CUDA_INVALID_VALUE;
}

} // namespace
} // namespace tfc

TFC_CUDA_API size_t tfc_cuda_top_k_scratch(int type, int64_t rows, int64_t k) {
  bool odd = 1u << type & TFC_CUDA_BITS(TFC_CUDA_FLOATS);
  return odd ? (size_t)tfc::blocks_for(rows, 1) * (size_t)(k + 1) * sizeof(int32_t) : 0;
}
TFC_CUDA_API int tfc_cuda_top_k(int type, int index_type, int64_t rows, int64_t n, int64_t k, bool sorted,
                                const void *x, void *values, void *indices, void *scratch, void *stream) {
  using namespace tfc;
  const top_of t = {rows, n, k, sorted, (int32_t *)scratch};
  switch (type) {
#define TOP_CASE(t_, ...)                                                                                              \
  case TFC_CUDA_##t_: return top<t_>(index_type, t, x, values, indices, stream);
    TFC_CUDA_REALS(TOP_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
