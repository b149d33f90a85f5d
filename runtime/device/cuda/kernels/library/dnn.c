// Chooses between cuDNN and tfc's own kernels by speed. The speed of these operations is limited by memory, and nothing
// predicts which implementation is faster for a shape. So a plan runs both on memory of its own, alone on the device's
// stream, and stores which one is faster. If tfc's own kernel is faster, the plan declines, so that the next row of the
// op (tfc's own) is used.
//
// Pools that need different padding on both sides are declined, because cuDNN pads both sides alike. cuDNN's gradient
// of batch normalisation takes 1 / sqrt(variance + epsilon), where TensorFlow's operations pass variances: a small
// kernel converts these, so that each operation of a pair may run on either implementation, or on another device.
#include "runtime/device/cuda/kernels/dnn.h"

#ifndef TFC_HAVE_CUDNN

tfc_status tfc_cuda_dnn_find(struct tfc_cuda_library *library, const struct tfc_cuda_dnn *dnn,
                             const struct tfc_cuda_dnn_plan **out, bool *out_declined) {
  (void)library, (void)dnn, (void)out, (void)out_declined;
  return tfc_status_make(TFC_UNIMPLEMENTED, "built without cuDNN");
}
size_t tfc_cuda_dnn_scratch(const struct tfc_cuda_dnn_plan *plan) {
  (void)plan;
  return 0;
}
tfc_status tfc_cuda_dnn_run(struct tfc_cuda_launch *l, const struct tfc_cuda_dnn_plan *plan,
                            const struct tfc_cuda_dnn_memory *memory) {
  (void)l, (void)plan, (void)memory;
  return tfc_status_make(TFC_INTERNAL, "built without cuDNN");
}

#else

#include <cuda_runtime_api.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/kernels/library/choices.h"
#include "runtime/device/cuda/kernels/library/cudnn_call.h"
#include "runtime/device/cuda/kernels/library/timing.h"
#include "runtime/device/cuda/kernels/memory.h"
#include "runtime/device/cuda/kernels/reduce.h"

enum { RUNS = 5, REPEATS = 3, ALIGN = 256 };

struct key { // compared by bytes, so it is zeroed before it is filled
  struct tfc_cuda_dnn dnn;
  int32_t sm_count, capability, is_virtual, unused;
};
struct tfc_cuda_dnn_plan {
  struct key key;
  bool ours; // tfc's own kernels are used
  char model[64];
  cudnnTensorDescriptor_t x, y, norm;
  cudnnPoolingDescriptor_t pooling;
  cudnnLRNDescriptor_t lrn;
  char refusal[160]; // why cuDNN cannot run it; "": cuDNN can, but is slower
};

static void free_plan(void *plan) {
  struct tfc_cuda_dnn_plan *p = plan;
  if (!p) return;
  if (p->x) cudnnDestroyTensorDescriptor(p->x);
  if (p->y) cudnnDestroyTensorDescriptor(p->y);
  if (p->norm) cudnnDestroyTensorDescriptor(p->norm);
  if (p->pooling) cudnnDestroyPoolingDescriptor(p->pooling);
  if (p->lrn) cudnnDestroyLRNDescriptor(p->lrn);
  free(p);
}

static bool is_pool(const struct tfc_cuda_dnn *d) {
  return d->role == TFC_CUDA_DNN_POOL || d->role == TFC_CUDA_DNN_AVERAGE_GRAD;
}
static int64_t elements(const struct tfc_cuda_dnn *d, const struct tfc_cuda_layout *of) {
  if (!is_pool(d)) return d->outer * d->channels * d->inner;
  return d->slide.batch * d->slide.channels * of->size[0] * of->size[1] * of->size[2];
}

// --- Descriptors ---------------------------------------------------------------------------------------------------
static tfc_status describe_image(const struct tfc_cuda_dnn *d, const struct tfc_cuda_layout *of,
                                 cudnnTensorDescriptor_t *out) {
  tfc_status s = NULL;
  int dims[5] = {(int)d->slide.batch, (int)d->slide.channels}, skip = 3 - d->spatial;
  int strides[5] = {(int)of->batch_stride, (int)of->channel_stride};
  for (int k = 0; k < d->spatial; k++) {
    dims[2 + k] = (int)of->size[skip + k];
    strides[2 + k] = (int)of->stride[skip + k];
  }
  TFC_CUDNN_CHECK(cudnnCreateTensorDescriptor(out));
  TFC_CUDNN_CHECK(cudnnSetTensorNdDescriptor(*out, tfc_cudnn_type(d->type), d->spatial + 2, dims, strides));
out:
  return s;
}

