// If k is small, as it usually is in models (beams, top-5), the largest elements of a row are found one after another,
// each by a reduction over the elements that come after the last one found. For a large k (tf.sort needs all elements),
// all rows are sorted at once: by value, 32 bits at a time, then by row, which keeps the order of values. In both cases
// the lower index comes first among equals, as in the reference kernel, and the result does not depend on how threads
// share the work. A row with NaN is searched by one thread in the reference kernel's way, because the result for NaN
// depends on the way of searching.
#include "runtime/device/cuda/kernels/order.h"

#include "runtime/device/cuda/kernels/group.cuh"
#include "runtime/device/cuda/kernels/memory.h"
#include "runtime/device/cuda/kernels/sort.h"

namespace tfc {
namespace {

template <class C> struct ranked {
  C value;
  int64_t at; // its position in the row; -1: no element
};
// Whether `a` comes before `b`. Neither is NaN.
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

// The reference kernel's search, compiled for the device: one thread searches one row.
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
  bool sorted, wide; // wide: indices are int64
  void *indices;
  int32_t *found; // [blocks, k + 1], for rows with NaN
  bool *odd;      // [rows], used if all rows are sorted: whether the row contains a NaN
};
TFC_HD void put_index(const top_of &t, int64_t i, int64_t at) {
  if (t.wide)
    ((int64_t *)t.indices)[i] = at;
  else
    ((int32_t *)t.indices)[i] = (int32_t)at;
}
template <class T> using span_of = typename searcher<T>::top_span;
// Searches a row with NaN. All threads of the block call it; the first one searches.
template <class T>
__device__ __forceinline__ void search_row(const top_of &t, int64_t row, const T *x, T *values, span_of<T> *spans) {
  int32_t *list = t.found + blockIdx.x * (t.k + 1);
  const T *from = x + row * t.n;
  if (!threadIdx.x) searcher<T>::search(from, (int32_t)t.n, (int32_t)t.k, t.sorted, list, spans);
  __syncthreads();
  for (int64_t i = threadIdx.x; i < t.k; i += THREADS) {
    values[row * t.k + i] = from[list[i]];
    put_index(t, row * t.k + i, list[i]);
  }
  __syncthreads();
}

// Finds the k elements of a row, one after the other: each is the first in order among those that come after the last
// one found. One block handles one row.
template <class T> __global__ void top_kernel(top_of t, const T *x, T *values) {
  typedef typename number<T>::C C;
  __shared__ ranked<C> shared[THREADS];
  __shared__ bool shared_odd[THREADS];
  __shared__ span_of<T> spans[searcher<T>::TOP_SPANS];
  group g = {(int)threadIdx.x, (int)THREADS, 1};
  earlier<C> join;
  for (int64_t row = blockIdx.x; row < t.rows; row += gridDim.x) {
    const T *from = x + row * t.n;
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
        search_row(t, row, x, values, spans);
        break;
      }
      last = join_group(best, shared, g, join);
      if (!g.lane) {
        values[row * t.k + found] = from[last.at];
        put_index(t, row * t.k + found, last.at);
      }
    }
  }
}

