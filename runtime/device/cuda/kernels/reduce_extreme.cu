// Largest and smallest values, all and any of booleans, and places of the extremes.
#include "runtime/device/cuda/kernels/reduce.cuh"

namespace tfc {

int reduce_extreme(int kind, int type, const tfc_cuda_reduction *r, const void *x, void *y, void *scratch,
                   void *stream);
int reduce_extreme(int kind, int type, const tfc_cuda_reduction *r, const void *x, void *y, void *scratch,
                   void *stream) {
#define CASE(t, Op)                                                                                                    \
  case TFC_CUDA_##t: return reduce<Op<t>, t>(r, x, y, scratch, stream);
  switch (kind) {
  case TFC_CUDA_REDUCE_MAX:
    switch (type) {
      TFC_CUDA_REALS(CASE, largest_of)
    default: return TFC_CUDA_INVALID_VALUE;
    }
  case TFC_CUDA_REDUCE_MIN:
    switch (type) {
      TFC_CUDA_REALS(CASE, smallest_of)
    default: return TFC_CUDA_INVALID_VALUE;
    }
  case TFC_CUDA_REDUCE_ALL:
    return type == TFC_CUDA_b8 ? reduce<all_of<bool>, bool>(r, x, y, scratch, stream) : (int)TFC_CUDA_INVALID_VALUE;
  case TFC_CUDA_REDUCE_ANY:
    return type == TFC_CUDA_b8 ? reduce<any_of<bool>, bool>(r, x, y, scratch, stream) : (int)TFC_CUDA_INVALID_VALUE;
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

namespace {

template <class C> struct placed {
  C value;
  int64_t at; // -1: nothing yet
};
template <class C> struct better { // NaN loses
  bool least;
  TFC_HD placed<C> operator()(placed<C> a, placed<C> b) const {
    if (a.at < 0) return b;
    if (b.at < 0) return a;
    const bool a_none = a.value != a.value, b_none = b.value != b.value;
    if (a_none != b_none) return a_none ? b : a;
    if (a_none || a.value == b.value) return a.at < b.at ? a : b;
    return (least ? b.value < a.value : b.value > a.value) ? b : a;
  }
};

template <class T, class I>
__global__ void arg_kernel(bool least, int64_t outer, int64_t n, int64_t inner, int lanes, const T *x, I *y) {
  typedef typename number<T>::C C;
  __shared__ placed<C> shared[THREADS];
  better<C> join = {least};
  int local;
  group g = group_of((int)threadIdx.x, lanes, inner == 1, &local);
  int64_t width = THREADS / lanes, outputs = outer * inner;
  for (int64_t b = blockIdx.x; b < (outputs + width - 1) / width; b += gridDim.x) {
    int64_t output = b * width + local, column;
    placed<C> best = {C(), -1};
    if (output < outputs) {
      int64_t row = divide(output, inner, &column);
      const T *from = x + row * n * inner + column;
      for (int64_t i = g.lane; i < n; i += lanes) {
        placed<C> next = {get(from[i * inner]), i};
        best = join(best, next);
      }
    }
    best = join_group(best, shared, g, join);
    if (output < outputs && !g.lane) y[output] = (I)best.at;
  }
}
template <class T>
int arg(int out_type, bool least, int64_t outer, int64_t n, int64_t inner, const void *x, void *y, void *stream) {
  int lanes = 8;
  while (inner == 1 && lanes < THREADS && lanes * 4 < n) lanes *= 2;
  int64_t width = THREADS / lanes;
  unsigned blocks = blocks_for((outer * inner + width - 1) / width, 1);
  if (out_type == TFC_CUDA_i64)
    return launch_shared(arg_kernel<T, i64>, blocks, THREADS, stream, least, outer, n, inner, lanes, (const T *)x,
                         (i64 *)y);
  if (out_type == TFC_CUDA_i32)
    return launch_shared(arg_kernel<T, i32>, blocks, THREADS, stream, least, outer, n, inner, lanes, (const T *)x,
                         (i32 *)y);
  return TFC_CUDA_INVALID_VALUE;
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_arg(int type, int out_type, bool least, int64_t outer, int64_t n, int64_t inner,
                              const void *x, void *y, void *stream) {
  using namespace tfc;
  switch (type) {
#define ARG_CASE(t, ...)                                                                                               \
  case TFC_CUDA_##t: return arg<t>(out_type, least, outer, n, inner, x, y, stream);
    TFC_CUDA_REALS(ARG_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