static tfc_status describe_pool(struct tfc_cuda_dnn_plan *p) {
  tfc_status s = NULL;
  const struct tfc_cuda_dnn *d = &p->key.dnn;
  const struct tfc_cuda_slide *g = &d->slide;
  int n = d->spatial, skip = 3 - n, size[3], before[3], step[3];
  for (int k = 0; k < n; k++) {
    size[k] = (int)g->size[skip + k], before[k] = (int)g->before[skip + k], step[k] = (int)g->step[skip + k];
    if ((g->x.size[skip + k] + 2 * g->before[skip + k] - g->size[skip + k]) / g->step[skip + k] + 1 !=
        g->y.size[skip + k])
      return tfc_status_make(TFC_UNIMPLEMENTED, "padding that is not alike on both sides");
  }
  TFC_TRY(s, describe_image(d, &g->x, &p->x));
  TFC_TRY(s, describe_image(d, &g->y, &p->y));
  TFC_CUDNN_CHECK(cudnnCreatePoolingDescriptor(&p->pooling));
  // NaN is never the maximum, as in the reference kernel.
  TFC_CUDNN_CHECK(cudnnSetPoolingNdDescriptor(
      p->pooling, d->flag ? CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING : CUDNN_POOLING_MAX_DETERMINISTIC,
      CUDNN_NOT_PROPAGATE_NAN, n, size, before, step));
out:
  return s;
}

// Describes [outer, channels, inner] as an image with batch, channels, height and width: with channels first, or with
// channels last if inner is 1.
static tfc_status describe_rows(struct tfc_cuda_dnn_plan *p) {
  tfc_status s = NULL;
  const struct tfc_cuda_dnn *d = &p->key.dnn;
  const int outer = (int)d->outer, channels = (int)d->channels, inner = (int)d->inner;
  const bool softmax = d->role == TFC_CUDA_DNN_SOFTMAX, last = d->inner == 1 && !softmax;
  const int dims[4] = {last ? 1 : outer, channels, last ? outer : inner, 1};
  const int strides[4] = {last ? outer * channels : channels * inner, last ? 1 : inner, last ? channels : 1,
                          last ? channels : 1};
  TFC_CUDNN_CHECK(cudnnCreateTensorDescriptor(&p->x));
  TFC_CUDNN_CHECK(cudnnSetTensorNdDescriptor(p->x, tfc_cudnn_type(d->type), 4, dims, strides));
  if (d->role == TFC_CUDA_DNN_NORM || d->role == TFC_CUDA_DNN_NORM_GRAD) {
    TFC_CUDNN_CHECK(cudnnCreateTensorDescriptor(&p->norm));
    TFC_CUDNN_CHECK(cudnnDeriveBNTensorDescriptor(p->norm, p->x, CUDNN_BATCHNORM_SPATIAL));
  }
  if (d->role == TFC_CUDA_DNN_LRN || d->role == TFC_CUDA_DNN_LRN_GRAD) {
    const int64_t width = 2 * d->radius + 1;
    if (width > CUDNN_LRN_MAX_N || d->bias < CUDNN_LRN_MIN_K || d->beta < CUDNN_LRN_MIN_BETA)
      TFC_FAIL(s, TFC_UNIMPLEMENTED, "cuDNN knows no such local response normalisation");
    // cuDNN divides alpha by the width, so it gets alpha times the width
    TFC_CUDNN_CHECK(cudnnCreateLRNDescriptor(&p->lrn));
    TFC_CUDNN_CHECK(cudnnSetLRNDescriptor(p->lrn, (unsigned)width, d->alpha * (double)width, d->beta, d->bias));
  }
out:
  return s;
}

