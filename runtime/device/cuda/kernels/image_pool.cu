// Pooling: a thread computes one output. For gradients a thread computes one cell of the image: it adds up the
// contributions of all windows that contain the cell.
#include "runtime/device/cuda/kernels/slide.cuh"

namespace tfc {
namespace {

// The search for a maximum begins with the smallest finite number and replaces it only by greater ones, so NaN is
// ignored.
template <class T> TFC_HD typename number<T>::C least_finite();
template <> TFC_HD float least_finite<f32>() {
  return -3.402823466e+38f;
}
template <> TFC_HD double least_finite<f64>() {
  return -1.7976931348623157e+308;
}
template <> TFC_HD float least_finite<f16>() {
  return -65504.0f;
}
template <> TFC_HD float least_finite<b16>() {
  return -3.3895314e+38f;
}

template <class T> __global__ void pool_kernel(bool average, tfc_cuda_slide s, int64_t total, const T *x, T *y) {
  typedef typename number<T>::C C;
  for (int64_t i = first(); i < total; i += stride()) {
    spot at = spot_of(i, s.y, s.channels);
    int64_t lo[3], hi[3], n = 0;
    C best = average ? (C)0 : least_finite<T>();
    window_of(s, at.cell, lo, hi);
    for (int64_t a = lo[0]; a < hi[0]; a++)
      for (int64_t b = lo[1]; b < hi[1]; b++)
        for (int64_t c = lo[2]; c < hi[2]; c++) {
          C v = get(x[place_in(s.x, at.image, a, b, c, at.channel)]);
          best = average ? (C)(best + v) : v > best ? v : best;
          n++;
        }
    y[place_in(s.y, at.image, at.cell[0], at.cell[1], at.cell[2], at.channel)] =
        put<T>(average ? (C)(best / (C)n) : best);
  }
}

// Finds the windows [lo, hi) that contain a cell, in each dimension.
TFC_HD void holders(const tfc_cuda_slide &s, const int64_t *cell, int64_t *lo, int64_t *hi) {
  for (int k = 0; k < 3; k++) {
    int64_t at = cell[k] + s.before[k], unused;
    lo[k] = at < s.size[k] ? 0 : divide(at - s.size[k], s.step[k], &unused) + 1;
    hi[k] = smaller(divide(at, s.step[k], &unused) + 1, s.y.size[k]);
  }
}

// The first of equal maxima in the window gets the gradient; with `each`, every element that differs from the
// maximum by less than 1e-5 gets it, as in TensorFlow's three-dimensional pools.
template <class T>
__global__ void max_grad_kernel(bool each, tfc_cuda_slide s, int64_t total, const T *x, const T *y, const T *dy,
                                T *dx) {
  typedef typename number<T>::C C;
  const C near = get(put<T>((C)1e-5f));
  for (int64_t i = first(); i < total; i += stride()) {
    spot at = spot_of(i, s.x, s.channels);
    const int64_t own = place_in(s.x, at.image, at.cell[0], at.cell[1], at.cell[2], at.channel);
    const C v = get(x[own]);
    int64_t from[3], to[3];
    T sum = put<T>((C)0);
    holders(s, at.cell, from, to);
    for (int64_t a = from[0]; a < to[0]; a++)
      for (int64_t b = from[1]; b < to[1]; b++)
        for (int64_t c = from[2]; c < to[2]; c++) {
          const int64_t window[3] = {a, b, c}, out = place_in(s.y, at.image, a, b, c, at.channel);
          const C apart = get(put<T>(v - get(y[out])));
          if (each ? !(apart < near && -apart < near) : get(y[out]) != v) continue;
          // Does the window contain an equal element before this one?
          int64_t lo[3], hi[3];
          bool mine = true;
          window_of(s, window, lo, hi);
          for (int64_t d = lo[0]; d <= at.cell[0] && mine && !each; d++)
            for (int64_t e = lo[1]; e < hi[1] && mine; e++)
              for (int64_t f = lo[2]; f < hi[2] && mine; f++) {
                if (d == at.cell[0] && (e > at.cell[1] || (e == at.cell[1] && f >= at.cell[2]))) break;
                mine = get(x[place_in(s.x, at.image, d, e, f, at.channel)]) != v;
              }
          if (mine) sum = put<T>(get(sum) + get(dy[out]));
        }
    dx[own] = sum;
  }
}

template <class T> __global__ void average_grad_kernel(tfc_cuda_slide s, int64_t total, const T *dy, T *dx) {
  typedef typename number<T>::C C;
  for (int64_t i = first(); i < total; i += stride()) {
    spot at = spot_of(i, s.x, s.channels);
    int64_t from[3], to[3];
    C sum = 0;
    holders(s, at.cell, from, to);
    for (int64_t a = from[0]; a < to[0]; a++)
      for (int64_t b = from[1]; b < to[1]; b++)
        for (int64_t c = from[2]; c < to[2]; c++) {
          const int64_t window[3] = {a, b, c};
          int64_t lo[3], hi[3];
          window_of(s, window, lo, hi);
          const C share = (C)1 / (C)((hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]));
          sum += get(dy[place_in(s.y, at.image, a, b, c, at.channel)]) * share;
        }
    dx[place_in(s.x, at.image, at.cell[0], at.cell[1], at.cell[2], at.channel)] = put<T>(sum);
  }
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_pool(int type, bool average, const tfc_cuda_slide *s, const void *x, void *y, void *stream) {
  using namespace tfc;
  int64_t total = elements_of(*s, s->y, s->channels);
  switch (type) {
#define POOL_CASE(t, ...)                                                                                              \
  case OPS_DT_##t:                                                                                                     \
    return launch(pool_kernel<t>, blocks_for(total), THREADS, stream, average, *s, total, (const t *)x, (t *)y);
    OPS_FLOATS(POOL_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_max_pool_grad(int type, bool each, const tfc_cuda_slide *s, const void *x, const void *y,
                                        const void *dy, void *dx, void *stream) {
  using namespace tfc;
  int64_t total = elements_of(*s, s->x, s->channels);
  switch (type) {
#define MAX_CASE(t, ...)                                                                                               \
  case OPS_DT_##t:                                                                                                     \
    return launch(max_grad_kernel<t>, blocks_for(total), THREADS, stream, each, *s, total, (const t *)x, (const t *)y, \
                  (const t *)dy, (t *)dx);
    OPS_FLOATS(MAX_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

TFC_CUDA_API int tfc_cuda_average_pool_grad(int type, const tfc_cuda_slide *s, const void *dy, void *dx, void *stream) {
  using namespace tfc;
  int64_t total = elements_of(*s, s->x, s->channels);
  switch (type) {
#define AVERAGE_CASE(t, ...)                                                                                           \
  case OPS_DT_##t:                                                                                                     \
    return launch(average_grad_kernel<t>, blocks_for(total), THREADS, stream, *s, total, (const t *)dy, (t *)dx);
    OPS_FLOATS(AVERAGE_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
