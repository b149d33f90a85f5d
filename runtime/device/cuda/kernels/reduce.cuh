// Templates of reduction kernels; the files reduce_*.cu instantiate them for each kind of reduction and type.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_REDUCE_CUH
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_REDUCE_CUH

#include "runtime/device/cuda/kernels/group.cuh"
#include "runtime/device/cuda/kernels/reduce.h"

namespace tfc {

// The type of partial results: float for the 16-bit floats, 64 bits for integers. (A mean needs 64 bits, because the
// sum may not fit into the integers' own type; a sum is the same if it is cut to that type at the end.)
template <class T> struct partial { typedef T A; };
template <> struct partial<f16> { typedef float A; };
template <> struct partial<b16> { typedef float A; };
template <> struct partial<i32> { typedef int64_t A; };

template <class T> struct limits;
#define TFC_LIMITS(t, low, high)                                                                                       \
  template <> struct limits<t> {                                                                                       \
    static TFC_HD typename partial<t>::A least() { return low; }                                                       \
    static TFC_HD typename partial<t>::A greatest() { return high; }                                                   \
  };
TFC_LIMITS(f32, -INFINITY, INFINITY)
TFC_LIMITS(f64, -(double)INFINITY, (double)INFINITY)
TFC_LIMITS(f16, -INFINITY, INFINITY)
TFC_LIMITS(b16, -INFINITY, INFINITY)
TFC_LIMITS(i32, INT32_MIN, INT32_MAX)
TFC_LIMITS(i64, INT64_MIN, INT64_MAX)
#undef TFC_LIMITS

// A reduction has three functions: none() is the partial result of no elements, first(x) that of one element, and
// operator() joins two partial results.
template <class T> struct sum_of {
  typedef typename partial<T>::A A;
  static TFC_HD A none() { return 0; }
  static TFC_HD A first(T x) { return (A)get(x); }
  TFC_HD A operator()(A a, A b) const { return a + b; }
};
template <> TFC_HD i64 sum_of<i64>::operator()(i64 a, i64 b) const {
  return (i64)((u64)a + (u64)b);
}
template <> TFC_HD i64 sum_of<i32>::operator()(i64 a, i64 b) const {
  return (i64)((u64)a + (u64)b);
}
template <class T> struct squares_of : sum_of<T> {
  typedef typename partial<T>::A A;
  static TFC_HD A first(T x) { return (A)get(x) * (A)get(x); }
};
template <class T> struct product_of {
  typedef typename partial<T>::A A;
  static TFC_HD A none() { return 1; }
  static TFC_HD A first(T x) { return (A)get(x); }
  TFC_HD A operator()(A a, A b) const { return a * b; }
};
template <> TFC_HD i64 product_of<i64>::operator()(i64 a, i64 b) const {
  return (i64)((u64)a * (u64)b);
}
template <> TFC_HD i64 product_of<i32>::operator()(i64 a, i64 b) const {
  return (i64)((u64)a * (u64)b);
}
// If an element is NaN, the result is NaN.
template <class T> struct largest_of {
  typedef typename partial<T>::A A;
  static TFC_HD A none() { return limits<T>::least(); }
  static TFC_HD A first(T x) { return (A)get(x); }
  TFC_HD A operator()(A a, A b) const { return a < b || b != b ? b : a; }
};
template <class T> struct smallest_of {
  typedef typename partial<T>::A A;
  static TFC_HD A none() { return limits<T>::greatest(); }
  static TFC_HD A first(T x) { return (A)get(x); }
  TFC_HD A operator()(A a, A b) const { return b < a || b != b ? b : a; }
};
template <class T> struct all_of {
  typedef bool A;
  static TFC_HD A none() { return true; }
  static TFC_HD A first(bool x) { return x; }
  TFC_HD A operator()(A a, A b) const { return a && b; }
};
template <class T> struct any_of {
  typedef bool A;
  static TFC_HD A none() { return false; }
  static TFC_HD A first(bool x) { return x; }
  TFC_HD A operator()(A a, A b) const { return a || b; }
};

template <class A> TFC_HD A finished(A a, int how, int64_t count) {
  if (how == TFC_CUDA_FINISH_DIVIDE) return a / (A)count;
  if (how == TFC_CUDA_FINISH_ROOT) return sqrt(a);
  if (how == TFC_CUDA_FINISH_HALF) return a * (A)0.5;
  return a;
}
TFC_HD int64_t finished(int64_t a, int how, int64_t count) {
  return how == TFC_CUDA_FINISH_DIVIDE ? count ? a / count : 0 : a;
}
TFC_HD bool finished(bool a, int, int64_t) {
  return a;
}

TFC_HD int64_t offset_of(int64_t index, int rank, const int64_t *dims, const int64_t *strides) {
  int64_t offset = 0;
  for (int d = rank - 1; d > 0; d--) {
    int64_t at;
    index = divide(index, dims[d], &at);
    offset += at * strides[d];
  }
  return offset + index * strides[0];
}

// Returns the group that a thread belongs to. *output: the index of the group's output among the outputs of the block.
TFC_HD group group_of(int thread, int lanes, bool along, int *output) {
  int width = (int)THREADS / lanes; // outputs that a block makes at once
  group g;
  g.lanes = lanes;
  g.lane = along ? thread % lanes : thread / width;
  g.step = along ? 1 : width;
  *output = along ? thread / lanes : thread % width;
  return g;
}

// Reduces the elements of one output and piece that one lane handles. In contiguous memory a lane takes V neighbouring
// elements at a time, also if their address is not aligned for one access: so the order of a sum does not depend on
// addresses.
template <class Op, class T>
TFC_HD typename Op::A take(const tfc_cuda_reduction &r, const T *x, int64_t output, int64_t piece, int lane) {
  const int V = 16 / sizeof(T);
  Op join;
  typename Op::A a = Op::none();
  const T *from = x + offset_of(output, r.kept_rank, r.kept_dims, r.kept_strides);
  const int64_t end = smaller((piece + 1) * r.piece, r.count);
  int64_t i = piece * r.piece + lane;
  if (r.along && r.reduced_rank == 1 && r.reduced_strides[0] == 1) {
    i = piece * r.piece + lane * V;
    if ((uintptr_t)from % 16 == 0)
      for (; i + V <= end; i += r.lanes * V) {
        const pack<T, V> next = *(const pack<T, V> *)(from + i);
        for (int k = 0; k < V; k++) a = join(a, Op::first(next.v[k]));
      }
    for (; i < end; i += r.lanes * V)
      for (int64_t k = i; k < smaller(i + V, end); k++) a = join(a, Op::first(from[k]));
  } else if (r.reduced_rank == 1) {
    for (; i < end; i += r.lanes) a = join(a, Op::first(from[i * r.reduced_strides[0]]));
  } else {
    for (; i < end; i += r.lanes)
      a = join(a, Op::first(from[offset_of(i, r.reduced_rank, r.reduced_dims, r.reduced_strides)]));
  }
  return a;
}

// Writes partial [pieces, outputs] if there are several pieces, otherwise y [outputs].
template <class Op, class T>
__global__ void reduce_kernel(tfc_cuda_reduction r, const T *x, typename Op::A *partial, T *y) {
  __shared__ typename Op::A shared[THREADS];
  int local;
  group g = group_of((int)threadIdx.x, r.lanes, r.along, &local);
  int64_t width = THREADS / r.lanes, blocks = (r.outputs + width - 1) / width;
  for (int64_t b = blockIdx.x; b < blocks * r.pieces; b += gridDim.x) {
    int64_t output = b % blocks * width + local, piece = b / blocks;
    bool mine = output < r.outputs;
    typename Op::A a = Op::none();
    if (mine) a = take<Op, T>(r, x, output, piece, g.lane);
    a = join_group(a, shared, g, Op());
    if (!mine || g.lane) continue;
    if (r.pieces > 1)
      partial[piece * r.outputs + output] = a;
    else
      y[output] = put<T>(finished(a, r.finish, r.count));
  }
}

// Returns how many threads combine the pieces of one output.
TFC_HD int join_lanes(int64_t pieces) {
  int lanes = 1;
  while (lanes < (int)THREADS && lanes * 4 < pieces) lanes *= 2;
  return lanes;
}
inline unsigned join_blocks(int64_t outputs, int64_t pieces) {
  return blocks_for(outputs, THREADS / join_lanes(pieces));
}
// For each output of partial [pieces, outputs], combines its pieces and calls made(output, joined) on one thread.
template <class A, class J, class F>
__device__ __forceinline__ void join_pieces(int64_t outputs, int64_t pieces, const A *partial, A none, A *shared,
                                            J join, F made) {
  int local, lanes = join_lanes(pieces);
  group g = group_of((int)threadIdx.x, lanes, false, &local);
  int64_t width = THREADS / lanes;
  for (int64_t b = blockIdx.x; b < (outputs + width - 1) / width; b += gridDim.x) {
    int64_t output = b * width + local;
    A a = none;
    for (int64_t p = g.lane; output < outputs && p < pieces; p += lanes) a = join(a, partial[p * outputs + output]);
    a = join_group(a, shared, g, join);
    if (output < outputs && !g.lane) made(output, a);
  }
}

// For join_pieces: writes the combined result of an output to y [outputs].
template <class Op, class T> struct put_joined {
  tfc_cuda_reduction r;
  T *y;
  TFC_HD void operator()(int64_t output, typename Op::A a) const { y[output] = put<T>(finished(a, r.finish, r.count)); }
};
template <class Op, class T> __global__ void join_kernel(tfc_cuda_reduction r, const typename Op::A *partial, T *y) {
  __shared__ typename Op::A shared[THREADS];
  put_joined<Op, T> made = {r, y};
  join_pieces(r.outputs, r.pieces, partial, Op::none(), shared, Op(), made);
}

template <class Op, class T>
int reduce(const tfc_cuda_reduction *r, const void *x, void *y, void *scratch, void *stream) {
  typedef typename Op::A A;
  int64_t width = THREADS / r->lanes, blocks = (r->outputs + width - 1) / width * r->pieces;
  int failed = launch_shared(reduce_kernel<Op, T>, blocks_for(blocks, 1), THREADS, stream, *r, (const T *)x,
                             (A *)scratch, (T *)y);
  if (failed || r->pieces <= 1) return failed;
  return launch_shared(join_kernel<Op, T>, join_blocks(r->outputs, r->pieces), THREADS, stream, *r, (const A *)scratch,
                       (T *)y);
}

} // namespace tfc

#endif