// --- Running -------------------------------------------------------------------------------------------------------
static tfc_status run_norm(struct cudnnContext *handle, const struct tfc_cuda_dnn_plan *p,
                           const struct tfc_cuda_norm *n, void *scratch, void *stream) {
  tfc_status s = NULL;
  const float one = 1, zero = 0;
  const int64_t rest = n->outer * n->inner;
  const size_t bytes = (size_t)n->channels * sizeof(float);
  int error = 0;
  if (p->key.dnn.role == TFC_CUDA_DNN_NORM) {
    // With a factor of 1.0 the old running statistics are multiplied by 0; but 0 times arbitrary contents of memory may
    // be NaN, so the memory is cleared.
    error = tfc_cuda_clear_bytes(n->out_mean, bytes, stream);
    if (!error) error = tfc_cuda_clear_bytes(n->out_variance, bytes, stream);
    if (error) return tfc_status_make(TFC_INTERNAL, "clearing statistics: CUDA error %d", error);
    TFC_CUDNN_CHECK(cudnnBatchNormalizationForwardTraining(
        handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, p->x, n->x, p->x, n->y, p->norm, n->scale, n->offset, 1.0,
        n->out_mean, n->out_variance, (double)n->epsilon, n->saved_mean, n->saved_variance));
    // cuDNN saves 1 / sqrt(variance + epsilon). The variance itself is computed from the running variance, which is the
    // sample variance: it is too large by the factor rest / (rest - 1).
    error =
        tfc_cuda_norm_scale(n->channels, (double)(rest - 1) / (double)rest, n->out_variance, n->saved_variance, stream);
  } else {
    error = tfc_cuda_norm_inverse(n->channels, n->epsilon, n->variance, scratch, stream);
    if (!error)
      TFC_CUDNN_CHECK(cudnnBatchNormalizationBackward(handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, p->x,
                                                      n->x, p->x, n->dy, p->x, n->y, p->norm, n->scale, n->dscale,
                                                      n->doffset, (double)n->epsilon, n->mean, scratch));
  }
  if (error) s = tfc_status_make(TFC_INTERNAL, "statistics of batch normalisation: CUDA error %d", error);
out:
  return s;
}

static tfc_status run_cudnn(struct cudnnContext *handle, const struct tfc_cuda_dnn_plan *p,
                            const struct tfc_cuda_dnn_memory *m, void *scratch, void *stream) {
  tfc_status s = NULL;
  const struct tfc_cuda_dnn *d = &p->key.dnn;
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const void *alpha = d->type == TFC_DOUBLE ? (const void *)&wide_one : &one;
  const void *beta = d->type == TFC_DOUBLE ? (const void *)&wide_zero : &zero;
  switch (d->role) {
  case TFC_CUDA_DNN_POOL:
    TFC_CUDNN_CHECK(cudnnPoolingForward(handle, p->pooling, alpha, p->x, m->x, beta, p->y, m->out));
    break;
  case TFC_CUDA_DNN_AVERAGE_GRAD: // averages do not depend on x and y, so dx and dy are passed instead
    TFC_CUDNN_CHECK(
        cudnnPoolingBackward(handle, p->pooling, alpha, p->y, m->dy, p->y, m->dy, p->x, m->out, beta, p->x, m->out));
    break;
  case TFC_CUDA_DNN_SOFTMAX:
    TFC_CUDNN_CHECK(cudnnSoftmaxForward(handle, d->flag ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE,
                                        CUDNN_SOFTMAX_MODE_INSTANCE, alpha, p->x, m->x, beta, p->x, m->out));
    break;
  case TFC_CUDA_DNN_LRN:
    TFC_CUDNN_CHECK(cudnnLRNCrossChannelForward(handle, p->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, alpha, p->x, m->x, beta,
                                                p->x, m->out));
    break;
  case TFC_CUDA_DNN_LRN_GRAD:
    TFC_CUDNN_CHECK(cudnnLRNCrossChannelBackward(handle, p->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, alpha, p->x, m->y, p->x,
                                                 m->dy, p->x, m->x, beta, p->x, m->out));
    break;
  default: s = run_norm(handle, p, m->norm, scratch, stream); break;
  }
out:
  return s;
}

static int run_ours(const struct tfc_cuda_dnn *d, const struct tfc_cuda_dnn_memory *m, void *scratch, void *stream) {
  const struct tfc_cuda_lrn lrn = {d->outer, d->channels, d->radius, d->bias, d->alpha, d->beta};
  switch (d->role) {
  case TFC_CUDA_DNN_POOL: return tfc_cuda_pool(d->type, d->flag, &d->slide, m->x, m->out, stream);
  case TFC_CUDA_DNN_AVERAGE_GRAD: return tfc_cuda_average_pool_grad(d->type, &d->slide, m->dy, m->out, stream);
  case TFC_CUDA_DNN_NORM: return tfc_cuda_norm_forward(d->type, m->norm, scratch, stream);
  case TFC_CUDA_DNN_NORM_GRAD: return tfc_cuda_norm_backward(d->type, m->norm, scratch, stream);
  case TFC_CUDA_DNN_SOFTMAX: return tfc_cuda_softmax(d->type, d->flag, d->outer, d->channels, m->x, m->out, stream);
  case TFC_CUDA_DNN_LRN: return tfc_cuda_lrn_forward(d->type, &lrn, m->x, m->out, stream);
  default: return tfc_cuda_lrn_backward(d->type, &lrn, m->dy, m->x, m->y, m->out, stream);
  }
}

