// Rows by index: positions sorted by row, scatters, gathers, one-hot rows.
#include "runtime/device/cuda/kernels/reduce.cuh"
#include "runtime/device/cuda/kernels/runs.cuh"
#include "runtime/device/cuda/kernels/sort.h"

namespace tfc {
namespace {

// --- Runs --------------------------------------------------------------------------------------------------------
template <class I>
__global__ void number_kernel(const I *indices, int64_t n, int64_t rows, uint32_t *row, int32_t *position) {
  for (int64_t i = first(); i < n; i += stride()) {
    const int64_t own = (int64_t)indices[i];
    row[i] = (uint32_t)(own >= 0 && own < rows ? own : rows);
    position[i] = (int32_t)i;
  }
}
int bits_of(int64_t rows) { // enough bits for the number `rows` itself, which marks an index out of range
  int bits = 1;
  while (rows >> bits) bits++;
  return bits;
}

// --- Scatter -----------------------------------------------------------------------------------------------------
template <class T> TFC_HD T divided(T a, T b) {
  return b == 0 ? (T)0 : b == (T)-1 ? (T)(0 - (typename number<T>::U)a) : (T)(a / b);
}
TFC_HD float divided(float a, float b) {
  return a / b;
}
TFC_HD double divided(double a, double b) {
  return a / b;
}
template <class T> TFC_HD T combined(int how, T to, T from) {
  typedef typename number<T>::C C;
  typedef typename number<T>::U U;
  const C a = get(to), b = get(from);
  switch (how) {
  case TFC_CUDA_COMBINE_ADD: return put<T>((C)((U)a + (U)b));
  case TFC_CUDA_COMBINE_SUB: return put<T>((C)((U)a - (U)b));
  case TFC_CUDA_COMBINE_MUL: return put<T>((C)((U)a * (U)b));
  case TFC_CUDA_COMBINE_DIV: return put<T>(divided(a, b));
  case TFC_CUDA_COMBINE_MIN: return put<T>(a < b ? a : b);
  case TFC_CUDA_COMBINE_MAX: return put<T>(a > b ? a : b);
  default: return from;
  }
}
template <class T> struct combine {
  int how;
  T value;
  TFC_HD void operator()(T update) { value = combined(how, value, update); }
};
template <class T> __global__ void scatter_kernel(int how, tfc_cuda_scatter s) {
  for (int64_t i = first(); i < s.runs.positions * s.width; i += stride()) {
    int64_t column, at = divide(i, s.width, &column);
    if (!begins_run(s.runs, at)) continue;
    T *place = (T *)s.var + s.runs.row[at] * s.width + column;
    combine<T> join = {how, *place};
    each_of_run(s.runs, at, (const T *)s.updates, s.scalar ? 0 : s.width, s.scalar ? 0 : column, join);
    *place = join.value;
  }
}
template <class T> int scatter(int how, const tfc_cuda_scatter *s, void *stream) {
  return launch(scatter_kernel<T>, blocks_for(s->runs.positions * s->width), THREADS, stream, how, *s);
}
template <class T> __global__ void value_kernel(T value, T *y, int64_t n) {
  for (int64_t i = first(); i < n; i += stride()) y[i] = value;
}
// The smallest and greatest values of a type; for floats, finite ones.
template <class T> struct extreme {
  static T of(bool least) { return put<T>(least ? limits<T>::least() : limits<T>::greatest()); }
};
template <> struct extreme<f32> {
  static f32 of(bool least) { return least ? -3.402823466e+38f : 3.402823466e+38f; }
};
template <> struct extreme<f64> {
  static f64 of(bool least) { return least ? -1.7976931348623157e+308 : 1.7976931348623157e+308; }
};
template <> struct extreme<f16> {
  static f16 of(bool least) { return put<f16>(least ? -65504.0f : 65504.0f); }
};
template <> struct extreme<b16> {
  static b16 of(bool least) { return put<b16>(least ? -3.3895314e+38f : 3.3895314e+38f); }
};
template <class T> int identity(int how, void *y, int64_t n, void *stream) {
  T value = how == TFC_CUDA_COMBINE_MUL   ? put<T>(1)
            : how == TFC_CUDA_COMBINE_MIN ? extreme<T>::of(false)
            : how == TFC_CUDA_COMBINE_MAX ? extreme<T>::of(true)
                                          : put<T>(0);
  return launch(value_kernel<T>, blocks_for(n), THREADS, stream, value, (T *)y, n);
}

template <class I> __global__ void flatten_kernel(tfc_cuda_tuples t, const I *indices, int64_t *flat) {
  for (int64_t i = first(); i < t.positions; i += stride()) {
    int64_t at = 0;
    bool good = true;
    // The number of iterations is constant, so that the compiler reads t.dims from the parameters, without a copy.
    for (int k = 0; k < TFC_CUDA_RANK; k++) {
      if (k >= t.depth) break;
      int64_t index = (int64_t)indices[i * t.depth + k];
      good = good && index >= 0 && index < t.dims[k];
      at = good ? at * t.dims[k] + index : 0;
    }
    flat[i] = good ? at : -1;
  }
}

// --- Gather ------------------------------------------------------------------------------------------------------
template <class T, class I> __global__ void gather_kernel(tfc_cuda_gather g, const T *x, const I *indices, T *y) {
  int64_t total = g.batch * g.outer * g.count * g.inner;
  for (int64_t i = first(); i < total; i += stride()) {
    int64_t column, at, unused, position = divide(i, g.inner, &column), row = divide(position, g.count, &at);
    int64_t index = (int64_t)indices[divide(row, g.outer, &unused) * g.count + at];
    bool good = index >= 0 && index < g.axis;
    y[i] = good ? x[(row * g.axis + index) * g.inner + column] : T();
  }
}
struct alignas(16) sixteen {
  uint64_t halves[2];
};
template <class T>
int gather(int index_type, const tfc_cuda_gather &g, const void *x, const void *indices, void *y, void *stream) {
  unsigned blocks = blocks_for(g.batch * g.outer * g.count * g.inner);
  if (index_type == OPS_DT_i32)
    return launch(gather_kernel<T, i32>, blocks, THREADS, stream, g, (const T *)x, (const i32 *)indices, (T *)y);
  return launch(gather_kernel<T, i64>, blocks, THREADS, stream, g, (const T *)x, (const i64 *)indices, (T *)y);
}

template <class T, class I>
__global__ void one_hot_kernel(int64_t outer, int64_t depth, int64_t inner, const I *indices, const T *on, const T *off,
                               T *y) {
  const T yes = *on, no = *off;
  for (int64_t i = first(); i < outer * depth * inner; i += stride()) {
    int64_t column, level, row = divide(divide(i, inner, &column), depth, &level);
    y[i] = (int64_t)indices[row * inner + column] == level ? yes : no;
  }
}
template <class T>
int one_hot(int index_type, int64_t outer, int64_t depth, int64_t inner, const void *indices, const void *on,
            const void *off, void *y, void *stream) {
  unsigned blocks = blocks_for(outer * depth * inner);
  switch (index_type) {
#define ONE_HOT(t)                                                                                                     \
  case OPS_DT_##t:                                                                                                     \
    return launch(one_hot_kernel<T, t>, blocks, THREADS, stream, outer, depth, inner, (const t *)indices,              \
                  (const T *)on, (const T *)off, (T *)y);
    ONE_HOT(i32)
    ONE_HOT(i64)
    ONE_HOT(u8)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_runs_bytes(int64_t positions, size_t *out) {
  return tfc_cuda_pairs_bytes((int32_t)positions, out);
}
TFC_CUDA_API int tfc_cuda_make_runs(int index_type, const void *indices, int64_t positions, int64_t rows, void *memory,
                                    tfc_cuda_runs *out, void *stream) {
  using namespace tfc;
  tfc_cuda_pairs p;
  int failed = tfc_cuda_pairs_in((int32_t)positions, memory, &p);
  if (failed) return failed;
  if (index_type == OPS_DT_i32)
    failed = launch(number_kernel<i32>, blocks_for(positions), THREADS, stream, (const i32 *)indices, positions, rows,
                    p.keys[0], p.values[0]);
  else
    failed = launch(number_kernel<i64>, blocks_for(positions), THREADS, stream, (const i64 *)indices, positions, rows,
                    p.keys[0], p.values[0]);
  if (!failed) failed = tfc_cuda_sort_pairs(&p, bits_of(rows), stream);
  if (failed) return failed;
  tfc_cuda_runs made = {positions, p.keys[p.current], p.values[p.current], (uint32_t)rows};
  *out = made;
  return 0;
}

TFC_CUDA_API int tfc_cuda_scatter_rows(int how, int type, const tfc_cuda_scatter *s, void *stream) {
  using namespace tfc;
  switch (type) {
#define SCATTER_CASE(t, ...)                                                                                           \
  case OPS_DT_##t: return scatter<t>(how, s, stream);
    TFC_CUDA_REALS(SCATTER_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_combine_identity(int how, int type, void *y, int64_t n, void *stream) {
  using namespace tfc;
  switch (type) {
#define IDENTITY_CASE(t, ...)                                                                                          \
  case OPS_DT_##t: return identity<t>(how, y, n, stream);
    TFC_CUDA_REALS(IDENTITY_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_flatten(int index_type, const tfc_cuda_tuples *t, const void *indices, int64_t *flat,
                                  void *stream) {
  using namespace tfc;
  if (index_type == OPS_DT_i32)
    return launch(flatten_kernel<i32>, blocks_for(t->positions), THREADS, stream, *t, (const i32 *)indices, flat);
  return launch(flatten_kernel<i64>, blocks_for(t->positions), THREADS, stream, *t, (const i64 *)indices, flat);
}

TFC_CUDA_API int tfc_cuda_gather_rows(int index_type, const tfc_cuda_gather *given, const void *x, const void *indices,
                                      void *y, void *stream) {
  using namespace tfc;
  tfc_cuda_gather g = *given;
  while (g.size < 16 && g.inner % 2 == 0 && (uintptr_t)x % (uintptr_t)(2 * g.size) == 0 &&
         (uintptr_t)y % (uintptr_t)(2 * g.size) == 0) {
    g.size *= 2;
    g.inner /= 2;
  }
  switch (g.size) {
  case 1: return gather<uint8_t>(index_type, g, x, indices, y, stream);
  case 2: return gather<uint16_t>(index_type, g, x, indices, y, stream);
  case 4: return gather<uint32_t>(index_type, g, x, indices, y, stream);
  case 8: return gather<uint64_t>(index_type, g, x, indices, y, stream);
  case 16: return gather<sixteen>(index_type, g, x, indices, y, stream);
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_one_hot(int size, int index_type, int64_t outer, int64_t depth, int64_t inner,
                                  const void *indices, const void *on, const void *off, void *y, void *stream) {
  using namespace tfc;
  switch (size) {
  case 1: return one_hot<uint8_t>(index_type, outer, depth, inner, indices, on, off, y, stream);
  case 2: return one_hot<uint16_t>(index_type, outer, depth, inner, indices, on, off, y, stream);
  case 4: return one_hot<uint32_t>(index_type, outer, depth, inner, indices, on, off, y, stream);
  case 8: return one_hot<uint64_t>(index_type, outer, depth, inner, indices, on, off, y, stream);
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
