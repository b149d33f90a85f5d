// A fake of the cuDNN calls that library/cudnn.c makes: convolutions on the CPU, over tensors with any strides. It
// offers three algorithms. The fastest is not deterministic; the second rounds more than the caller allowed, unless the
// caller allowed conversion to float16. Sometimes one layout of the tensors seems faster, sometimes the other.
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda_kernels/fake_cudnn.h"
#include "tests/cuda_kernels/host.h"

uint32_t cuda_fake_convolutions, cuda_fake_convolutions_in[CUDA_FAKE_MATHS], cuda_fake_measurements;
bool cuda_fake_no_measurement;
float cuda_fake_slower_ms[2];
size_t cuda_fake_cudnn_version = CUDNN_VERSION;

enum { RANK = CUDA_FAKE_RANK };
struct cudnnFilterStruct {
  cudnnDataType_t type;
  int rank, dims[RANK], strides[RANK];
};
struct cudnnConvolutionStruct {
  int spatial, pad[3], step[3], dilation[3], groups;
  cudnnMathType_t math;
};

size_t cudnnGetVersion(void) {
  return cuda_fake_cudnn_version;
}
const char *cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_NOT_SUPPORTED ? "not supported" : "a failure of the fake";
}
CUDA_FAKE_LIFE(TensorDescriptor, cudnnTensorDescriptor_t)
CUDA_FAKE_LIFE(FilterDescriptor, cudnnFilterDescriptor_t)
CUDA_FAKE_LIFE(ConvolutionDescriptor, cudnnConvolutionDescriptor_t)

