// A fake of the cuDNN calls that library/dnn.c makes: it computes on the CPU what cuDNN's documentation says. And a
// fake of CUDA's events, with a clock of its own. Each fake cuDNN call moves this clock by as much as the test wants,
// so that a test decides whether cuDNN or tfc's own kernel seems faster.
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "tests/cuda_kernels/fake_cudnn.h"
#include "tests/cuda_kernels/host.h"

uint32_t cuda_fake_dnn_calls, cuda_fake_timings;
int64_t cuda_fake_dnn_cost_ns = -1000000000;
static int64_t clock_ns;
void cuda_fake_clock(int64_t ns) {
  clock_ns += ns;
}

struct CUevent_st {
  int64_t at;
  bool of_device;
};
bool cuda_fake_is_timed;
static uint32_t events;
// Streams take the events that their device makes, and no others, as streams of a green context may.
static cudaError_t make_event(bool of_device, cudaEvent_t *out) {
  if (!(*out = calloc(1, sizeof **out))) return cudaErrorMemoryAllocation;
  (*out)->of_device = of_device;
  cuda_fake_is_timed = ++events > 0;
  cuda_fake_timings++;
  return cudaSuccess;
}
int cuda_fake_event(struct tfc_cuda_library *library, bool timing, struct CUevent_st **out) {
  (void)library;
  return timing ? (int)make_event(true, out) : (int)cudaErrorInvalidValue;
}
cudaError_t cudaEventCreate(cudaEvent_t *out) {
  return make_event(false, out);
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  cuda_fake_is_timed = --events > 0;
  free(e);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream) {
  (void)stream;
  if (!e->of_device) return cudaErrorInvalidResourceHandle;
  e->at = tfc_now_ns() + clock_ns;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  (void)e;
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *out_ms, cudaEvent_t begin, cudaEvent_t end) {
  *out_ms = (float)((double)(end->at - begin->at) * 1e-6);
  return cudaSuccess;
}

// Device memory is host memory here, and a stream's work is done when the call returns.
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
  (void)stream;
  memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)kind, (void)stream;
  memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  (void)stream;
  return cudaSuccess;
}

struct cudnnPoolingStruct {
  cudnnPoolingMode_t mode;
  int spatial, size[3], pad[3], step[3];
};
struct cudnnLRNStruct {
  unsigned width;
  double alpha, beta, k;
};
CUDA_FAKE_LIFE(PoolingDescriptor, cudnnPoolingDescriptor_t)
CUDA_FAKE_LIFE(LRNDescriptor, cudnnLRNDescriptor_t)

// True if alpha is 1 and beta 0. Also counts the call and moves the clock.
static bool plain(cudnnDataType_t type, const void *alpha, const void *beta) {
  cuda_fake_dnn_calls++;
  clock_ns += cuda_fake_dnn_cost_ns;
  return cuda_fake_scalar(type, alpha) == 1 && cuda_fake_scalar(type, beta) == 0;
}

