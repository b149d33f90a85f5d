// Convolutions by matrix products over patches: this file replaces the one that calls cuDNN. It takes convolutions of
// two dimensions in float32, with one group. It declines all others, which then run as plain loops. It computes in one
// layout, with channels last unless cuda_host_channels_first is set; images of a graph in the other one are transposed
// there and back, as where cuDNN is faster so.
// As cuDNN with channels last, it reads and writes filters as [out, cells, in]; filters of the graph are transposed in
// scratch, by the kernel that turns them on a GPU.
#include "runtime/device/cuda/kernels/filter.h"

#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/kernels/layout.h"
#include "tests/cuda_kernels/host.h"

double cuda_host_channels_last_gain_us = 30;
bool cuda_host_channels_first;

struct tfc_cuda_conv_plan {
  struct tfc_cuda_conv c;
  struct tfc_cuda_layout x, y; // with channels last
};

tfc_status tfc_cuda_conv_find(struct tfc_cuda_library *library, const struct tfc_cuda_conv *conv,
                              const struct tfc_cuda_conv_plan **out) {
  static struct tfc_cuda_conv_plan *plans[4096];
  static size_t count;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // several devices call this at once
  (void)library;
  if (cuda_host_no_conv || conv->type != TFC_FLOAT || conv->spatial != 2 || conv->slide.groups != 1)
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
  plans[count]->x = tfc_cuda_layout_packed(conv->slide.x.size, conv->slide.channels, false);
  plans[count]->y = tfc_cuda_layout_packed(conv->slide.y.size, conv->slide.filters, false);
  *out = plans[count++];
  pthread_mutex_unlock(&lock);
  return NULL;
}

// Scratch has a filter, and transposed images.
static int64_t x_at(const struct tfc_cuda_slide *s) {
  return s->filters * s->channels * s->size[1] * s->size[2];
}
static int64_t y_at(const struct tfc_cuda_conv_plan *plan) {
  return x_at(&plan->c.slide) + plan->c.slide.batch * plan->x.batch_stride;
}
size_t tfc_cuda_conv_scratch(const struct tfc_cuda_conv_plan *plan) {
  const struct tfc_cuda_slide *s = &plan->c.slide;
  const bool converts = plan->c.channels_first != cuda_host_channels_first;
  return (size_t)(converts ? y_at(plan) + s->batch * plan->y.batch_stride : x_at(s)) * sizeof(float);
}
double tfc_cuda_conv_channels_last_gain_us(const struct tfc_cuda_conv_plan *plan) {
  (void)plan;
  return cuda_host_channels_last_gain_us;
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
          float *at = x + (h * s->x.size[2] + w) * s->channels;
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
  bool first; // x and y have channels first
  float *x, *w, *y;
};
// Copies images with channels last from or to `images` with channels first.
static void convert(float *last, float *images, bool back, int64_t batch, const struct tfc_cuda_layout *l,
                    int64_t channels) {
  const int64_t positions = l->size[1] * l->size[2];
  for (int64_t n = 0; n < batch; n++)
    for (int64_t p = 0; p < positions; p++)
      for (int64_t c = 0; c < channels; c++) {
        float *a = &last[(n * positions + p) * channels + c], *b = &images[(n * channels + c) * positions + p];
        if (back)
          *b = *a;
        else
          *a = *b;
      }
}
static void run(void *argument) {
  const struct run *r = argument;
  const struct tfc_cuda_slide *s = &r->plan->c.slide;
  const int32_t role = r->plan->c.role;
  int rows = (int)(s->y.size[1] * s->y.size[2]), inner = (int)(s->size[1] * s->size[2] * s->channels);
  int filters = (int)s->filters;
  float *p = malloc((size_t)rows * (size_t)inner * sizeof *p);
  if (!p) abort();
  float *x = r->x, *y = r->y;
  tfc_host_begin();
  if (r->first) {
    x = malloc((size_t)(s->batch * r->plan->x.batch_stride) * sizeof *x);
    y = malloc((size_t)(s->batch * r->plan->y.batch_stride) * sizeof *y);
    if (!x || !y) abort();
    if (role != TFC_CUDA_CONV_INPUT) convert(x, r->x, false, s->batch, &r->plan->x, s->channels);
    if (role != TFC_CUDA_CONV_FORWARD) convert(y, r->y, false, s->batch, &r->plan->y, s->filters);
  }
  for (int64_t n = 0; n < s->batch; n++) {
    float *image = x + n * r->plan->x.batch_stride, *out = y + n * r->plan->y.batch_stride;
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
      memset(image, 0, (size_t)r->plan->x.batch_stride * sizeof *image);
      patches(s, image, p, true);
    }
  }
  if (r->first) {
    if (role == TFC_CUDA_CONV_INPUT) convert(x, r->x, true, s->batch, &r->plan->x, s->channels);
    if (role == TFC_CUDA_CONV_FORWARD) convert(y, r->y, true, s->batch, &r->plan->y, s->filters);
    free(x);
    free(y);
  }
  tfc_host_end();
  free(p);
}

tfc_status tfc_cuda_conv_run(struct tfc_cuda_launch *l, const struct tfc_cuda_conv_plan *plan, void *x, void *w,
                             tfc_filter_form form, void *y, void *scratch) {
  const tfc_filter_form mine = tfc_cuda_conv_form(plan);
  const struct tfc_cuda_slide *s = &plan->c.slide;
  const int32_t role = plan->c.role;
  const bool writes = role == TFC_CUDA_CONV_FILTER, first = cuda_host_channels_first;
  const bool converts = plan->c.channels_first != first;
  float *memory = scratch;
  const struct tfc_cuda_images xs = {s->batch, s->channels, {1, s->x.size[1], s->x.size[2]}, sizeof(float)},
                               ys = {s->batch, s->filters, {1, s->y.size[1], s->y.size[2]}, sizeof(float)};
  const struct tfc_cuda_layout lx = tfc_cuda_layout_packed(s->x.size, s->channels, first),
                               ly = tfc_cuda_layout_packed(s->y.size, s->filters, first);
  const struct run r = {plan, first, converts ? memory + x_at(s) : x, form == mine ? w : scratch,
                        converts ? memory + y_at(plan) : y};
  int error = 0;
  if (form != mine && !writes) error = tfc_cuda_filter_transpose(&plan->c, form, w, mine, scratch, l->stream);
  if (!error && converts && role != TFC_CUDA_CONV_INPUT)
    error = tfc_cuda_images_copy(&xs, &s->x, x, &lx, r.x, l->stream);
  if (!error && converts && role != TFC_CUDA_CONV_FORWARD)
    error = tfc_cuda_images_copy(&ys, &s->y, y, &ly, r.y, l->stream);
  if (!error) error = tfc_host_enqueue(l->stream, run, &r, sizeof r);
  if (!error) tfc_cuda_count_launch();
  if (!error && converts && role == TFC_CUDA_CONV_INPUT)
    error = tfc_cuda_images_copy(&xs, &lx, r.x, &s->x, x, l->stream);
  if (!error && converts && role == TFC_CUDA_CONV_FORWARD)
    error = tfc_cuda_images_copy(&ys, &ly, r.y, &s->y, y, l->stream);
  if (!error && form != mine && writes) error = tfc_cuda_filter_transpose(&plan->c, mine, scratch, form, w, l->stream);
  return error ? tfc_cuda_status(l, error) : NULL;
}
