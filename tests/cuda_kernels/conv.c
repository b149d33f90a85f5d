// Convolutions by matrix products over patches: this file replaces the one that calls cuDNN. It takes convolutions of
// two dimensions in float32, with one group and channels last. It declines all others, which then run as plain loops.
// As cuDNN with channels last, it reads and writes filters as [out, cells, in]; filters of the graph are transposed in
// scratch, by the kernel that turns them on a GPU.
#include "runtime/device/cuda/kernels/filter.h"

#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda_kernels/host.h"

struct tfc_cuda_conv_plan {
  struct tfc_cuda_conv c;
};

tfc_status tfc_cuda_conv_find(struct tfc_cuda_library *library, const struct tfc_cuda_conv *conv,
                              const struct tfc_cuda_conv_plan **out) {
  static struct tfc_cuda_conv_plan *plans[4096];
  static size_t count;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // several devices call this at once
  (void)library;
  if (cuda_host_no_conv || conv->type != TFC_FLOAT || conv->spatial != 2 || conv->slide.groups != 1 ||
      conv->channels_first)
    return tfc_status_make(TFC_UNIMPLEMENTED, "not in this test's library");
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < count; i++)
    if (!memcmp(&plans[i]->c, conv, sizeof *conv)) {
      *out = plans[i];
      pthread_mutex_unlock(&lock);
      return NULL;
    }
  if (count == sizeof plans / sizeof *plans || !(plans[count] = calloc(1, sizeof **plans))) abort();
  plans[count]->c = *conv;
  *out = plans[count++];
  pthread_mutex_unlock(&lock);
  return NULL;
}

size_t tfc_cuda_conv_scratch(const struct tfc_cuda_conv_plan *plan) {
  const struct tfc_cuda_slide *s = &plan->c.slide;
  return (size_t)(s->filters * s->channels * s->size[1] * s->size[2]) * sizeof(float);
}

tfc_filter_form tfc_cuda_conv_form(const struct tfc_cuda_conv_plan *plan) {
  (void)plan;
  return TFC_FILTER_CHANNELS_LAST;
}

// Copies the patches of one image to p [out1 * out2, size1 * size2 * channels]; `back`: adds the patches p to the
// image.
static void patches(const struct tfc_cuda_slide *s, float *x, float *p, bool back) {
  for (int64_t i = 0; i < s->y.size[1]; i++)
    for (int64_t j = 0; j < s->y.size[2]; j++)
      for (int64_t a = 0; a < s->size[1]; a++)
        for (int64_t b = 0; b < s->size[2]; b++, p += s->channels) {
          int64_t h = i * s->step[1] - s->before[1] + a * s->dilation[1];
          int64_t w = j * s->step[2] - s->before[2] + b * s->dilation[2];
          bool inside = h >= 0 && w >= 0 && h < s->x.size[1] && w < s->x.size[2];
          float *at = x + h * s->x.stride[1] + w * s->x.stride[2];
          for (int64_t c = 0; c < s->channels; c++) {
            if (!back)
              p[c] = inside ? at[c] : 0;
            else if (inside)
              at[c] += p[c];
          }
        }
}

struct run {
  const struct tfc_cuda_conv_plan *plan;
  float *x, *w, *y;
};
static void run(void *argument) {
  const struct run *r = argument;
  const struct tfc_cuda_slide *s = &r->plan->c.slide;
  const int32_t role = r->plan->c.role;
  int rows = (int)(s->y.size[1] * s->y.size[2]), inner = (int)(s->size[1] * s->size[2] * s->channels);
  int filters = (int)s->filters;
  float *p = malloc((size_t)rows * (size_t)inner * sizeof *p);
  if (!p) abort();
  tfc_host_begin();
  for (int64_t n = 0; n < s->batch; n++) {
    float *image = r->x + n * s->x.batch_stride, *out = r->y + n * s->y.batch_stride;
    if (role != TFC_CUDA_CONV_INPUT) patches(s, image, p, false);
    if (role == TFC_CUDA_CONV_FORWARD)
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, filters, inner, 1, p, inner, r->w, inner, 0, out,
                  filters);
    if (role == TFC_CUDA_CONV_FILTER)
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, filters, inner, rows, 1, out, filters, p, inner, n ? 1 : 0,
                  r->w, inner);
    if (role == TFC_CUDA_CONV_INPUT) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, inner, filters, 1, out, filters, r->w, inner, 0, p,
                  inner);
      memset(image, 0, (size_t)s->x.batch_stride * sizeof *image);
      patches(s, image, p, true);
    }
  }
  tfc_host_end();
  free(p);
}

tfc_status tfc_cuda_conv_run(struct tfc_cuda_launch *l, const struct tfc_cuda_conv_plan *plan, void *x, void *w,
                             tfc_filter_form form, void *y, void *scratch) {
  const tfc_filter_form mine = tfc_cuda_conv_form(plan);
  const bool writes = plan->c.role == TFC_CUDA_CONV_FILTER;
  const struct run r = {plan, x, form == mine ? w : scratch, y};
  int error = 0;
  if (form != mine && !writes) error = tfc_cuda_filter_transpose(&plan->c, form, w, mine, scratch, l->stream);
  if (!error) error = tfc_host_enqueue(l->stream, run, &r, sizeof r);
  if (!error) tfc_cuda_count_launch();
  if (!error && form != mine && writes) error = tfc_cuda_filter_transpose(&plan->c, mine, scratch, form, w, l->stream);
  return error ? tfc_cuda_status(l, error) : NULL;
}