// --- Timing --------------------------------------------------------------------------------------------------------
struct measuring {
  struct cudnnContext *handle;
  const struct tfc_cuda_dnn_plan *plan;
  struct tfc_cuda_dnn_memory memory;
  void *scratch;
  cudaStream_t stream;
};
static tfc_status run_theirs(void *arg) {
  const struct measuring *m = arg;
  return run_cudnn(m->handle, m->plan, &m->memory, m->scratch, m->stream);
}
static tfc_status run_own(void *arg) {
  const struct measuring *m = arg;
  int error = run_ours(&m->plan->key.dnn, &m->memory, m->scratch, m->stream);
  return error ? tfc_status_make(TFC_UNIMPLEMENTED, "CUDA error %d", error) : NULL;
}

static char *cut(char **at, size_t bytes) {
  char *piece = *at;
  *at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  return piece;
}

static tfc_status choose(struct tfc_cuda_library *library, struct cudnnContext *handle, struct tfc_cuda_dnn_plan *p) {
  tfc_status s = NULL;
  const struct tfc_cuda_dnn *d = &p->key.dnn;
  const size_t size = tfc_dtype_size((tfc_dtype)d->type), line = (size_t)d->channels * sizeof(float);
  const size_t x = (size_t)elements(d, &d->slide.x) * size, y = (size_t)elements(d, &d->slide.y) * size;
  struct tfc_cuda_norm n = {.outer = d->outer,
                            .channels = d->channels,
                            .inner = d->inner,
                            .training = true,
                            .epsilon = d->epsilon,
                            .factor = 1};
  const bool norm = d->role == TFC_CUDA_DNN_NORM || d->role == TFC_CUDA_DNN_NORM_GRAD;
  const size_t scratch = norm ? tfc_cuda_norm_scratch(&n) + line : 0;
  size_t all = 2 * (x + ALIGN) + 2 * (y + ALIGN) + 8 * (line + ALIGN) + scratch + ALIGN;
  struct tfc_buffer *memory = NULL;
  const struct tfc_device_driver *driver = library->device->driver;
  struct tfc_kernel_env env = {0};
  float theirs = 0, ours = 0;
  TFC_TRY(s, driver->allocate(library->device, all, &memory));
  if (driver->environment) driver->environment(library->device, &env);
  char *at = memory->data, *xs = cut(&at, x), *ys = cut(&at, y), *dys = cut(&at, y), *dxs = cut(&at, x);
  float *lines[8];
  for (int i = 0; i < 8; i++) lines[i] = (float *)(void *)cut(&at, line);
  const bool back =
      d->role == TFC_CUDA_DNN_AVERAGE_GRAD || d->role == TFC_CUDA_DNN_LRN_GRAD || d->role == TFC_CUDA_DNN_NORM_GRAD;
  n.x = xs, n.dy = dys, n.y = back ? dxs : ys;
  n.scale = lines[0], n.offset = lines[1], n.mean = lines[2], n.variance = lines[3];
  n.out_mean = lines[4], n.out_variance = lines[5], n.saved_mean = lines[6], n.saved_variance = lines[7];
  n.dscale = lines[4], n.doffset = lines[5];
  struct measuring m = {handle, p, {xs, ys, dys, back ? dxs : ys, &n}, cut(&at, scratch), env.stream};
  // zeros, because arbitrary contents might be slow to compute with
  int error = tfc_cuda_clear_bytes(memory->data, all, env.stream);
  if (error) TFC_FAIL(s, TFC_UNIMPLEMENTED, "CUDA error %d", error);
  TFC_TRY(s, tfc_cuda_time(library, env.stream, run_theirs, &m, RUNS, REPEATS, &theirs));
  TFC_TRY(s, tfc_cuda_time(library, env.stream, run_own, &m, RUNS, REPEATS, &ours));
  p->ours = ours <= theirs;
out:
  tfc_buffer_release(memory);
  return s;
}

