// Batch normalisation (Ioffe and Szegedy 2015) and local response normalisation (Krizhevsky et al. 2012).
//
// Batch normalisation takes three launches. The first computes sums over pieces of each channel. In the second, a few
// threads per channel add up the pieces, and one of them writes the numbers that the third needs, which goes over all
// elements. Squares of float32 are exact in float64, so one reading of the input gives mean and variance.
#include "runtime/device/cuda/kernels/image.h"
#include "runtime/device/cuda/kernels/reduce.cuh"

namespace tfc {
namespace {

struct two_sums {
  double a, b;
};
struct add_two {
  TFC_HD two_sums operator()(two_sums x, two_sums y) const {
    two_sums r = {x.a + y.a, x.b + y.b};
    return r;
  }
};

tfc_cuda_reduction plan_of(const tfc_cuda_norm *n) {
  tfc_cuda_reduction r = {};
  r.outputs = n->channels;
  r.count = n->outer * n->inner;
  r.kept_rank = 1;
  r.kept_dims[0] = n->channels;
  r.kept_strides[0] = n->inner;
  r.reduced_rank = n->inner > 1 ? 2 : 1;
  r.reduced_dims[0] = n->outer;
  r.reduced_strides[0] = n->channels * n->inner;
  r.reduced_dims[1] = n->inner;
  r.reduced_strides[1] = 1;
  r.along = n->inner > 1;
  tfc_cuda_reduction_split(&r);
  return r;
}
size_t partial_bytes(const tfc_cuda_reduction &r) {
  return ((size_t)(r.pieces * r.outputs) * sizeof(two_sums) + 255) / 256 * 256;
}

// Computes Σ x and Σ x² (forward), or Σ dy and Σ dy (x - mean) (backward); writes them to partial [pieces, channels].
template <class T, bool backward>
__global__ void sums_kernel(tfc_cuda_reduction r, const T *x, const T *dy, const float *mean, two_sums *partial) {
  __shared__ two_sums shared[THREADS];
  int local;
  group g = group_of((int)threadIdx.x, r.lanes, r.along, &local);
  int64_t width = THREADS / r.lanes, blocks = (r.outputs + width - 1) / width;
  for (int64_t b = blockIdx.x; b < blocks * r.pieces; b += gridDim.x) {
    int64_t channel = b % blocks * width + local, piece = b / blocks;
    two_sums sums = {0, 0};
    if (channel < r.outputs) {
      const double center = backward ? (double)mean[channel] : 0;
      int64_t from = channel * r.kept_strides[0], end = smaller((piece + 1) * r.piece, r.count);
      for (int64_t i = piece * r.piece + g.lane; i < end; i += r.lanes) {
        int64_t at = from + offset_of(i, r.reduced_rank, r.reduced_dims, r.reduced_strides);
        const double v = (double)get(x[at]);
        if (backward) {
          const double d = (double)get(dy[at]);
          sums.a += d;
          sums.b += d * (v - center);
        } else {
          sums.a += v;
          sums.b += v * v;
        }
      }
    }
    sums = join_group(sums, shared, g, add_two());
    if (channel < r.outputs && !g.lane) partial[piece * r.outputs + channel] = sums;
  }
}
// The numbers of one channel that the last pass needs.
struct line {
  float factor, center, less, slope;
};

struct forward_line {
  tfc_cuda_norm n;
  line *lines;
  TFC_HD void operator()(int64_t c, two_sums s) const {
    const double rest = (double)(n.outer * n.inner);
    double mean, variance;
    if (n.training) {
      mean = s.a / rest;
      variance = s.b / rest - mean * mean;
      variance = variance > 0 || variance != variance ? variance : 0;
      double unbiased = rest > 1 ? variance * (rest / (rest - 1)) : variance, f = (double)n.factor;
      n.saved_mean[c] = (float)mean;
      n.saved_variance[c] = (float)variance;
      n.out_mean[c] = (float)(f == 1 ? mean : (1 - f) * (double)n.mean[c] + f * mean);
      n.out_variance[c] = (float)(f == 1 ? unbiased : (1 - f) * (double)n.variance[c] + f * unbiased);
    } else {
      mean = (double)n.mean[c];
      variance = (double)n.variance[c];
      n.saved_mean[c] = n.out_mean[c] = n.mean[c];
      n.saved_variance[c] = n.out_variance[c] = n.variance[c];
    }
    line l = {(float)((double)n.scale[c] / sqrt(variance + (double)n.epsilon)), (float)mean, n.offset[c], 0};
    lines[c] = l;
  }
};
struct backward_line {
  tfc_cuda_norm n;
  line *lines;
  TFC_HD void operator()(int64_t c, two_sums s) const {
    const double rest = (double)(n.outer * n.inner);
    double r = 1 / sqrt((double)n.variance[c] + (double)n.epsilon);
    n.dscale[c] = (float)(s.b * r);
    n.doffset[c] = (float)s.a;
    line l = {(float)((double)n.scale[c] * r), n.mean[c], n.training ? (float)(s.a / rest) : 0,
              n.training ? (float)(r * r * s.b / rest) : 0};
    lines[c] = l;
  }
};
template <class Line>
__global__ void join_lines(tfc_cuda_norm n, int64_t pieces, const two_sums *partial, line *lines) {
  __shared__ two_sums shared[THREADS];
  const two_sums none = {0, 0};
  Line made = {n, lines};
  join_pieces(n.channels, pieces, partial, none, shared, add_two(), made);
}

// The third launch. Forward: y = (x - center) factor + less. Backward: dx = factor (dy - less - (x - center) slope), or
// factor dy if statistics were given.
template <class T, bool backward>
__global__ void lines_kernel(bool training, int64_t total, int64_t channels, int64_t inner, const line *lines,
                             const T *x, const T *dy, T *y) {
  for (int64_t i = first(); i < total; i += stride()) {
    int64_t c, unused;
    divide(divide(i, inner, &unused), channels, &c);
    const line l = lines[c];
    const float v = (float)get(x[i]) - l.center;
    if (!backward)
      y[i] = put<T>(v * l.factor + l.less);
    else if (training)
      y[i] = put<T>(l.factor * ((float)get(dy[i]) - l.less - v * l.slope));
    else
      y[i] = put<T>(l.factor * (float)get(dy[i]));
  }
}

template <class T, bool backward> int norm(const tfc_cuda_norm *n, void *scratch, void *stream) {
  tfc_cuda_reduction r = plan_of(n);
  two_sums *partial = (two_sums *)scratch;
  line *lines = (line *)((char *)scratch + partial_bytes(r));
  int failed = 0;
  if (backward || n->training) {
    int64_t width = THREADS / r.lanes, blocks = (r.outputs + width - 1) / width * r.pieces;
    failed = launch_shared(sums_kernel<T, backward>, blocks_for(blocks, 1), THREADS, stream, r, (const T *)n->x,
                           (const T *)n->dy, n->mean, partial);
  }
  int64_t pieces = backward || n->training ? r.pieces : 0; // forward with given statistics: no sums were computed
  if (!failed)
    failed =
        launch_shared(backward ? join_lines<backward_line> : join_lines<forward_line>, join_blocks(n->channels, pieces),
                      THREADS, stream, *n, pieces, (const two_sums *)partial, lines);
  int64_t total = n->outer * n->channels * n->inner;
  if (!failed)
    failed = launch(lines_kernel<T, backward>, blocks_for(total), THREADS, stream, n->training, total, n->channels,
                    n->inner, (const line *)lines, (const T *)n->x, (const T *)n->dy, (T *)n->y);
  return failed;
}

// Conversions between cuDNN's statistics and TensorFlow's.
__global__ void scale_line(int64_t channels, double factor, const float *in, float *out) {
  for (int64_t c = first(); c < channels; c += stride()) out[c] = (float)((double)in[c] * factor);
}
__global__ void inverse_line(int64_t channels, float epsilon, const float *in, float *out) {
  for (int64_t c = first(); c < channels; c += stride()) out[c] = (float)(1 / sqrt((double)in[c] + (double)epsilon));
}

// --- Local response normalisation ----------------------------------------------------------------------------------
template <class T> TFC_HD typename number<T>::C spread(const tfc_cuda_lrn &l, const T *x, int64_t c) {
  typedef typename number<T>::C C;
  C sum = 0;
  for (int64_t k = larger(c - l.radius, (int64_t)0); k < smaller(c + l.radius + 1, l.channels); k++)
    sum += get(x[k]) * get(x[k]);
  return (C)l.bias + (C)l.alpha * sum;
}
// Returns norm ^ -beta, by the same cases as TensorFlow, whose results differ if a norm is not positive
// (runtime/ops/nn_lrn.c).
template <class C> TFC_HD C power_of(const tfc_cuda_lrn &l, C norm) {
  if (l.beta == 1) return 1 / norm;
  if (l.beta == 0.5) return 1 / sqrt(norm);
  return norm > 0 && isfinite(norm) ? pow(norm, (C)-l.beta) : exp((C)-l.beta * log(norm));
}
template <class T> __global__ void lrn_kernel(tfc_cuda_lrn l, const T *x, T *y) {
  typedef typename number<T>::C C;
  for (int64_t i = first(); i < l.rows * l.channels; i += stride()) {
    int64_t c, row = divide(i, l.channels, &c);
    y[i] = put<T>(get(x[i]) * power_of<C>(l, spread(l, x + row * l.channels, c)));
  }
}
// dx[k] = Σ over c near k of dy[c] ((c == k) norm[c]^-beta - 2 alpha beta x[k] y[c] / norm[c])
template <class T> __global__ void lrn_grad_kernel(tfc_cuda_lrn l, const T *dy, const T *x, const T *y, T *dx) {
  typedef typename number<T>::C C;
  for (int64_t i = first(); i < l.rows * l.channels; i += stride()) {
    int64_t k, row = divide(i, l.channels, &k), base = row * l.channels;
    C sum = 0;
    for (int64_t c = larger(k - l.radius, (int64_t)0); c < smaller(k + l.radius + 1, l.channels); c++) {
      const C norm = spread(l, x + base, c);
      C d = (C)(-2 * l.alpha * l.beta) * get(x[i]) * get(y[base + c]) / norm;
      if (c == k) d += pow(norm, (C)-l.beta);
      sum += d * get(dy[base + c]);
    }
    dx[i] = put<T>(sum);
  }
}

} // namespace
} // namespace tfc

