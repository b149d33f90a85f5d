// Kernels that copy, convert or add elements one by one, but are not in the list of element-wise ops: Cast, Select,
// AddN, Fill.
#include "runtime/device/cuda/kernels/elementwise.cuh"

namespace tfc {
namespace {

// --- Cast -----------------------------------------------------------------------------------------------------------
// A float that is out of the integer's range becomes the same as in the host's kernels: the smallest integer of 32 or
// 64 bits, cut to the type's width.
TFC_HD int32_t to_i32(double x) {
  return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}
TFC_HD int64_t to_i64(double x) {
  return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}
TFC_HD uint64_t to_u64(double x) {
  return x < 9223372036854775808.0 ? (uint64_t)to_i64(x) : (uint64_t)to_i64(x - 9223372036854775808.0) ^ (1ull << 63);
}
template <class T> struct from_real {
  static TFC_HD T of(double x) { return (T)to_i32(x); }
};
#define FROM_REAL(t, ...)                                                                                              \
  template <> struct from_real<t> {                                                                                    \
    static TFC_HD t of(double x) { return __VA_ARGS__; }                                                               \
  };
FROM_REAL(i64, to_i64(x))
FROM_REAL(u32, (u32)to_i64(x))
FROM_REAL(u64, to_u64(x))

template <class C, class T, bool to_float, bool from_float> struct converter { // from integer to integer
  static TFC_HD T of(C x) { return (T)x; }
};
template <class C, bool from_float> struct converter<C, bool, false, from_float> {
  static TFC_HD bool of(C x) { return x != 0; }
};
template <class C, class T, bool from_float> struct converter<C, T, true, from_float> {
  static TFC_HD T of(C x) { return put<T>(x); }
};
template <class C, class T> struct converter<C, T, false, true> {
  static TFC_HD T of(C x) { return from_real<T>::of((double)x); }
};
template <class C> struct converter<C, bool, false, true> {
  static TFC_HD bool of(C x) { return x != 0; }
};

TFC_HD float cut(float x, uint32_t mask) {
  union {
    float f;
    uint32_t u;
  } v = {x};
  v.u &= mask;
  return v.f;
}
TFC_HD double cut(double x, uint64_t mask) {
  union {
    double f;
    uint64_t u;
  } v = {x};
  v.u &= mask;
  return v.f;
}
template <class S> TFC_HD S cut_for(S x, uint64_t) {
  return x;
}
TFC_HD float cut_for(float x, uint64_t mask) {
  return cut(x, (uint32_t)mask);
}
TFC_HD double cut_for(double x, uint64_t mask) {
  return cut(x, mask);
}
// One kernel per source type handles all destination types: its speed depends on memory accesses and not on the branch.
template <class S, int V> TFC_HD void cast_to(int to, const pack<S, V> &in, void *y, int64_t g) {
  typedef typename number<S>::C C;
  switch (to) {
#define CAST_CASE(t, ...)                                                                                              \
  case OPS_DT_##t: {                                                                                                   \
    pack<t, V> out;                                                                                                    \
    for (int i = 0; i < V; i++) out.v[i] = converter<C, t, is_float<t>::value, is_float<S>::value>::of(get(in.v[i]));  \
    ((pack<t, V> *)y)[g] = out;                                                                                        \
    break;                                                                                                             \
  }
    TFC_CUDA_ALL(CAST_CASE, ~)
  default: break;
  }
}
template <class S, int V>
__device__ __forceinline__ void cast_groups(int to, uint64_t mask, const S *x, void *y, int64_t groups) {
  for (int64_t g = first(); g < groups; g += stride()) {
    pack<S, V> in = ((const pack<S, V> *)x)[g];
    for (int i = 0; i < V; i++) in.v[i] = cut_for(in.v[i], mask);
    cast_to<S, V>(to, in, y, g);
  }
}
const int CASTS = 4; // elements that a thread converts at once
template <class S> __global__ void cast_kernel(int to, uint64_t mask, const S *x, void *y, int64_t n, bool wide) {
  if (wide)
    cast_groups<S, CASTS>(to, mask, x, y, n / CASTS);
  else
    cast_groups<S, 1>(to, mask, x, y, n);
}
template <class S> int cast(int to, int to_size, uint64_t mask, const void *x, void *y, int64_t n, void *stream) {
  const bool wide =
      n % CASTS == 0 && (uintptr_t)x % (CASTS * sizeof(S)) == 0 && (uintptr_t)y % (uintptr_t)(CASTS * to_size) == 0;
  return launch(cast_kernel<S>, blocks_for(wide ? n / CASTS : n), THREADS, stream, to, mask, (const S *)x, y, n, wide);
}
int size_of(int type) {
  switch (type) {
#define SIZE_CASE(t, ...)                                                                                              \
  case OPS_DT_##t: return (int)sizeof(t);
    TFC_CUDA_ALL(SIZE_CASE, ~)
  default: return 1;
  }
}

int mantissa(int type) {
  return type == OPS_DT_f64 ? 52 : type == OPS_DT_f32 ? 23 : type == OPS_DT_f16 ? 10 : type == OPS_DT_b16 ? 7 : 0;
}

// --- Select ------------------------------------------------------------------------------------------------------
template <class T> __global__ void select_kernel(tfc_cuda_broadcast p, const bool *c, const T *t, const T *e, T *y) {
  for (int64_t g = first(); g < p.groups; g += stride()) {
    int64_t offset[3];
    place<3>(p, g, offset);
    y[g] = c[offset[0]] ? t[offset[1]] : e[offset[2]];
  }
}
template <class T>
int select(const tfc_cuda_broadcast *p, const void *c, const void *t, const void *e, void *y, void *stream) {
  return launch(select_kernel<T>, blocks_for(p->groups), THREADS, stream, *p, (const bool *)c, (const T *)t,
                (const T *)e, (T *)y);
}

// --- AddN --------------------------------------------------------------------------------------------------------
struct addends {
  const void *x[TFC_CUDA_ADDENDS];
};
template <class T, int V> __device__ __forceinline__ void add_groups(addends a, int count, T *y, int64_t n, bool more) {
  typedef typename number<T>::U U;
  typedef typename number<T>::C C;
  for (int64_t g = first(); g < n / V; g += stride()) {
    pack<T, V> sum = more ? ((pack<T, V> *)y)[g] : ((const pack<T, V> *)a.x[0])[g];
    for (int k = more ? 0 : 1; k < count; k++) {
      pack<T, V> next = ((const pack<T, V> *)a.x[k])[g];
      for (int i = 0; i < V; i++) sum.v[i] = put<T>((C)((U)get(sum.v[i]) + (U)get(next.v[i])));
    }
    ((pack<T, V> *)y)[g] = sum;
  }
}
template <class T> __global__ void add_kernel(addends a, int count, T *y, int64_t n, bool more, bool wide) {
  if (wide)
    add_groups<T, 16 / sizeof(T)>(a, count, y, n, more);
  else
    add_groups<T, 1>(a, count, y, n, more);
}
template <class T> int add(const void *const *x, int count, void *y, int64_t n, bool more, void *stream) {
  const int64_t V = 16 / sizeof(T);
  addends a = {};
  bool wide = n % V == 0 && (uintptr_t)y % 16 == 0;
  for (int k = 0; k < count; k++) {
    a.x[k] = x[k];
    wide = wide && (uintptr_t)x[k] % 16 == 0;
  }
  return launch(add_kernel<T>, blocks_for(wide ? n / V : n), THREADS, stream, a, count, (T *)y, n, more, wide);
}

// --- Fill --------------------------------------------------------------------------------------------------------
template <class T> __global__ void fill_kernel(const T *value, T *y, int64_t n) {
  const T v = *value;
  for (int64_t i = first(); i < n; i += stride()) y[i] = v;
}
template <class T> int fill(const void *value, void *y, int64_t n, void *stream) {
  return launch(fill_kernel<T>, blocks_for(n), THREADS, stream, (const T *)value, (T *)y, n);
}
template <class T> __global__ void ones_kernel(T *y, int64_t n) {
  for (int64_t i = first(); i < n; i += stride()) y[i] = put<T>(1);
}

struct sixteen {
  uint64_t halves[2];
};

} // namespace

