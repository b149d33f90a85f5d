// Max, Min, All, Any, ArgMax and ArgMin.
#include "runtime/device/cuda/kernels/reduce.cuh"

namespace tfc {

int reduce_extreme(int kind, int type, const tfc_cuda_reduction *r, const void *x, void *y, void *scratch,
                   void *stream);
int reduce_extreme(int kind, int type, const tfc_cuda_reduction *r, const void *x, void *y, void *scratch,
                   void *stream) {
#define CASE(t, Op)                                                                                                    \
  case OPS_DT_##t: return reduce<Op<t>, t>(r, x, y, scratch, stream);
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
    return type == OPS_DT_b8 ? reduce<all_of<bool>, bool>(r, x, y, scratch, stream) : (int)TFC_CUDA_INVALID_VALUE;
  case TFC_CUDA_REDUCE_ANY:
    return type == OPS_DT_b8 ? reduce<any_of<bool>, bool>(r, x, y, scratch, stream) : (int)TFC_CUDA_INVALID_VALUE;
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

namespace {

template <class C> struct placed {
  C value;
  int64_t at; // its index; -1: no element yet
};
template <class C> struct better { // Every number is better than NaN.
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

tfc_cuda_reduction plan_of(int64_t outer, int64_t n, int64_t inner) {
  tfc_cuda_reduction r = {};
  r.outputs = outer * inner;
  r.count = n;
  r.along = inner == 1;
  tfc_cuda_reduction_split(&r);
  return r;
}
// Writes partial [pieces, outputs] if there are several pieces, otherwise y [outputs].
template <class T, class I>
__global__ void arg_kernel(tfc_cuda_reduction r, bool least, int64_t inner, const T *x,
                           placed<typename number<T>::C> *partial, I *y) {
  typedef typename number<T>::C C;
  __shared__ placed<C> shared[THREADS];
  better<C> join = {least};
  int local;
  group g = group_of((int)threadIdx.x, r.lanes, r.along, &local);
  int64_t width = THREADS / r.lanes, blocks = (r.outputs + width - 1) / width;
  for (int64_t b = blockIdx.x; b < blocks * r.pieces; b += gridDim.x) {
    int64_t output = b % blocks * width + local, piece = b / blocks, column;
    placed<C> best = {C(), -1};
    if (output < r.outputs) {
      int64_t row = divide(output, inner, &column), end = smaller((piece + 1) * r.piece, r.count);
      const T *from = x + row * r.count * inner + column;
      for (int64_t i = piece * r.piece + g.lane; i < end; i += r.lanes) {
        placed<C> next = {get(from[i * inner]), i};
        best = join(best, next);
      }
    }
    best = join_group(best, shared, g, join);
    if (output >= r.outputs || g.lane) continue;
    if (r.pieces > 1)
      partial[piece * r.outputs + output] = best;
    else
      y[output] = (I)best.at;
  }
}
template <class C, class I> struct put_place {
  I *y;
  TFC_HD void operator()(int64_t output, placed<C> best) const { y[output] = (I)best.at; }
};
template <class C, class I>
__global__ void join_places(int64_t outputs, int64_t pieces, bool least, const placed<C> *partial, I *y) {
  __shared__ placed<C> shared[THREADS];
  const placed<C> none = {C(), -1};
  const better<C> join = {least};
  const put_place<C, I> made = {y};
  join_pieces(outputs, pieces, partial, none, shared, join, made);
}
template <class T, class I>
int arg_as(const tfc_cuda_reduction &r, bool least, int64_t inner, const void *x, I *y, void *scratch, void *stream) {
  typedef placed<typename number<T>::C> P;
  int64_t width = THREADS / r.lanes, blocks = (r.outputs + width - 1) / width * r.pieces;
  int failed = launch_shared(arg_kernel<T, I>, blocks_for(blocks, 1), THREADS, stream, r, least, inner, (const T *)x,
                             (P *)scratch, y);
  if (failed || r.pieces <= 1) return failed;
  return launch_shared(join_places<typename number<T>::C, I>, join_blocks(r.outputs, r.pieces), THREADS, stream,
                       r.outputs, r.pieces, least, (const P *)scratch, y);
}
template <class T>
int arg(int out_type, bool least, int64_t outer, int64_t n, int64_t inner, const void *x, void *y, void *scratch,
        void *stream) {
  const tfc_cuda_reduction r = plan_of(outer, n, inner);
  if (out_type == OPS_DT_i64) return arg_as<T>(r, least, inner, x, (i64 *)y, scratch, stream);
  if (out_type == OPS_DT_i32) return arg_as<T>(r, least, inner, x, (i32 *)y, scratch, stream);
  return TFC_CUDA_INVALID_VALUE;
}

} // namespace
} // namespace tfc

TFC_CUDA_API size_t tfc_cuda_arg_scratch(int64_t outer, int64_t n, int64_t inner) {
  using namespace tfc;
  const tfc_cuda_reduction r = plan_of(outer, n, inner);
  return r.pieces > 1 ? (size_t)(r.pieces * r.outputs) * sizeof(placed<double>) : 0;
}
TFC_CUDA_API int tfc_cuda_arg(int type, int out_type, bool least, int64_t outer, int64_t n, int64_t inner,
                              const void *x, void *y, void *scratch, void *stream) {
  using namespace tfc;
  switch (type) {
#define ARG_CASE(t, ...)                                                                                               \
  case OPS_DT_##t: return arg<t>(out_type, least, outer, n, inner, x, y, scratch, stream);
    TFC_CUDA_REALS(ARG_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