// A tensor has at most 2^31 - 1 elements, the gaps between them included.
static cudnnStatus_t check_size(int rank, const int dims[], const int strides[]) {
  long last = 0;
  for (int k = 0; k < rank; k++) {
    if (dims[k] < 1 || (strides && strides[k] < 1)) return CUDNN_STATUS_BAD_PARAM;
    if (strides) last += (long)(dims[k] - 1) * strides[k];
  }
  return last < INT_MAX ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t d, cudnnDataType_t type, int rank, const int dims[],
                                         const int strides[]) {
  if (rank < 4 || rank > RANK) return CUDNN_STATUS_BAD_PARAM;
  cudnnStatus_t refusal = check_size(rank, dims, strides);
  if (refusal) return refusal;
  d->type = type;
  d->rank = rank;
  memcpy(d->dims, dims, (size_t)rank * sizeof *dims);
  memcpy(d->strides, strides, (size_t)rank * sizeof *strides);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int rank, const int dims[]) {
  if (rank < 4 || rank > RANK) return CUDNN_STATUS_BAD_PARAM;
  cudnnStatus_t refusal = check_size(rank, dims, NULL);
  if (refusal) return refusal;
  d->type = type;
  d->rank = rank;
  memcpy(d->dims, dims, (size_t)rank * sizeof *dims);
  int step = format == CUDNN_TENSOR_NHWC ? dims[1] : 1;
  for (int k = rank - 1; k > 1; k--) d->strides[k] = step, step *= dims[k];
  d->strides[1] = format == CUDNN_TENSOR_NHWC ? 1 : step;
  d->strides[0] = format == CUDNN_TENSOR_NHWC ? step : step * dims[1];
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t d, int n, const int pad[], const int step[],
                                              const int dilation[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
  (void)compute;
  if (mode != CUDNN_CROSS_CORRELATION || n < 2 || n > 3) return CUDNN_STATUS_BAD_PARAM;
  d->spatial = n;
  d->groups = 1;
  memcpy(d->pad, pad, (size_t)n * sizeof *pad);
  memcpy(d->step, step, (size_t)n * sizeof *step);
  memcpy(d->dilation, dilation, (size_t)n * sizeof *dilation);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups) {
  d->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t math) {
  d->math = math;
  return CUDNN_STATUS_SUCCESS;
}

static bool fits(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
                 cudnnTensorDescriptor_t y) {
  bool good = x->dims[0] == y->dims[0] && y->dims[1] == w->dims[0] && x->dims[1] == w->dims[1] * c->groups;
  for (int k = 0; k < c->spatial; k++) {
    int reach = (w->dims[2 + k] - 1) * c->dilation[k] + 1;
    good = good && y->dims[2 + k] == (x->dims[2 + k] + 2 * c->pad[k] - reach) / c->step[k] + 1;
  }
  return good;
}

// --- Measuring -----------------------------------------------------------------------------------------------------
#define FIND(Perf, algorithm, plain)                                                                                   \
  do {                                                                                                                 \
    static int turn;                                                                                                   \
    cuda_fake_measurements++;                                                                                          \
    if (cuda_fake_no_measurement) return CUDNN_STATUS_EXECUTION_FAILED;                                                \
    if (!fits(x, w, c, y)) return CUDNN_STATUS_BAD_PARAM;                                                              \
    if (wanted < 3 || room < 4096) return CUDNN_STATUS_BAD_PARAM;                                                      \
    memset(results, 0, 3 * sizeof *results);                                                                           \
    for (int i = 0; i < 3; i++) {                                                                                      \
      results[i].algo = (algorithm) + i;                                                                               \
      results[i].time = (float)(i + 1) + (float)(turn & 1) + cuda_fake_slower_ms[x->strides[1] != 1];                  \
      results[i].memory = 4096;                                                                                        \
      results[i].determinism = i == 0 ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;                                 \
      results[i].mathType = i != 1                      ? (plain)                                                      \
                            : c->math == CUDNN_FMA_MATH ? CUDNN_TENSOR_OP_MATH                                         \
                                                        : CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;                       \
    }                                                                                                                  \
    turn += turn % 3 == 0 ? 1 : 2;                                                                                     \
    *count = 3;                                                                                                        \
    return CUDNN_STATUS_SUCCESS;                                                                                       \
  } while (0)
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                     const void *xp, const cudnnFilterDescriptor_t w, const void *wp,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y, void *yp, const int wanted,
                                                     int *count, cudnnConvolutionFwdAlgoPerf_t *results, void *memory,
                                                     size_t room) {
  (void)handle, (void)xp, (void)wp, (void)yp, (void)memory;
  FIND(cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, c->math);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
                                                          const void *wp, const cudnnTensorDescriptor_t y,
                                                          const void *yp, const cudnnConvolutionDescriptor_t c,
                                                          const cudnnTensorDescriptor_t x, void *xp, const int wanted,
                                                          int *count, cudnnConvolutionBwdDataAlgoPerf_t *results,
                                                          void *memory, size_t room) {
  (void)handle, (void)xp, (void)wp, (void)yp, (void)memory;
  FIND(cudnnConvolutionBwdDataAlgoPerf_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, c->math);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                            const void *xp, const cudnnTensorDescriptor_t y,
                                                            const void *yp, const cudnnConvolutionDescriptor_t c,
                                                            const cudnnFilterDescriptor_t w, void *wp, const int wanted,
                                                            int *count, cudnnConvolutionBwdFilterAlgoPerf_t *results,
                                                            void *memory, size_t room) {
  (void)handle, (void)xp, (void)wp, (void)yp, (void)memory;
  // For an algorithm without tensor cores, cuDNN reports CUDNN_DEFAULT_MATH, whatever arithmetic was requested.
  FIND(cudnnConvolutionBwdFilterAlgoPerf_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_DEFAULT_MATH);
}

#define NEEDS(name, ...)                                                                                               \
  cudnnStatus_t name(__VA_ARGS__, size_t *out) {                                                                       \
    (void)handle;                                                                                                      \
    if (!fits(x, w, c, y)) return CUDNN_STATUS_BAD_PARAM;                                                              \
    *out = (size_t)algorithm * 4096;                                                                                   \
    return CUDNN_STATUS_SUCCESS;                                                                                       \
  }