TFC_CUDA_API int tfc_cuda_cast(int from, int to, bool truncate, const void *x, void *y, int64_t n, void *stream) {
  int drop = mantissa(from) - mantissa(to);
  uint64_t mask = truncate && mantissa(to) && drop > 0 ? UINT64_MAX << drop : UINT64_MAX;
  switch (from) {
#define CAST_FROM(s, ...)                                                                                              \
  case OPS_DT_##s: return cast<s>(to, size_of(to), mask, x, y, n, stream);
    TFC_CUDA_ALL(CAST_FROM, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_select(int size, const tfc_cuda_broadcast *plan, const void *c, const void *t, const void *e,
                                 void *y, void *stream) {
  switch (size) {
  case 1: return select<uint8_t>(plan, c, t, e, y, stream);
  case 2: return select<uint16_t>(plan, c, t, e, y, stream);
  case 4: return select<uint32_t>(plan, c, t, e, y, stream);
  case 8: return select<uint64_t>(plan, c, t, e, y, stream);
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_add_n(int type, const void *const *x, int count, void *y, int64_t n, bool more,
                                void *stream) {
  switch (type) {
#define ADD_CASE(t, ...)                                                                                               \
  case OPS_DT_##t: return add<t>(x, count, y, n, more, stream);
    TFC_CUDA_REALS(ADD_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_fill(int size, const void *value, void *y, int64_t n, void *stream) {
  switch (size) {
  case 1: return fill<uint8_t>(value, y, n, stream);
  case 2: return fill<uint16_t>(value, y, n, stream);
  case 4: return fill<uint32_t>(value, y, n, stream);
  case 8: return fill<uint64_t>(value, y, n, stream);
  case 16: return fill<sixteen>(value, y, n, stream);
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_ones(int type, void *y, int64_t n, void *stream) {
  switch (type) {
#define ONES_CASE(t, ...)                                                                                              \
  case OPS_DT_##t: return launch(ones_kernel<t>, blocks_for(n), THREADS, stream, (t *)y, n);
    TFC_CUDA_ALL(ONES_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

} // namespace tfc
