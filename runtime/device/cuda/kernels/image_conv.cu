// Convolution by plain loops, for builds without a library and for cases that it declines. A thread computes one
// element of the result (for a filter's gradient, a group of threads does); sums are in float32 (float64 for float64).
#include "runtime/device/cuda/kernels/group.cuh"
#include "runtime/device/cuda/kernels/slide.cuh"

namespace tfc {
namespace {

// Filters are [a, b, c, channel in the group, filter].
TFC_HD int64_t tap(const tfc_cuda_slide &s, int64_t a, int64_t b, int64_t c, int64_t depth, int64_t filter) {
  return ((((a * s.size[1] + b) * s.size[2] + c) * (s.channels / s.groups)) + depth) * s.filters + filter;
}

template <class T> __global__ void forward_kernel(tfc_cuda_slide s, int64_t total, const T *x, const T *w, T *y) {
  typedef typename number<T>::C C;
  const int64_t depth = s.channels / s.groups, per_group = s.filters / s.groups;
  for (int64_t i = first(); i < total; i += stride()) {
    spot at = spot_of(i, s.y, s.filters);
    const int64_t base = at.channel / per_group * depth;
    C sum = 0;
    for (int64_t a = 0; a < s.size[0]; a++)
      for (int64_t b = 0; b < s.size[1]; b++)
        for (int64_t c = 0; c < s.size[2]; c++) {
          int64_t d = at.cell[0] * s.step[0] - s.before[0] + a * s.dilation[0];
          int64_t e = at.cell[1] * s.step[1] - s.before[1] + b * s.dilation[1];
          int64_t f = at.cell[2] * s.step[2] - s.before[2] + c * s.dilation[2];
          if (d < 0 || e < 0 || f < 0 || d >= s.x.size[0] || e >= s.x.size[1] || f >= s.x.size[2]) continue;
          for (int64_t k = 0; k < depth; k++)
            sum += get(x[place_in(s.x, at.image, d, e, f, base + k)]) * get(w[tap(s, a, b, c, k, at.channel)]);
        }
    y[place_in(s.y, at.image, at.cell[0], at.cell[1], at.cell[2], at.channel)] = put<T>(sum);
  }
}

// Returns the output position whose window has its tap number `tap` at the input position `cell`; -1: there is none.
TFC_HD int64_t position(int64_t cell, int64_t before, int64_t tap, int64_t dilation, int64_t step, int64_t size) {
  int64_t at = cell + before - tap * dilation, rest;
  if (at < 0) return -1;
  at = divide(at, step, &rest);
  return rest || at >= size ? -1 : at;
}

template <class T> __global__ void input_kernel(tfc_cuda_slide s, int64_t total, const T *w, const T *dy, T *dx) {
  typedef typename number<T>::C C;
  const int64_t depth = s.channels / s.groups, per_group = s.filters / s.groups;
  for (int64_t i = first(); i < total; i += stride()) {
    spot at = spot_of(i, s.x, s.channels);
    int64_t within, base = divide(at.channel, depth, &within) * per_group;
    C sum = 0;
    for (int64_t a = 0; a < s.size[0]; a++)
      for (int64_t b = 0; b < s.size[1]; b++)
        for (int64_t c = 0; c < s.size[2]; c++) {
          int64_t d = position(at.cell[0], s.before[0], a, s.dilation[0], s.step[0], s.y.size[0]);
          int64_t e = position(at.cell[1], s.before[1], b, s.dilation[1], s.step[1], s.y.size[1]);
          int64_t f = position(at.cell[2], s.before[2], c, s.dilation[2], s.step[2], s.y.size[2]);
          if (d < 0 || e < 0 || f < 0) continue;
          for (int64_t k = 0; k < per_group; k++)
            sum += get(dy[place_in(s.y, at.image, d, e, f, base + k)]) * get(w[tap(s, a, b, c, within, base + k)]);
        }
    dx[place_in(s.x, at.image, at.cell[0], at.cell[1], at.cell[2], at.channel)] = put<T>(sum);
  }
}

// Each sum goes over all positions of all images, so a group of threads computes one sum.
template <class T>
__global__ void filter_kernel(tfc_cuda_slide s, int64_t total, int lanes, const T *x, const T *dy, T *dw) {
  typedef typename number<T>::C C;
  __shared__ C shared[THREADS];
  const int64_t depth = s.channels / s.groups, per_group = s.filters / s.groups, width = THREADS / lanes;
  const int64_t positions = elements_of(s, s.y, 1);
  const group g = {(int)threadIdx.x % lanes, lanes, 1};
  for (int64_t block = blockIdx.x; block < (total + width - 1) / width; block += gridDim.x) {
    const int64_t i = block * width + (int)threadIdx.x / lanes;
    int64_t filter, k, at[3];
    at[0] = divide(divide(divide(divide(i, s.filters, &filter), depth, &k), s.size[2], &at[2]), s.size[1], &at[1]);
    const int64_t channel = filter / per_group * depth + k;
    C sum = 0;
    for (int64_t p = g.lane; i < total && p < positions; p += lanes) {
      int64_t cell[3], from[3], image = p;
      bool in = true;
      for (int d = 2; d >= 0; d--) {
        image = divide(image, s.y.size[d], &cell[d]);
        from[d] = cell[d] * s.step[d] - s.before[d] + at[d] * s.dilation[d];
        in = in && from[d] >= 0 && from[d] < s.x.size[d];
      }
      if (in)
        sum += get(x[place_in(s.x, image, from[0], from[1], from[2], channel)]) *
               get(dy[place_in(s.y, image, cell[0], cell[1], cell[2], filter)]);
    }
    sum = join_group(sum, shared, g, plus<C>());
    if (i < total && !g.lane) dw[i] = put<T>(sum);
  }
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_conv_forward(int type, const tfc_cuda_slide *s, const void *x, const void *w, void *y,
                                       void *stream) {
  using namespace tfc;
  int64_t total = elements_of(*s, s->y, s->filters);
  switch (type) {
#define FORWARD_CASE(t, ...)                                                                                           \
  case OPS_DT_##t:                                                                                                     \
    return launch(forward_kernel<t>, blocks_for(total), THREADS, stream, *s, total, (const t *)x, (const t *)w, (t *)y);
    OPS_FLOATS(FORWARD_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
TFC_CUDA_API int tfc_cuda_conv_input(int type, const tfc_cuda_slide *s, const void *w, const void *dy, void *dx,
                                     void *stream) {
  using namespace tfc;
  int64_t total = elements_of(*s, s->x, s->channels);
  switch (type) {
#define INPUT_CASE(t, ...)                                                                                             \
  case OPS_DT_##t:                                                                                                     \
    return launch(input_kernel<t>, blocks_for(total), THREADS, stream, *s, total, (const t *)w, (const t *)dy, (t *)dx);
    OPS_FLOATS(INPUT_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
TFC_CUDA_API int tfc_cuda_conv_filter(int type, const tfc_cuda_slide *s, const void *x, const void *dy, void *dw,
                                      void *stream) {
  using namespace tfc;
  int64_t total = s->size[0] * s->size[1] * s->size[2] * (s->channels / s->groups) * s->filters;
  const int64_t positions = elements_of(*s, s->y, 1);
  int lanes = 8;
  while (lanes < THREADS && lanes * 4 < positions) lanes *= 2;
  switch (type) {
#define FILTER_CASE(t, ...)                                                                                            \
  case OPS_DT_##t:                                                                                                     \
    return launch_shared(filter_kernel<t>, blocks_for(total, THREADS / lanes), THREADS, stream, *s, total, lanes,      \
                         (const t *)x, (const t *)dy, (t *)dw);
    OPS_FLOATS(FILTER_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
