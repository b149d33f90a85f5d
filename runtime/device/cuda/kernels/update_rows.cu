// Rows by index: chains of equal indices, scatters, gathers, one-hot rows.
#include "runtime/device/cuda/kernels/reduce.cuh"
#include "runtime/device/cuda/kernels/update.h"

namespace tfc {
namespace {

// --- Chains ------------------------------------------------------------------------------------------------------
template <class I> __global__ void link_kernel(const I *indices, int64_t n, int64_t rows, int32_t *row, int32_t *next) {
  for (int64_t i = first(); i < n; i += stride()) {
    const I own = indices[i];
    int64_t after = -1;
    bool later = false, good = own >= 0 && (int64_t)own < rows;
    for (int64_t k = i + 1; good && k < n && after < 0; k++)
      if (indices[k] == own) after = k;
    for (int64_t k = i - 1; good && k >= 0 && !later; k--) later = indices[k] == own;
    row[i] = good ? (int32_t)own : -1;
    next[i] = (int32_t)(after - (later ? TFC_CUDA_LATER : 0));
  }
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
template <class T> __global__ void scatter_kernel(int how, tfc_cuda_scatter s) {
  T *var = (T *)s.var;
  const T *updates = (const T *)s.updates;
  for (int64_t i = first(); i < s.positions * s.width; i += stride()) {
    int64_t column, at = divide(i, s.width, &column), row = s.row[at];
    if (s.next[at] < -1 || row < 0) continue; // not the first of its chain
    T value = var[row * s.width + column];
    while (at >= 0) {
      value = combined(how, value, updates[s.scalar ? 0 : at * s.width + column]);
      int32_t next = s.next[at];
      at = next < -1 ? next + TFC_CUDA_LATER : next;
    }
    var[row * s.width + column] = value;
  }
}
template <class T> int scatter(int how, const tfc_cuda_scatter *s, void *stream) {
  return launch(scatter_kernel<T>, blocks_for(s->positions * s->width), THREADS, stream, how, *s);
}
template <class T> __global__ void value_kernel(T value, T *y, int64_t n) {
  for (int64_t i = first(); i < n; i += stride()) y[i] = value;
}
// The least and greatest values that there are: floats' are finite here.
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
    for (int k = 0; k < t.depth; k++) {
      int64_t index = (int64_t)indices[i * t.depth + k];
      good = good && index >= 0 && index < t.dims[k];
      at = at * t.dims[k] + index;
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
  if (index_type == TFC_CUDA_i32)
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
  case TFC_CUDA_##t:                                                                                                   \
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

TFC_CUDA_API int tfc_cuda_link(int index_type, const void *indices, int64_t n, int64_t rows, int32_t *row,
                               int32_t *next, void *stream) {
  using namespace tfc;
  if (index_type == TFC_CUDA_i32)
    return launch(link_kernel<i32>, blocks_for(n), THREADS, stream, (const i32 *)indices, n, rows, row, next);
  return launch(link_kernel<i64>, blocks_for(n), THREADS, stream, (const i64 *)indices, n, rows, row, next);
}

TFC_CUDA_API int tfc_cuda_scatter_rows(int how, int type, const tfc_cuda_scatter *s, void *stream) {
  using namespace tfc;
  switch (type) {
#define SCATTER_CASE(t, ...)                                                                                           \
  case TFC_CUDA_##t: return scatter<t>(how, s, stream);
    TFC_CUDA_REALS(SCATTER_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_combine_identity(int how, int type, void *y, int64_t n, void *stream) {
  using namespace tfc;
  switch (type) {
#define IDENTITY_CASE(t, ...)                                                                                          \
  case TFC_CUDA_##t: return identity<t>(how, y, n, stream);
    TFC_CUDA_REALS(IDENTITY_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_flatten(int index_type, const tfc_cuda_tuples *t, const void *indices, int64_t *flat,
                                  void *stream) {
  using namespace tfc;
  if (index_type == TFC_CUDA_i32)
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