// --- Plans ---------------------------------------------------------------------------------------------------------
static tfc_status make_plan(struct tfc_cuda_library *library, const void *bytes, void **out);
static struct tfc_cuda_plans plans = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                      .making = PTHREAD_MUTEX_INITIALIZER,
                                      .key_size = sizeof(struct key),
                                      .make = make_plan,
                                      .free = free_plan};

static void choice_of(const void *plan, const char **out_model, int *out_values) {
  const struct tfc_cuda_dnn_plan *p = plan;
  *out_model = p->model;
  out_values[0] = p->ours;
}
static struct tfc_cuda_choices choices = {.kind = "dnn", .version = cudnnGetVersion, .value_count = 1, .of = choice_of};

char *tfc_cuda_dnn_tuning(void) {
  return tfc_cuda_choices_write(&choices, &plans);
}
void tfc_cuda_dnn_set_tuning(const char *lines) {
  tfc_cuda_choices_read(&choices, &plans, lines);
}

static tfc_status make_plan(struct tfc_cuda_library *library, const void *bytes, void **out) {
  tfc_status s = NULL;
  const struct key *key = bytes;
  struct cudnnContext *handle = NULL;
  struct tfc_cuda_dnn_plan *p = calloc(1, sizeof *p);
  if (!p) return tfc_status_no_memory(NULL);
  p->key = *key;
  tfc_cuda_choice_model(library, p->model);
  const int *known = tfc_cuda_choices_find(&choices, p->model, &p->key, sizeof p->key);
  if (known) p->ours = known[0] != 0;
  if (!known || !p->ours) {
    TFC_TRY(s, library->cudnn(library, &handle));
    tfc_status refusal = is_pool(&key->dnn) ? describe_pool(p) : describe_rows(p);
    if (!refusal && !known) refusal = choose(library, handle, p);
    // the choice is not saved, so that a later plan measures again
    if (refusal && tfc_status_code(refusal) == TFC_RESOURCE_EXHAUSTED) {
      s = tfc_status_make(TFC_UNIMPLEMENTED, "%s", tfc_status_message(refusal));
      tfc_status_free(refusal);
      goto out;
    }
    if (refusal) { // the choice is saved, because cuDNN will refuse the next time, too
      p->ours = true;
      snprintf(p->refusal, sizeof p->refusal, "%s", tfc_status_message(refusal));
    }
    tfc_status_free(refusal);
  }
  *out = p, p = NULL;
out:
  free_plan(p);
  return s;
}

tfc_status tfc_cuda_dnn_find(struct tfc_cuda_library *library, const struct tfc_cuda_dnn *dnn,
                             const struct tfc_cuda_dnn_plan **out, bool *out_declined) {
  const void *found = NULL;
  struct key key;
  memset(&key, 0, sizeof key);
  memcpy(&key.dnn, dnn, sizeof key.dnn);
  key.sm_count = library->sm_count, key.capability = library->capability, key.is_virtual = library->is_virtual;
  const int64_t x = elements(dnn, &dnn->slide.x), y = elements(dnn, &dnn->slide.y);
  if (x <= 0 || y <= 0 || x > INT_MAX || y > INT_MAX)
    return tfc_status_make(TFC_UNIMPLEMENTED, "nothing to compute, or more than cuDNN's indices reach");
  *out_declined = true;
  TFC_RETURN_IF_ERROR(tfc_cuda_plans_find(&plans, library, &key, &found));
  const struct tfc_cuda_dnn_plan *plan = found;
  *out_declined = plan->ours && plan->refusal[0];
  if (plan->ours)
    return tfc_status_make(TFC_UNIMPLEMENTED, "%s", plan->refusal[0] ? plan->refusal : "cuDNN is not faster");
  *out = plan;
  return NULL;
}

size_t tfc_cuda_dnn_scratch(const struct tfc_cuda_dnn_plan *plan) {
  return plan->key.dnn.role == TFC_CUDA_DNN_NORM_GRAD ? (size_t)plan->key.dnn.channels * sizeof(float) : 0;
}

tfc_status tfc_cuda_dnn_run(struct tfc_cuda_launch *l, const struct tfc_cuda_dnn_plan *plan,
                            const struct tfc_cuda_dnn_memory *memory) {
  struct cudnnContext *handle = NULL;
  TFC_RETURN_IF_ERROR(l->library->cudnn(l->library, &handle));
  TFC_RETURN_IF_ERROR(run_cudnn(handle, plan, memory, l->scratch, l->stream));
  tfc_cuda_count_launch();
  return NULL;
}

#endif
