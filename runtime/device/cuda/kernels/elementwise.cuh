// Templates of kernels for element-wise ops. An op is a struct with a static function `of`.
//
//   BINARY(Add, (U)a + (U)b)   // struct Add: an expression in a and b; C and U are the types in which it is computed
//   TFC_CUDA_BINARY_ARITHMETIC(DEFINE_BINARY)   // launchers of the ops in elementwise.h's list, for all their types
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_ELEMENTWISE_CUH
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_ELEMENTWISE_CUH

#include "runtime/device/cuda/kernels/device.cuh"
#include "runtime/device/cuda/kernels/elementwise.h"

namespace tfc {

template <class Op, class T, class R, int V>
__device__ __forceinline__ void unary_groups(const tfc_cuda_broadcast &p, const T *x, R *y, Op op) {
  for (int64_t g = first(); g < p.groups; g += stride()) {
    pack<R, V> out;
    pack<T, V> in = ((const pack<T, V> *)x)[g];
    for (int i = 0; i < V; i++) out.v[i] = op.of(in.v[i]);
    ((pack<R, V> *)y)[g] = out;
  }
}
template <class Op, class T, class R> __global__ void unary_kernel(tfc_cuda_broadcast p, const T *x, R *y, Op op) {
  const int V = 16 / sizeof(T);
  if (p.vector == V)
    unary_groups<Op, T, R, V>(p, x, y, op);
  else
    unary_groups<Op, T, R, 1>(p, x, y, op);
}
template <class Op, class T, class R>
int unary(const tfc_cuda_broadcast *p, const void *x, void *y, void *stream, Op op = Op()) {
  return launch(unary_kernel<Op, T, R>, blocks_for(p->groups), THREADS, stream, *p, (const T *)x, (R *)y, op);
}

template <class Op, class T, class R, int V>
__device__ __forceinline__ void binary_groups(const tfc_cuda_broadcast &p, const T *a, const T *b, R *y, Op op) {
  for (int64_t g = first(); g < p.groups; g += stride()) {
    int64_t offset[2];
    place<2>(p, g, offset);
    pack<T, V> left, right;
    pack<R, V> out;
    if (p.step[0])
      left = *(const pack<T, V> *)(a + offset[0]);
    else
      for (int i = 0; i < V; i++) left.v[i] = a[offset[0]];
    if (p.step[1])
      right = *(const pack<T, V> *)(b + offset[1]);
    else
      for (int i = 0; i < V; i++) right.v[i] = b[offset[1]];
    for (int i = 0; i < V; i++) out.v[i] = op.of(left.v[i], right.v[i]);
    ((pack<R, V> *)y)[g] = out;
  }
}
template <class Op, class T, class R>
__global__ void binary_kernel(tfc_cuda_broadcast p, const T *a, const T *b, R *y, Op op) {
  const int V = 16 / sizeof(T);
  if (p.vector == V)
    binary_groups<Op, T, R, V>(p, a, b, y, op);
  else
    binary_groups<Op, T, R, 1>(p, a, b, y, op);
}
template <class Op, class T, class R>
int binary(const tfc_cuda_broadcast *p, const void *a, const void *b, void *y, void *stream, Op op = Op()) {
  return launch(binary_kernel<Op, T, R>, blocks_for(p->groups), THREADS, stream, *p, (const T *)a, (const T *)b, (R *)y,
                op);
}

#define UNARY_RESULT(name, R, ...)                                                                                     \
  template <class T> struct name {                                                                                     \
    typedef typename number<T>::C C;                                                                                   \
    typedef typename number<T>::U U;                                                                                   \
    TFC_HD R of(T stored) const {                                                                                      \
      const C x = get(stored);                                                                                         \
      return put<R>(__VA_ARGS__);                                                                                      \
    }                                                                                                                  \
  };
#define UNARY(name, ...) UNARY_RESULT(name, T, __VA_ARGS__)
#define BINARY_RESULT(name, R, ...)                                                                                    \
  template <class T> struct name {                                                                                     \
    typedef typename number<T>::C C;                                                                                   \
    typedef typename number<T>::U U;                                                                                   \
    TFC_HD R of(T first, T second) const {                                                                             \
      const C a = get(first), b = get(second);                                                                         \
      return put<R>(__VA_ARGS__);                                                                                      \
    }                                                                                                                  \
  };
#define BINARY(name, ...) BINARY_RESULT(name, T, __VA_ARGS__)

#define UNARY_CASE(t, name, R)                                                                                         \
  case OPS_DT_##t:                                                                                                     \
    return unary<name<t>, t, R>(plan, x, y, stream);
#define UNARY_SAME_CASE(t, name, ...) UNARY_CASE(t, name, t)
#define UNARY_BOOL_CASE(t, name, ...) UNARY_CASE(t, name, bool)
#define DEFINE_UNARY_AS(name, LIST, CASE)                                                                              \
  TFC_CUDA_API int tfc_cuda_unary_##name(int type, const tfc_cuda_broadcast *plan, const void *x, void *y,             \
                                         void *stream) {                                                               \
    switch (type) {                                                                                                    \
      LIST(CASE, name)                                                                                                 \
    default: return TFC_CUDA_INVALID_VALUE;                                                                            \
    }                                                                                                                  \
  }
#define DEFINE_UNARY(name, LIST) DEFINE_UNARY_AS(name, LIST, UNARY_SAME_CASE)
#define DEFINE_PREDICATE(name, LIST) DEFINE_UNARY_AS(name, LIST, UNARY_BOOL_CASE)

#define BINARY_CASE(t, name, R)                                                                                        \
  case OPS_DT_##t:                                                                                                     \
    return binary<name<t>, t, R>(plan, a, b, y, stream);
#define BINARY_SAME_CASE(t, name, ...) BINARY_CASE(t, name, t)
#define BINARY_BOOL_CASE(t, name, ...) BINARY_CASE(t, name, bool)
#define DEFINE_BINARY_AS(name, LIST, CASE)                                                                             \
  TFC_CUDA_API int tfc_cuda_binary_##name(int type, const tfc_cuda_broadcast *plan, const void *a, const void *b,      \
                                          void *y, void *stream) {                                                     \
    switch (type) {                                                                                                    \
      LIST(CASE, name)                                                                                                 \
    default: return TFC_CUDA_INVALID_VALUE;                                                                            \
    }                                                                                                                  \
  }
#define DEFINE_BINARY(name, LIST) DEFINE_BINARY_AS(name, LIST, BINARY_SAME_CASE)
#define DEFINE_COMPARISON(name, LIST) DEFINE_BINARY_AS(name, LIST, BINARY_BOOL_CASE)

} // namespace tfc

#endif