// --- For a large k: all rows are sorted ----------------------------------------------------------------------------
// Converts a value to an unsigned number that is smaller for larger values. (Where a NaN is sorted to does not matter,
// because its row is searched afterwards.)
TFC_HD uint64_t descending(float v) {
  union {
    float f;
    uint32_t u;
  } bits = {v == 0 ? 0.0f : v};
  return bits.u >> 31 ? bits.u : ~bits.u & 0x7fffffffu;
}
TFC_HD uint64_t descending(double v) {
  union {
    double f;
    uint64_t u;
  } bits = {v == 0 ? 0.0 : v};
  return bits.u >> 63 ? bits.u : ~bits.u & ~(1ull << 63);
}
TFC_HD uint64_t descending(int32_t v) {
  return ~(uint32_t)v ^ 0x80000000u;
}
TFC_HD uint64_t descending(int64_t v) {
  return ~(uint64_t)v ^ 1ull << 63;
}
// Sets a flag that several threads may set at once.
TFC_HD void set_flag(bool *flag) {
#ifdef __CUDACC__
  *(volatile bool *)flag = true;
#else
  __atomic_store_n(flag, true, __ATOMIC_RELAXED);
#endif
}
// Writes the keys of one sorting pass, for the pairs in the order of the passes before: a 32-bit word of the value, or
// the row.
enum key_word { LOW_WORD, HIGH_WORD, ROW };
template <class T> __global__ void key_kernel(top_of t, key_word word, bool begin, const T *x, tfc_cuda_pairs p) {
  uint32_t *keys = p.keys[p.current];
  int32_t *values = p.values[p.current];
  for (int64_t i = first(); i < p.count; i += stride()) {
    if (begin) values[i] = (int32_t)i;
    int64_t at = begin ? i : values[i], unused;
    if (word == ROW) {
      keys[i] = (uint32_t)divide(at, t.n, &unused);
      continue;
    }
    const typename number<T>::C v = get(x[at]);
    keys[i] = (uint32_t)(descending(v) >> 32 * (int)word);
    if (begin && v != v) set_flag(&t.odd[divide(at, t.n, &unused)]);
  }
}
template <class T> __global__ void pick_kernel(top_of t, const int32_t *order, const T *x, T *values) {
  for (int64_t i = first(); i < t.rows * t.k; i += stride()) {
    int64_t place, row = divide(i, t.k, &place), at = order[row * t.n + place];
    values[i] = x[at];
    put_index(t, i, at - row * t.n);
  }
}
template <class T> __global__ void odd_kernel(top_of t, const T *x, T *values) {
  __shared__ span_of<T> spans[searcher<T>::TOP_SPANS];
  for (int64_t row = blockIdx.x; row < t.rows; row += gridDim.x)
    if (t.odd[row]) search_row(t, row, x, values, spans);
}
template <class T> int top_sorted(const top_of &t, const T *x, T *values, void *memory, void *stream) {
  const unsigned blocks = blocks_for(t.rows * t.n);
  tfc_cuda_pairs p;
  int failed = tfc_cuda_pairs_in((int32_t)(t.rows * t.n), memory, &p);
  if (!failed && is_float<T>::value) failed = tfc_cuda_clear_bytes(t.odd, (size_t)t.rows, stream);
  if (!failed) failed = launch(key_kernel<T>, blocks, THREADS, stream, t, LOW_WORD, true, x, p);
  if (!failed) failed = tfc_cuda_sort_pairs(&p, 32, stream);
  if (!failed && sizeof(T) == 8) {
    failed = launch(key_kernel<T>, blocks, THREADS, stream, t, HIGH_WORD, false, x, p);
    if (!failed) failed = tfc_cuda_sort_pairs(&p, 32, stream);
  }
  if (!failed && t.rows > 1) {
    int bits = 1;
    while ((t.rows - 1) >> bits) bits++;
    failed = launch(key_kernel<T>, blocks, THREADS, stream, t, ROW, false, x, p);
    if (!failed) failed = tfc_cuda_sort_pairs(&p, bits, stream);
  }
  if (!failed)
    failed = launch(pick_kernel<T>, blocks_for(t.rows * t.k), THREADS, stream, t, (const int32_t *)p.values[p.current],
                    x, values);
  if (failed || !is_float<T>::value) return failed;
  return launch_shared(odd_kernel<T>, blocks_for(t.rows, 1), THREADS, stream, t, x, values);
}

// For a larger k, sorting takes less time than going over the row once for each element.
const int64_t MANY = 64;
bool is_sorted(int64_t rows, int64_t n, int64_t k) {
  return k > MANY && n <= INT32_MAX / rows;
}
// Returns the bytes of scratch for `odd` and `found` (struct top_of), which are stored before the pairs.
size_t odd_bytes(int type, int64_t rows) {
  return 1u << type & OPS_BITS(OPS_FLOATS) ? ((size_t)rows + 255) / 256 * 256 : 0;
}
size_t found_bytes(int type, int64_t rows, int64_t k) {
  if (!(1u << type & OPS_BITS(OPS_FLOATS))) return 0;
  return ((size_t)blocks_for(rows, 1) * (size_t)(k + 1) * sizeof(int32_t) + 255) / 256 * 256;
}
template <class T> int top(const top_of &t, const void *x, void *values, void *memory, void *stream) {
  if (is_sorted(t.rows, t.n, t.k)) return top_sorted(t, (const T *)x, (T *)values, memory, stream);
  return launch_shared(top_kernel<T>, blocks_for(t.rows, 1), THREADS, stream, t, (const T *)x, (T *)values);
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_top_k_scratch(int type, int64_t rows, int64_t n, int64_t k, size_t *out) {
  using namespace tfc;
  size_t bytes = 0;
  int failed = is_sorted(rows, n, k) ? tfc_cuda_pairs_bytes((int32_t)(rows * n), &bytes) : 0;
  *out = bytes + odd_bytes(type, rows) + found_bytes(type, rows, k);
  return failed;
}
TFC_CUDA_API int tfc_cuda_top_k(int type, int index_type, int64_t rows, int64_t n, int64_t k, bool sorted,
                                const void *x, void *values, void *indices, void *scratch, void *stream) {
  using namespace tfc;
  char *odd = (char *)scratch, *found = odd + odd_bytes(type, rows), *memory = found + found_bytes(type, rows, k);
  const top_of t = {rows, n, k, sorted, index_type == OPS_DT_i64, indices, (int32_t *)found, (bool *)odd};
  switch (type) {
#define TOP_CASE(t_, ...)                                                                                              \
  case OPS_DT_##t_: return top<t_>(t, x, values, memory, stream);
    TFC_CUDA_REALS(TOP_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