TFC_CUDA_API size_t tfc_cuda_norm_scratch(const tfc_cuda_norm *n) {
  return tfc::partial_bytes(tfc::plan_of(n)) + (size_t)n->channels * sizeof(tfc::line);
}
TFC_CUDA_API int tfc_cuda_norm_forward(int type, const tfc_cuda_norm *n, void *scratch, void *stream) {
  using namespace tfc;
  switch (type) {
  case OPS_DT_f32: return norm<f32, false>(n, scratch, stream);
  case OPS_DT_f16: return norm<f16, false>(n, scratch, stream);
  case OPS_DT_b16: return norm<b16, false>(n, scratch, stream);
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
TFC_CUDA_API int tfc_cuda_norm_backward(int type, const tfc_cuda_norm *n, void *scratch, void *stream) {
  using namespace tfc;
  switch (type) {
  case OPS_DT_f32: return norm<f32, true>(n, scratch, stream);
  case OPS_DT_f16: return norm<f16, true>(n, scratch, stream);
  case OPS_DT_b16: return norm<b16, true>(n, scratch, stream);
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
TFC_CUDA_API int tfc_cuda_norm_scale(int64_t channels, double factor, const float *in, float *out, void *stream) {
  using namespace tfc;
  return launch(scale_line, blocks_for(channels), THREADS, stream, channels, factor, in, out);
}
TFC_CUDA_API int tfc_cuda_norm_inverse(int64_t channels, float epsilon, const float *in, void *out, void *stream) {
  using namespace tfc;
  return launch(inverse_line, blocks_for(channels), THREADS, stream, channels, epsilon, in, (float *)out);
}
TFC_CUDA_API int tfc_cuda_lrn_forward(int type, const tfc_cuda_lrn *l, const void *x, void *y, void *stream) {
  using namespace tfc;
  switch (type) {
#define LRN_CASE(t, ...)                                                                                               \
  case OPS_DT_##t:                                                                                                     \
    return launch(lrn_kernel<t>, blocks_for(l->rows * l->channels), THREADS, stream, *l, (const t *)x, (t *)y);
    OPS_FLOATS(LRN_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
TFC_CUDA_API int tfc_cuda_lrn_backward(int type, const tfc_cuda_lrn *l, const void *dy, const void *x, const void *y,
                                       void *dx, void *stream) {
  using namespace tfc;
  switch (type) {
#define LRN_GRAD_CASE(t, ...)                                                                                          \
  case OPS_DT_##t:                                                                                                     \
    return launch(lrn_grad_kernel<t>, blocks_for(l->rows * l->channels), THREADS, stream, *l, (const t *)dy,           \
                  (const t *)x, (const t *)y, (t *)dx);
    OPS_FLOATS(LRN_GRAD_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