NEEDS(cudnnGetConvolutionForwardWorkspaceSize, cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
      const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t y,
      cudnnConvolutionFwdAlgo_t algorithm)
NEEDS(cudnnGetConvolutionBackwardDataWorkspaceSize, cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
      const cudnnTensorDescriptor_t y, const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t x,
      cudnnConvolutionBwdDataAlgo_t algorithm)
NEEDS(cudnnGetConvolutionBackwardFilterWorkspaceSize, cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
      const cudnnTensorDescriptor_t y, const cudnnConvolutionDescriptor_t c, const cudnnFilterDescriptor_t w,
      cudnnConvolutionBwdFilterAlgo_t algorithm)

// --- Running: sums of x w (forward), of y w (gradient of x), of x y (gradient of w) --------------------------------
double cuda_fake_get(cudnnDataType_t type, const void *x, long i) {
  switch ((int)type) {
  case CUDNN_DATA_FLOAT: return ((const float *)x)[i];
  case CUDNN_DATA_DOUBLE: return ((const double *)x)[i];
  case CUDNN_DATA_HALF: return tfc_half_to_float(((const uint16_t *)x)[i]);
  default: return tfc_bfloat16_to_float(((const uint16_t *)x)[i]);
  }
}
void cuda_fake_put(cudnnDataType_t type, void *x, long i, double v) {
  switch ((int)type) {
  case CUDNN_DATA_FLOAT: ((float *)x)[i] = (float)v; break;
  case CUDNN_DATA_DOUBLE: ((double *)x)[i] = v; break;
  case CUDNN_DATA_HALF: ((uint16_t *)x)[i] = tfc_float_to_half((float)v); break;
  default: ((uint16_t *)x)[i] = tfc_float_to_bfloat16((float)v); break;
  }
}
long cuda_fake_elements(const int *dims, int rank) {
  long n = 1;
  for (int k = 0; k < rank; k++) n *= dims[k];
  return n;
}
long cuda_fake_place(const int *strides, int a, int b, const int *at, int n) {
  long p = (long)a * strides[0] + (long)b * strides[1];
  for (int k = 0; k < n; k++) p += (long)at[k] * strides[2 + k];
  return p;
}

static tfc_math math_of(cudnnMathType_t math) { // for float32, on a device that has tensor cores for TF32
  return math == CUDNN_FMA_MATH                          ? TFC_MATH_FLOAT32
         : math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION ? TFC_MATH_FLOAT16
                                                         : TFC_MATH_TF32;
}
static double operand(tfc_math math, cudnnDataType_t type, const void *x, long i) {
  double v = cuda_fake_get(type, x, i);
  return type == CUDNN_DATA_FLOAT ? (double)cuda_fake_operand(math, (float)v) : v;
}

