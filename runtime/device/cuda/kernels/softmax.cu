// Softmax and its cross entropies. A group of threads handles a row; it first subtracts the largest logit, so that no
// exponential overflows. For 16-bit floats and float32, sums are float32, combined pairwise.
#include "runtime/device/cuda/kernels/group.cuh"
#include "runtime/device/cuda/kernels/reduce.h"

namespace tfc {
namespace {

template <class C> struct most { // if a value is NaN, the result is NaN
  TFC_HD C operator()(C a, C b) const { return a < b || b != b ? b : a; }
};

// Returns the number of threads for a row. If there are few long rows, each row gets as many as a block can have,
// because so few blocks do not fill a GPU.
const int64_t MOST = 1024;
int lanes_for(int64_t rows, int64_t n) {
  return n <= 32 ? 8 : n <= 1024 ? 32 : n < 8192 || rows > 528 ? (int)THREADS : (int)MOST;
}

// One row: the largest of its logits and Σ e^(x - largest).
template <class T, class C> struct row_of { C largest, sum; };
template <class T>
__device__ __forceinline__ row_of<T, typename number<T>::C> measure(const T *x, int64_t n, int64_t step, bool mine,
                                                                    group g, typename number<T>::C *shared) {
  typedef typename number<T>::C C;
  row_of<T, C> r;
  C largest = -(C)INFINITY, sum = 0;
  if (mine)
    for (int64_t i = g.lane; i < n; i += g.lanes) largest = most<C>()(largest, get(x[i * step]));
  r.largest = join_group(largest, shared, g, most<C>());
  if (mine)
    for (int64_t i = g.lane; i < n; i += g.lanes) sum += exp(get(x[i * step]) - r.largest);
  r.sum = join_group(sum, shared, g, plus<C>());
  return r;
}

template <class T, int64_t BLOCK>
__global__ void __launch_bounds__(BLOCK)
    softmax_kernel(bool log_too, int64_t rows, int64_t n, int lanes, const T *x, T *y) {
  typedef typename number<T>::C C;
  __shared__ C shared[BLOCK];
  int width = (int)BLOCK / lanes, local = (int)threadIdx.x / lanes;
  group g = {(int)threadIdx.x % lanes, lanes, 1};
  for (int64_t b = blockIdx.x; b < (rows + width - 1) / width; b += gridDim.x) {
    int64_t row = b * width + local;
    bool mine = row < rows;
    const T *from = x + (mine ? row * n : 0);
    row_of<T, C> r = measure<T>(from, n, 1, mine, g, shared);
    T *to = y + (mine ? row * n : 0);
    C scale = (C)1 / r.sum, log_sum = log(r.sum);
    if (mine)
      for (int64_t i = g.lane; i < n; i += lanes) {
        C v = get(from[i]) - r.largest;
        to[i] = put<T>(log_too ? v - log_sum : exp(v) * scale);
      }
  }
}
template <class T> int softmax(bool log_too, int64_t rows, int64_t n, const void *xv, void *yv, void *stream) {
  const int lanes = lanes_for(rows, n);
  const T *x = (const T *)xv;
  T *y = (T *)yv;
  if (lanes > THREADS)
    return launch_shared<MOST>(softmax_kernel<T, MOST>, blocks_for(rows, 1), MOST, stream, log_too, rows, n, lanes, x,
                               y);
  return launch_shared(softmax_kernel<T, THREADS>, blocks_for(rows, THREADS / lanes), THREADS, stream, log_too, rows, n,
                       lanes, x, y);
}

template <class T, class I, int64_t BLOCK>
__global__ void __launch_bounds__(BLOCK)
    sparse_kernel(int64_t rows, int64_t n, int lanes, const T *logits, const I *labels, T *loss, T *back) {
  typedef typename number<T>::C C;
  __shared__ C shared[BLOCK];
  int width = (int)BLOCK / lanes, local = (int)threadIdx.x / lanes;
  group g = {(int)threadIdx.x % lanes, lanes, 1};
  for (int64_t b = blockIdx.x; b < (rows + width - 1) / width; b += gridDim.x) {
    int64_t row = b * width + local;
    bool mine = row < rows;
    const T *x = logits + (mine ? row * n : 0);
    T *to = back + (mine ? row * n : 0);
    int64_t label = mine ? (int64_t)labels[row] : 0;
    bool known = label >= 0 && label < n;
    // It is read before the row is written, because logits and backprop may share memory.
    C own = mine && known ? get(x[label]) : (C)NAN;
    row_of<T, C> r = measure<T>(x, n, 1, mine, g, shared);
    C scale = known ? (C)1 / r.sum : (C)NAN;
    if (!mine) continue;
    for (int64_t i = g.lane; i < n; i += lanes) to[i] = put<T>(exp(get(x[i]) - r.largest) * scale - (C)(i == label));
    if (!g.lane) loss[row] = put<T>(log(r.sum) - (own - r.largest));
  }
}
template <class T, class I>
int sparse(int64_t rows, int64_t n, const void *logits, const void *labels, void *loss, void *back, void *stream) {
  const int lanes = lanes_for(rows, n);
  if (lanes > THREADS)
    return launch_shared<MOST>(sparse_kernel<T, I, MOST>, blocks_for(rows, 1), MOST, stream, rows, n, lanes,
                               (const T *)logits, (const I *)labels, (T *)loss, (T *)back);
  return launch_shared(sparse_kernel<T, I, THREADS>, blocks_for(rows, THREADS / lanes), THREADS, stream, rows, n, lanes,
                       (const T *)logits, (const I *)labels, (T *)loss, (T *)back);
}

template <class T, int64_t BLOCK>
__global__ void __launch_bounds__(BLOCK)
    dense_kernel(tfc_cuda_dense_rows d, int lanes, const T *logits, const T *labels, T *loss, T *back) {
  typedef typename number<T>::C C;
  __shared__ C shared[BLOCK];
  int width = (int)BLOCK / lanes, local = (int)threadIdx.x / lanes;
  group g = {(int)threadIdx.x % lanes, lanes, 1};
  for (int64_t b = blockIdx.x; b < (d.rows + width - 1) / width; b += gridDim.x) {
    int64_t row = b * width + local;
    bool mine = row < d.rows;
    const T *x = logits + (mine ? row * d.logits_row : 0), *p = labels + (mine ? row * d.labels_row : 0);
    row_of<T, C> r = measure<T>(x, d.n, d.logits_column, mine, g, shared);
    C scale = (C)1 / r.sum, log_sum = log(r.sum), sum = 0;
    if (mine)
      for (int64_t i = g.lane; i < d.n; i += lanes) {
        C v = get(x[i * d.logits_column]) - r.largest, label = get(p[i * d.labels_column]);
        if (label != 0 || v != v) sum += label * (log_sum - v);
        back[row * d.n + i] = put<T>(exp(v) * scale - label);
      }
    sum = join_group(sum, shared, g, plus<C>());
    if (mine && !g.lane) loss[row] = put<T>(sum);
  }
}
template <class T>
int dense(const tfc_cuda_dense_rows *d, const void *logits, const void *labels, void *loss, void *back, void *stream) {
  const int lanes = lanes_for(d->rows, d->n);
  if (lanes > THREADS)
    return launch_shared<MOST>(dense_kernel<T, MOST>, blocks_for(d->rows, 1), MOST, stream, *d, lanes,
                               (const T *)logits, (const T *)labels, (T *)loss, (T *)back);
  return launch_shared(dense_kernel<T, THREADS>, blocks_for(d->rows, THREADS / lanes), THREADS, stream, *d, lanes,
                       (const T *)logits, (const T *)labels, (T *)loss, (T *)back);
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_softmax(int type, bool log, int64_t rows, int64_t n, const void *x, void *y, void *stream) {
  using namespace tfc;
  switch (type) {
#define SOFTMAX_CASE(t, ...)                                                                                           \
  case OPS_DT_##t: return softmax<t>(log, rows, n, x, y, stream);
    OPS_FLOATS(SOFTMAX_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_sparse_cross_entropy(int type, int label_type, int64_t rows, int64_t n, const void *logits,
                                               const void *labels, void *loss, void *backprop, void *stream) {
  using namespace tfc;
  switch (type) {
#define SPARSE_CASE(t, ...)                                                                                            \
  case OPS_DT_##t:                                                                                                     \
    return label_type == OPS_DT_i32 ? sparse<t, i32>(rows, n, logits, labels, loss, backprop, stream)                  \
                                    : sparse<t, i64>(rows, n, logits, labels, loss, backprop, stream);
    OPS_FLOATS(SPARSE_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_cross_entropy(int type, const tfc_cuda_dense_rows *r, const void *logits, const void *labels,
                                        void *loss, void *backprop, void *stream) {
  using namespace tfc;
  switch (type) {
#define DENSE_CASE(t, ...)                                                                                             \
  case OPS_DT_##t: return dense<t>(r, logits, labels, loss, backprop, stream);
    OPS_FLOATS(DENSE_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