// --- Pooling -------------------------------------------------------------------------------------------------------
cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t d, const cudnnPoolingMode_t mode,
                                          const cudnnNanPropagation_t nan, int n, const int size[], const int pad[],
                                          const int step[]) {
  if (n < 2 || n > 3 || nan != CUDNN_NOT_PROPAGATE_NAN) return CUDNN_STATUS_BAD_PARAM;
  d->mode = mode;
  d->spatial = n;
  for (int k = 0; k < n; k++) {
    if (pad[k] >= size[k]) return CUDNN_STATUS_BAD_PARAM;
    d->size[k] = size[k], d->pad[k] = pad[k], d->step[k] = step[k];
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t pool(const struct cudnnPoolingStruct *p, const struct cudnnTensorStruct *x, void *xp,
                          const struct cudnnTensorStruct *y, void *yp, bool back) {
  const int n = p->spatial;
  for (int k = 0; k < n; k++)
    if (y->dims[2 + k] != (x->dims[2 + k] + 2 * p->pad[k] - p->size[k]) / p->step[k] + 1) return CUDNN_STATUS_BAD_PARAM;
  const bool average = p->mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
  if ((back && !average) || (!average && p->mode != CUDNN_POOLING_MAX_DETERMINISTIC)) return CUDNN_STATUS_BAD_PARAM;
  const long images = cuda_fake_elements(x->dims, n + 2), positions = cuda_fake_elements(y->dims + 2, n);
  const long cells = cuda_fake_elements(p->size, n);
  double *sums = calloc((size_t)images, sizeof *sums);
  if (!sums) return CUDNN_STATUS_INTERNAL_ERROR;
  tfc_host_begin();
  for (int image = 0; image < x->dims[0]; image++)
    for (int channel = 0; channel < x->dims[1]; channel++)
      for (long q = 0; q < positions; q++) {
        int at[3], cell[3], inside = 0;
        long left = q;
        for (int k = n - 1; k >= 0; k--) at[k] = (int)(left % y->dims[2 + k]), left /= y->dims[2 + k];
        const long yi = cuda_fake_place(y->strides, image, channel, at, n);
        double best = -INFINITY, sum = 0;
        for (int pass = 0; pass < 2; pass++) // the first pass counts the cells, the second divides by their number
          for (long t = 0; t < cells; t++) {
            bool in = true;
            left = t;
            for (int k = n - 1; k >= 0; k--) {
              cell[k] = at[k] * p->step[k] - p->pad[k] + (int)(left % p->size[k]), left /= p->size[k];
              in = in && cell[k] >= 0 && cell[k] < x->dims[2 + k];
            }
            if (!in) continue;
            const long xi = cuda_fake_place(x->strides, image, channel, cell, n);
            if (pass && back) {
              sums[xi] += cuda_fake_get(y->type, yp, yi) / inside;
            } else if (!pass) {
              inside++;
              if (back) continue;
              const double v = cuda_fake_get(x->type, xp, xi);
              best = fmax(best, v);
              sum += v;
            }
          }
        if (!back) cuda_fake_put(y->type, yp, yi, average ? sum / inside : best);
      }
  for (long i = 0; back && i < images; i++) cuda_fake_put(x->type, xp, i, sums[i]);
  tfc_host_end();
  free(sums);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t p, const void *alpha,
                                  const cudnnTensorDescriptor_t x, const void *xp, const void *beta,
                                  const cudnnTensorDescriptor_t y, void *yp) {
  (void)handle;
  if (!plain(x->type, alpha, beta)) return CUDNN_STATUS_BAD_PARAM;
  return pool(p, x, (void *)(uintptr_t)xp, y, yp, false);
}
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t p, const void *alpha,
                                   const cudnnTensorDescriptor_t y, const void *yp, const cudnnTensorDescriptor_t dy,
                                   const void *dyp, const cudnnTensorDescriptor_t x, const void *xp, const void *beta,
                                   const cudnnTensorDescriptor_t dx, void *dxp) {
  (void)handle, (void)y, (void)x;
  if (!plain(dx->type, alpha, beta) || !yp || !xp) return CUDNN_STATUS_BAD_PARAM;
  return pool(p, dx, dxp, dy, (void *)(uintptr_t)dyp, true);
}

// --- Softmax and local responses: tensors as [outer, channels, inner], by strides -----------------------------------
struct rows {
  int outer, channels, inner;
};
static bool rows_of(const struct cudnnTensorStruct *x, struct rows *out) {
  *out = (struct rows){x->dims[0], x->dims[1], x->dims[2]};
  return x->rank == 4 && x->dims[3] == 1;
}
static long row_place(const struct cudnnTensorStruct *x, int a, int c, int b) {
  return (long)a * x->strides[0] + (long)c * x->strides[1] + (long)b * x->strides[2];
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode,
                                  const void *alpha, const cudnnTensorDescriptor_t x, const void *xp, const void *beta,
                                  const cudnnTensorDescriptor_t y, void *yp) {
  (void)handle, (void)y;
  struct rows r;
  if (!plain(x->type, alpha, beta) || !rows_of(x, &r) || mode != CUDNN_SOFTMAX_MODE_INSTANCE || r.inner != 1 ||
      algorithm == CUDNN_SOFTMAX_FAST)
    return CUDNN_STATUS_BAD_PARAM;
  tfc_host_begin();
  for (int a = 0; a < r.outer; a++) {
    double most = -INFINITY, sum = 0;
    for (int c = 0; c < r.channels; c++) {
      const double v = cuda_fake_get(x->type, xp, row_place(x, a, c, 0));
      most = v > most || v != v ? v : most;
    }
    for (int c = 0; c < r.channels; c++) sum += exp(cuda_fake_get(x->type, xp, row_place(x, a, c, 0)) - most);
    for (int c = 0; c < r.channels; c++) {
      const long i = row_place(x, a, c, 0);
      const double v = cuda_fake_get(x->type, xp, i) - most;
      cuda_fake_put(x->type, yp, i, algorithm == CUDNN_SOFTMAX_LOG ? v - log(sum) : exp(v) / sum);
    }
  }
  tfc_host_end();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t d, unsigned width, double alpha, double beta, double k) {
  if (width < CUDNN_LRN_MIN_N || width > CUDNN_LRN_MAX_N || k < CUDNN_LRN_MIN_K || beta < CUDNN_LRN_MIN_BETA)
    return CUDNN_STATUS_BAD_PARAM;
  *d = (struct cudnnLRNStruct){width, alpha, beta, k};
  return CUDNN_STATUS_SUCCESS;
}
static double spread(const struct cudnnLRNStruct *d, const struct cudnnTensorStruct *x, const void *xp, int a, int c,
                     int b) {
  const int behind = (int)(d->width - 1) / 2, ahead = (int)d->width - behind - 1;
  double sum = 0;
  for (int k = c - behind; k <= c + ahead; k++)
    if (k >= 0 && k < x->dims[1]) sum += pow(cuda_fake_get(x->type, xp, row_place(x, a, k, b)), 2);
  return d->k + d->alpha / d->width * sum;
}
cudnnStatus_t cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t d, cudnnLRNMode_t mode,
                                          const void *alpha, const cudnnTensorDescriptor_t x, const void *xp,
                                          const void *beta, const cudnnTensorDescriptor_t y, void *yp) {
  (void)handle, (void)y;
  struct rows r;
  if (!plain(x->type, alpha, beta) || !rows_of(x, &r) || mode != CUDNN_LRN_CROSS_CHANNEL_DIM1)
    return CUDNN_STATUS_BAD_PARAM;
  tfc_host_begin();
  for (int a = 0; a < r.outer; a++)
    for (int c = 0; c < r.channels; c++)
      for (int b = 0; b < r.inner; b++) {
        const long i = row_place(x, a, c, b);
        cuda_fake_put(x->type, yp, i, cuda_fake_get(x->type, xp, i) * pow(spread(d, x, xp, a, c, b), -d->beta));
      }
  tfc_host_end();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnLRNCrossChannelBackward(cudnnHandle_t handle, cudnnLRNDescriptor_t d, cudnnLRNMode_t mode,
                                           const void *alpha, const cudnnTensorDescriptor_t y, const void *yp,
                                           const cudnnTensorDescriptor_t dy, const void *dyp,
                                           const cudnnTensorDescriptor_t x, const void *xp, const void *beta,
                                           const cudnnTensorDescriptor_t dx, void *dxp) {
  (void)handle, (void)y, (void)dy, (void)dx;
  struct rows r;
  if (!plain(x->type, alpha, beta) || !rows_of(x, &r) || mode != CUDNN_LRN_CROSS_CHANNEL_DIM1)
    return CUDNN_STATUS_BAD_PARAM;
  const int reach = (int)(d->width - 1) / 2;
  tfc_host_begin();
  for (int a = 0; a < r.outer; a++)
    for (int k = 0; k < r.channels; k++)
      for (int b = 0; b < r.inner; b++) {
        const long i = row_place(x, a, k, b);
        double sum = 0;
        for (int c = k - reach; c <= k + reach; c++) {
          if (c < 0 || c >= r.channels) continue;
          const long o = row_place(x, a, c, b);
          const double s = spread(d, x, xp, a, c, b), g = cuda_fake_get(x->type, dyp, o);
          double part =
              -2 * d->alpha / d->width * d->beta * cuda_fake_get(x->type, xp, i) * cuda_fake_get(x->type, yp, o) / s;
          if (c == k) part += pow(s, -d->beta);
          sum += part * g;
        }
        cuda_fake_put(x->type, dxp, i, sum);
      }
  tfc_host_end();
  return CUDNN_STATUS_SUCCESS;
}

// --- Batch normalisation -------------------------------------------------------------------------------------------
cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t out, const cudnnTensorDescriptor_t x,
                                            cudnnBatchNormMode_t mode) {
  if (mode != CUDNN_BATCHNORM_SPATIAL) return CUDNN_STATUS_BAD_PARAM;
  *out = *x;
  out->type = x->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBatchNormalizationForwardTraining(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
                                                     const void *beta, const cudnnTensorDescriptor_t x, const void *xp,
                                                     const cudnnTensorDescriptor_t y, void *yp,
                                                     const cudnnTensorDescriptor_t norm, const void *scale,
                                                     const void *offset, double factor, void *running_mean,
                                                     void *running_variance, double epsilon, void *saved_mean,
                                                     void *saved_inverse) {
  (void)handle, (void)y;
  struct rows r;
  if (!plain(CUDNN_DATA_FLOAT, alpha, beta) || !rows_of(x, &r) || mode != CUDNN_BATCHNORM_SPATIAL ||
      norm->type != CUDNN_DATA_FLOAT)
    return CUDNN_STATUS_BAD_PARAM;
  const double count = (double)r.outer * r.inner;
  tfc_host_begin();
  for (int c = 0; c < r.channels; c++) {
    double mean = 0, variance = 0;
    for (int a = 0; a < r.outer; a++)
      for (int b = 0; b < r.inner; b++) mean += cuda_fake_get(x->type, xp, row_place(x, a, c, b)) / count;
    for (int a = 0; a < r.outer; a++)
      for (int b = 0; b < r.inner; b++)
        variance += pow(cuda_fake_get(x->type, xp, row_place(x, a, c, b)) - mean, 2) / count;
    const double inverse = 1 / sqrt(variance + epsilon);
    float *m = (float *)running_mean + c, *v = (float *)running_variance + c;
    *m = (float)(mean * factor + (double)*m * (1 - factor));
    *v = (float)(variance * count / (count - 1) * factor + (double)*v * (1 - factor));
    ((float *)saved_mean)[c] = (float)mean;
    ((float *)saved_inverse)[c] = (float)inverse;
    for (int a = 0; a < r.outer; a++)
      for (int b = 0; b < r.inner; b++) {
        const long i = row_place(x, a, c, b);
        cuda_fake_put(x->type, yp, i,
                      (cuda_fake_get(x->type, xp, i) - mean) * inverse * ((const float *)scale)[c] +
                          ((const float *)offset)[c]);
      }
  }
  tfc_host_end();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta, const void *alpha_lines,
    const void *beta_lines, const cudnnTensorDescriptor_t x, const void *xp, const cudnnTensorDescriptor_t dy,
    const void *dyp, const cudnnTensorDescriptor_t dx, void *dxp, const cudnnTensorDescriptor_t norm, const void *scale,
    void *dscale, void *doffset, double epsilon, const void *saved_mean, const void *saved_inverse) {
  (void)handle, (void)dy, (void)dx, (void)epsilon;
  struct rows r;
  if (!plain(CUDNN_DATA_FLOAT, alpha, beta) || cuda_fake_scalar(CUDNN_DATA_FLOAT, alpha_lines) != 1 ||
      cuda_fake_scalar(CUDNN_DATA_FLOAT, beta_lines) != 0 || !rows_of(x, &r) || mode != CUDNN_BATCHNORM_SPATIAL ||
      norm->type != CUDNN_DATA_FLOAT)
    return CUDNN_STATUS_BAD_PARAM;
  const double count = (double)r.outer * r.inner;
  tfc_host_begin();
  for (int c = 0; c < r.channels; c++) {
    const double mean = ((const float *)saved_mean)[c], inverse = ((const float *)saved_inverse)[c];
    double sum = 0, product = 0;
    for (int a = 0; a < r.outer; a++)
      for (int b = 0; b < r.inner; b++) {
        const long i = row_place(x, a, c, b);
        const double g = cuda_fake_get(x->type, dyp, i);
        sum += g;
        product += g * (cuda_fake_get(x->type, xp, i) - mean) * inverse;
      }
    for (int a = 0; a < r.outer; a++)
      for (int b = 0; b < r.inner; b++) {
        const long i = row_place(x, a, c, b);
        const double centered = (cuda_fake_get(x->type, xp, i) - mean) * inverse;
        cuda_fake_put(x->type, dxp, i,
                      ((const float *)scale)[c] * inverse *
                          (cuda_fake_get(x->type, dyp, i) - sum / count - centered * product / count));
      }
    ((float *)dscale)[c] = (float)product;
    ((float *)doffset)[c] = (float)sum;
  }
  tfc_host_end();
  return CUDNN_STATUS_SUCCESS;
}