enum role { FORWARD, INPUT, FILTER };
static cudnnStatus_t run(enum role role, double alpha, double beta, int algorithm, const struct cudnnTensorStruct *x,
                         void *xp, const struct cudnnFilterStruct *w, void *wp, const struct cudnnConvolutionStruct *c,
                         const struct cudnnTensorStruct *y, void *yp, const void *memory, size_t room) {
  int n = c->spatial, per_group = w->dims[0] / c->groups;
  const int *made = role == FORWARD ? y->dims : role == INPUT ? x->dims : w->dims;
  long total = cuda_fake_elements(made, n + 2);
  // tfc must not choose algorithm 0, which is not deterministic, nor algorithm 1 if it rounds more than is allowed.
  if (alpha != 1 || beta != 0 || !memory || room < 4096 || algorithm == 0 ||
      (c->math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION && algorithm == 1))
    return CUDNN_STATUS_BAD_PARAM;
  tfc_math math = math_of(c->math);
  cuda_fake_convolutions++;
  if (x->type == CUDNN_DATA_FLOAT) cuda_fake_convolutions_in[math]++;
  double *sums = calloc((size_t)total, sizeof *sums);
  if (!sums) return CUDNN_STATUS_INTERNAL_ERROR;
  tfc_host_begin();
  long positions = cuda_fake_elements(y->dims + 2, n), cells = cuda_fake_elements(w->dims + 2, n);
  for (int image = 0; image < y->dims[0]; image++)
    for (int filter = 0; filter < y->dims[1]; filter++)
      for (long p = 0; p < positions; p++)
        for (long t = 0; t < cells; t++) {
          int at[3], tap[3], cell[3];
          bool inside = true;
          long rest = p, left = t;
          for (int k = n - 1; k >= 0; k--) {
            at[k] = (int)(rest % y->dims[2 + k]), rest /= y->dims[2 + k];
            tap[k] = (int)(left % w->dims[2 + k]), left /= w->dims[2 + k];
            cell[k] = at[k] * c->step[k] - c->pad[k] + tap[k] * c->dilation[k];
            inside = inside && cell[k] >= 0 && cell[k] < x->dims[2 + k];
          }
          if (!inside) continue;
          for (int depth = 0; depth < w->dims[1]; depth++) {
            int channel = filter / per_group * w->dims[1] + depth;
            long xi = cuda_fake_place(x->strides, image, channel, cell, n),
                 wi = cuda_fake_place(w->strides, filter, depth, tap, n);
            long yi = cuda_fake_place(y->strides, image, filter, at, n);
            if (role == FORWARD)
              sums[yi] += operand(math, x->type, xp, xi) * operand(math, w->type, wp, wi);
            else if (role == INPUT)
              sums[xi] += operand(math, y->type, yp, yi) * operand(math, w->type, wp, wi);
            else
              sums[wi] += operand(math, x->type, xp, xi) * operand(math, y->type, yp, yi);
          }
        }
  for (long i = 0; i < total; i++) cuda_fake_put(x->type, role == FORWARD ? yp : role == INPUT ? xp : wp, i, sums[i]);
  tfc_host_end();
  free(sums);
  return CUDNN_STATUS_SUCCESS;
}
double cuda_fake_scalar(cudnnDataType_t type, const void *v) {
  return type == CUDNN_DATA_DOUBLE ? *(const double *)v : (double)*(const float *)v;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x,
                                      const void *xp, const cudnnFilterDescriptor_t w, const void *wp,
                                      const cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algorithm,
                                      void *memory, size_t room, const void *beta, const cudnnTensorDescriptor_t y,
                                      void *yp) {
  (void)handle;
  return run(FORWARD, cuda_fake_scalar(x->type, alpha), cuda_fake_scalar(x->type, beta),
             (int)algorithm - (int)CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, x, (void *)(uintptr_t)xp, w,
             (void *)(uintptr_t)wp, c, y, yp, memory, room);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t w,
                                           const void *wp, const cudnnTensorDescriptor_t y, const void *yp,
                                           const cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *memory, size_t room,
                                           const void *beta, const cudnnTensorDescriptor_t x, void *xp) {
  (void)handle;
  return run(INPUT, cuda_fake_scalar(x->type, alpha), cuda_fake_scalar(x->type, beta),
             (int)algorithm - (int)CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, x, xp, w, (void *)(uintptr_t)wp, c, y,
             (void *)(uintptr_t)yp, memory, room);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x,
                                             const void *xp, const cudnnTensorDescriptor_t y, const void *yp,
                                             const cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void *memory, size_t room,
                                             const void *beta, const cudnnFilterDescriptor_t w, void *wp) {
  (void)handle;
  return run(FILTER, cuda_fake_scalar(x->type, alpha), cuda_fake_scalar(x->type, beta),
             (int)algorithm - (int)CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, x, (void *)(uintptr_t)xp, w, wp, c, y,
             (void *)(uintptr_t)yp, memory, room);
}
