// By default, float32 is computed in float32 (FMA arithmetic); in TF32 or float16 if the device is configured so. A
// device that is configured for bfloat16 uses TF32, which has the same range and rounds less, because cuDNN cannot
// convert float32 to bfloat16. For 16-bit floats tensor cores are used, with sums in float32. Only deterministic
// algorithms are used.
//
// Two ways are timed and the faster one is kept: in the graph's own layout, or with images converted to the other one
// and back (many algorithms need channels first, tensor cores channels last). What a graph would gain if its images had
// the other layout anyway is kept, too (runtime/exec/rewrites/layouts.c). Filters are [h, w, in, out] in TensorFlow's
// graphs and are converted in both cases, unless the plan has transposed them before (runtime/exec/rewrites/filters.c).
// cuDNN pads both sides equally: if TensorFlow pads more after an image than before it (SAME with strides), the image
// is copied into a larger one with zeros for the difference.
#include "runtime/device/cuda/kernels/conv.h"

#ifndef TFC_HAVE_CUDNN

tfc_status tfc_cuda_conv_find(struct tfc_cuda_library *library, const struct tfc_cuda_conv *conv,
                              const struct tfc_cuda_conv_plan **out) {
  (void)library, (void)conv, (void)out;
  return tfc_status_make(TFC_UNIMPLEMENTED, "built without cuDNN");
}
size_t tfc_cuda_conv_scratch(const struct tfc_cuda_conv_plan *plan) {
  (void)plan;
  return 0;
}
tfc_filter_form tfc_cuda_conv_form(const struct tfc_cuda_conv_plan *plan) {
  (void)plan;
  return TFC_FILTER_OF_GRAPH;
}
double tfc_cuda_conv_channels_last_gain_us(const struct tfc_cuda_conv_plan *plan) {
  (void)plan;
  return 0;
}
tfc_status tfc_cuda_conv_run(struct tfc_cuda_launch *l, const struct tfc_cuda_conv_plan *plan, void *x, void *w,
                             tfc_filter_form form, void *y, void *scratch) {
  (void)l, (void)plan, (void)x, (void)w, (void)form, (void)y, (void)scratch;
  return tfc_status_make(TFC_INTERNAL, "built without cuDNN");
}

#else

#include <cuda_runtime_api.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/kernels/filter.h"
#include "runtime/device/cuda/kernels/layout.h"
#include "runtime/device/cuda/kernels/library/choices.h"
#include "runtime/device/cuda/kernels/library/cudnn_call.h"
#include "runtime/device/cuda/kernels/memory.h"

enum { WORKSPACE = 512 << 20, MOST = 16, ALIGN = 256, NO_WAY = INT_MIN };

struct key { // compared by bytes, so it is zeroed before it is filled
  struct tfc_cuda_conv conv;
  int64_t padded[3]; // size of the image with the padding that cuDNN cannot add: the zeros after the image that exceed
                     // those before it
  int32_t sm_count, capability, math, is_virtual;
};
// One of the two ways to run the convolution (see above).
struct way {
  bool first; // cuDNN gets channels first; images are converted unless the graph has them so
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t convolution;
  int algorithm;
  cudnnMathType_t math;
  size_t workspace;
  float ms;
};
struct tfc_cuda_conv_plan {
  struct key key;
  struct way way;
  int gain_ns;    // of channels last (conv.h); NO_WAY: not known
  char model[64]; // of the device that it was measured on
  // x_at, w_at, y_at: offsets of the converted copies, which follow the workspace; SIZE_MAX: cuDNN gets the tensor
  // itself.
  size_t x_at, w_at, y_at, scratch;
};

// --- Descriptors: batch, channels, spatial dimensions, with strides of the layout ----------------------------------
static void image_dims(const struct tfc_cuda_conv *c, const int64_t *size, int64_t channels, bool first, int *dims,
                       int *strides) {
  int n = c->spatial, skip = 3 - n;
  int64_t step = first ? 1 : channels;
  dims[0] = (int)c->slide.batch;
  dims[1] = (int)channels;
  strides[1] = 1;
  for (int k = n - 1; k >= 0; k--) {
    dims[2 + k] = (int)size[skip + k];
    strides[2 + k] = (int)step;
    step *= size[skip + k];
  }
  if (first) {
    strides[1] = (int)step;
    step *= channels;
  }
  strides[0] = (int)step;
}

static void free_way(struct way *w) {
  if (w->x) cudnnDestroyTensorDescriptor(w->x);
  if (w->y) cudnnDestroyTensorDescriptor(w->y);
  if (w->w) cudnnDestroyFilterDescriptor(w->w);
  if (w->convolution) cudnnDestroyConvolutionDescriptor(w->convolution);
  *w = (struct way){0};
}

static cudnnMathType_t math_of(const struct key *key) {
  if (key->conv.type != TFC_FLOAT) return CUDNN_DEFAULT_MATH;
  switch ((tfc_math)key->math) {
  case TFC_MATH_FLOAT16: return CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
  case TFC_MATH_BFLOAT16:
  case TFC_MATH_TF32: return CUDNN_DEFAULT_MATH;
  default: return CUDNN_FMA_MATH;
  }
}

static tfc_status describe(const struct key *key, bool first, struct way *out) {
  tfc_status s = NULL;
  const struct tfc_cuda_conv *c = &key->conv;
  struct way w = {.first = first};
  const struct tfc_cuda_slide *g = &c->slide;
  cudnnDataType_t type = tfc_cudnn_type(c->type);
  int n = c->spatial, skip = 3 - n, dims[5], strides[5], filter[5], before[3], step[3], dilation[3];
  TFC_CUDNN_CHECK(cudnnCreateTensorDescriptor(&w.x));
  TFC_CUDNN_CHECK(cudnnCreateTensorDescriptor(&w.y));
  TFC_CUDNN_CHECK(cudnnCreateFilterDescriptor(&w.w));
  TFC_CUDNN_CHECK(cudnnCreateConvolutionDescriptor(&w.convolution));
  image_dims(c, key->padded, g->channels, first, dims, strides);
  TFC_CUDNN_CHECK(cudnnSetTensorNdDescriptor(w.x, type, n + 2, dims, strides));
  image_dims(c, g->y.size, g->filters, first, dims, strides);
  TFC_CUDNN_CHECK(cudnnSetTensorNdDescriptor(w.y, type, n + 2, dims, strides));
  filter[0] = (int)g->filters;
  filter[1] = (int)(g->channels / g->groups);
  for (int k = 0; k < n; k++) {
    filter[2 + k] = (int)g->size[skip + k];
    before[k] = (int)g->before[skip + k];
    step[k] = (int)g->step[skip + k];
    dilation[k] = (int)g->dilation[skip + k];
  }
  TFC_CUDNN_CHECK(cudnnSetFilterNdDescriptor(w.w, type, first ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC, n + 2, filter));
  cudnnDataType_t compute = c->type == TFC_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  TFC_CUDNN_CHECK(
      cudnnSetConvolutionNdDescriptor(w.convolution, n, before, step, dilation, CUDNN_CROSS_CORRELATION, compute));
  TFC_CUDNN_CHECK(cudnnSetConvolutionGroupCount(w.convolution, (int)g->groups));
  w.math = math_of(key);
  TFC_CUDNN_CHECK(cudnnSetConvolutionMathType(w.convolution, w.math));
  *out = w, w = (struct way){0};
out:
  free_way(&w);
  return s;
}

// --- Choosing ------------------------------------------------------------------------------------------------------
static size_t bytes_of(const struct key *key, int which) { // 0: x, 1: w, 2: y
  const struct tfc_cuda_slide *g = &key->conv.slide;
  int64_t n = which == 1   ? g->channels / g->groups * g->filters * g->size[0] * g->size[1] * g->size[2]
              : which == 0 ? g->batch * g->channels * key->padded[0] * key->padded[1] * key->padded[2]
                           : g->batch * g->filters * g->y.size[0] * g->y.size[1] * g->y.size[2];
  return ((size_t)n * tfc_dtype_size((tfc_dtype)key->conv.type) + ALIGN - 1) / ALIGN * ALIGN;
}

static bool is_padded(const struct key *key) {
  for (int k = 0; k < 3; k++)
    if (key->padded[k] != key->conv.slide.x.size[k]) return true;
  return false;
}

// `exact`: the algorithm was measured in the requested arithmetic, or in one that rounds no more. cuDNN also measures
// in its default arithmetic, and lists algorithms without tensor cores only there; such an algorithm is used if there
// is no other. In every case the algorithm is then run in an arithmetic that rounds no more than the requested one,
// with the workspace that this needs.
struct measured {
  int algorithm;
  int exact;
  float ms;
  size_t memory;
  cudnnMathType_t math;
};
#define BEST(type, call)                                                                                               \
  do {                                                                                                                 \
    type results[MOST];                                                                                                \
    int count = 0;                                                                                                     \
    TFC_CUDNN_CHECK(call);                                                                                             \
    for (int i = 0; i < count; i++) {                                                                                  \
      struct measured now = {(int)results[i].algo, exactness(w->math, results[i].mathType), results[i].time,           \
                             results[i].memory, results[i].mathType};                                                  \
      if (results[i].status == CUDNN_STATUS_SUCCESS && results[i].determinism == CUDNN_DETERMINISTIC &&                \
          now.memory <= WORKSPACE && better(&now, &best))                                                              \
        best = now;                                                                                                    \
    }                                                                                                                  \
  } while (0)

static int exactness(cudnnMathType_t asked, cudnnMathType_t measured) {
  if (asked == CUDNN_FMA_MATH) return measured == CUDNN_FMA_MATH ? 2 : measured == CUDNN_DEFAULT_MATH;
  return asked == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION || measured != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION ? 2 : 0;
}
static cudnnMathType_t runs_in(cudnnMathType_t asked, cudnnMathType_t measured) {
  return asked != CUDNN_FMA_MATH && exactness(asked, measured) == 2 ? measured : asked;
}

static bool better(const struct measured *a, const struct measured *than) {
  if (than->algorithm < 0 || a->exact != than->exact) return than->algorithm < 0 || a->exact > than->exact;
  return a->ms < than->ms;
}

static cudnnStatus_t workspace_of(struct cudnnContext *handle, const struct key *key, const struct way *w,
                                  size_t *out) {
  switch (key->conv.role) {
  case TFC_CUDA_CONV_FORWARD:
    return cudnnGetConvolutionForwardWorkspaceSize(handle, w->x, w->w, w->convolution, w->y,
                                                   (cudnnConvolutionFwdAlgo_t)w->algorithm, out);
  case TFC_CUDA_CONV_INPUT:
    return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, w->w, w->y, w->convolution, w->x,
                                                        (cudnnConvolutionBwdDataAlgo_t)w->algorithm, out);
  default:
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, w->x, w->y, w->convolution, w->w,
                                                          (cudnnConvolutionBwdFilterAlgo_t)w->algorithm, out);
  }
}

// Times every algorithm on memory of its own (the values in it do not matter), and sets w->algorithm.
static tfc_status measure(struct cudnnContext *handle, const struct key *key, struct way *w, char *memory) {
  tfc_status s = NULL;
  char *x = memory, *f = x + bytes_of(key, 0), *y = f + bytes_of(key, 1), *workspace = y + bytes_of(key, 2);
  struct measured best = {.algorithm = -1};
  switch (key->conv.role) {
  case TFC_CUDA_CONV_FORWARD:
    BEST(cudnnConvolutionFwdAlgoPerf_t,
         cudnnFindConvolutionForwardAlgorithmEx(handle, w->x, x, w->w, f, w->convolution, w->y, y, MOST, &count,
                                                results, workspace, WORKSPACE));
    break;
  case TFC_CUDA_CONV_INPUT:
    BEST(cudnnConvolutionBwdDataAlgoPerf_t,
         cudnnFindConvolutionBackwardDataAlgorithmEx(handle, w->w, f, w->y, y, w->convolution, w->x, x, MOST, &count,
                                                     results, workspace, WORKSPACE));
    break;
  default:
    BEST(cudnnConvolutionBwdFilterAlgoPerf_t,
         cudnnFindConvolutionBackwardFilterAlgorithmEx(handle, w->x, x, w->y, y, w->convolution, w->w, f, MOST, &count,
                                                       results, workspace, WORKSPACE));
    break;
  }
  if (best.algorithm < 0) TFC_FAIL(s, TFC_UNIMPLEMENTED, "cuDNN has no deterministic algorithm for this convolution");
  w->algorithm = best.algorithm;
  w->ms = best.ms;
  w->workspace = best.memory;
  w->math = runs_in(w->math, best.math);
  TFC_CUDNN_CHECK(cudnnSetConvolutionMathType(w->convolution, w->math));
  size_t asked = 0;
  TFC_CUDNN_CHECK(workspace_of(handle, key, w, &asked));
  if (asked > WORKSPACE) TFC_FAIL(s, TFC_UNIMPLEMENTED, "cuDNN wants %zu bytes for this convolution", asked);
  if (asked > w->workspace) w->workspace = asked;
out:
  return s;
}

// --- Choices of the layout that were saved, by model of the device and hash of the key -----------------------------
static tfc_status make_plan(struct tfc_cuda_library *library, const void *bytes, void **out);
static void free_plan(void *plan) {
  free_way(&((struct tfc_cuda_conv_plan *)plan)->way);
  free(plan);
}
static struct tfc_cuda_plans plans = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                      .making = PTHREAD_MUTEX_INITIALIZER,
                                      .key_size = sizeof(struct key),
                                      .make = make_plan,
                                      .free = free_plan};

static void choice_of(const void *plan, const char **out_model, int *out_values) {
  const struct tfc_cuda_conv_plan *p = plan;
  *out_model = p->model;
  out_values[0] = p->way.first, out_values[1] = p->way.algorithm, out_values[2] = (int)p->way.math;
  out_values[3] = p->gain_ns;
}
static struct tfc_cuda_choices choices = {
    .kind = "conv", .version = cudnnGetVersion, .value_count = 4, .of = choice_of};

char *tfc_cuda_conv_tuning(void) {
  return tfc_cuda_choices_write(&choices, &plans);
}
void tfc_cuda_conv_set_tuning(const char *lines) {
  tfc_cuda_choices_read(&choices, &plans, lines);
}

// Uses the saved choice for this convolution, if the library still accepts it.
static bool take_kept(struct cudnnContext *handle, struct tfc_cuda_conv_plan *p, struct way *out) {
  const int *kept = tfc_cuda_choices_find(&choices, p->model, &p->key, sizeof p->key);
  struct way w = {0};
  size_t asked = 0;
  if (!kept || kept[1] < 0 || kept[1] >= MOST) return false;
  tfc_status s = describe(&p->key, kept[0] != 0, &w);
  if (s) {
    tfc_status_free(s);
    return false;
  }
  w.algorithm = kept[1];
  w.math = runs_in(w.math, (cudnnMathType_t)kept[2]);
  if (!cudnnSetConvolutionMathType(w.convolution, w.math) && !workspace_of(handle, &p->key, &w, &asked) &&
      asked <= WORKSPACE) {
    w.workspace = asked;
    p->gain_ns = kept[3];
    *out = w;
    return true;
  }
  free_way(&w);
  return false;
}

// ms: of the chosen way, converting included; other_ms: of the one in the layout that the graph does not have, without
// converting (below 0: there is none).
static int gain_ns(const struct tfc_cuda_conv *c, float ms, float other_ms) {
  const double gain = c->channels_first ? (double)ms - (double)other_ms : (double)other_ms - (double)ms;
  return other_ms < 0 ? NO_WAY : (int)fmin(fmax(1e6 * gain, -1e9), 1e9);
}

static tfc_status make_plan(struct tfc_cuda_library *library, const void *bytes, void **out) {
  tfc_status s = NULL, first_failure = NULL;
  const struct key *key = bytes;
  struct cudnnContext *handle = NULL;
  struct tfc_buffer *memory = NULL;
  const struct tfc_cuda_conv *c = &key->conv;
  struct way best = {0};
  struct tfc_cuda_conv_plan *p = calloc(1, sizeof *p);
  if (!p) return tfc_status_no_memory(NULL);
  p->key = *key;
  TFC_TRY(s, library->cudnn(library, &handle));
  tfc_cuda_choice_model(library, p->model);
  bool known = take_kept(handle, p, &best);
  size_t images = bytes_of(key, 0) + bytes_of(key, 2), all = images + bytes_of(key, 1) + WORKSPACE;
  if (!known && (s = library->device->driver->allocate(library->device, all, &memory))) {
    if (tfc_status_code(s) != TFC_RESOURCE_EXHAUSTED) goto out;
    tfc_status declined = tfc_status_make(TFC_UNIMPLEMENTED, "measuring: %s", tfc_status_message(s));
    tfc_status_free(s); // this is no error: plain loops need less memory
    s = declined;
    goto out;
  }
  // Converting an image reads and writes it once, at about 2 TB/s, and is a launch of about 2 us. In ms, for both.
  const float converting = (float)(2.0 * (double)images / 2e12 * 1e3) + 2 * 0.002f;
  float other_ms = -1;
  for (int first = 0; first < 2 && !known; first++) {
    struct way w = {0};
    tfc_status failure = describe(key, first, &w);
    if (!failure) failure = measure(handle, key, &w, memory->data);
    if (failure) {
      free_way(&w);
      if (first_failure)
        tfc_status_free(failure);
      else
        first_failure = failure;
      continue;
    }
    if (first != c->channels_first) other_ms = w.ms, w.ms += converting;
    if (!best.x || w.ms < best.ms) {
      free_way(&best);
      best = w;
    } else {
      free_way(&w);
    }
  }
  if (!best.x) {
    s = first_failure;
    first_failure = NULL;
    goto out;
  }
  if (!known) p->gain_ns = gain_ns(c, best.ms, other_ms);
  p->way = best;
  best = (struct way){0};
  bool transposed = p->way.first != (c->channels_first != 0);
  size_t at = (p->way.workspace + ALIGN - 1) / ALIGN * ALIGN;
  p->w_at = at;
  at += bytes_of(key, 1);
  p->x_at = p->y_at = SIZE_MAX;
  if (transposed || is_padded(key)) {
    p->x_at = at;
    at += bytes_of(key, 0);
  }
  if (transposed) {
    p->y_at = at;
    at += bytes_of(key, 2);
  }
  p->scratch = at;
  *out = p, p = NULL;
out:
  tfc_status_free(first_failure);
  free_way(&best);
  tfc_buffer_release(memory);
  free(p);
  return s;
}

// Sizes and strides of descriptors are ints, and a tensor may have 2^31 elements, with its padding.
static bool reaches(const struct tfc_cuda_conv *c) {
  const struct tfc_cuda_slide *g = &c->slide;
  double x = (double)g->batch * (double)g->channels, y = (double)g->batch * (double)g->filters,
         w = (double)g->channels / (double)g->groups * (double)g->filters;
  for (int k = 0; k < 3; k++) {
    x *= (double)(g->x.size[k] + c->after[k]);
    y *= (double)g->y.size[k];
    w *= (double)g->size[k];
    if (g->before[k] > INT_MAX || g->step[k] > INT_MAX || g->dilation[k] > INT_MAX) return false;
  }
  return x <= INT_MAX && y <= INT_MAX && w <= INT_MAX;
}

tfc_status tfc_cuda_conv_find(struct tfc_cuda_library *library, const struct tfc_cuda_conv *conv,
                              const struct tfc_cuda_conv_plan **out) {
  const void *found = NULL;
  struct key key;
  memset(&key, 0, sizeof key);
  memcpy(&key.conv, conv, sizeof key.conv);
  key.sm_count = library->sm_count, key.capability = library->capability;
  key.math = conv->type == TFC_FLOAT ? library->math : TFC_MATH_FLOAT32, key.is_virtual = library->is_virtual;
  if (!reaches(conv)) return tfc_status_make(TFC_UNIMPLEMENTED, "more than cuDNN's indices reach");
  for (int k = 0; k < 3; k++) {
    const struct tfc_cuda_slide *g = &conv->slide;
    int64_t more = conv->after[k] - g->before[k], reach = (g->size[k] - 1) * g->dilation[k] + 1;
    key.padded[k] = g->x.size[k] + (more > 0 ? more : 0);
    if ((key.padded[k] + 2 * g->before[k] - reach) / g->step[k] + 1 != g->y.size[k])
      return tfc_status_make(TFC_UNIMPLEMENTED, "padding that is larger before the image than behind it");
  }
  TFC_RETURN_IF_ERROR(tfc_cuda_plans_find(&plans, library, &key, &found));
  *out = found;
  return NULL;
}

size_t tfc_cuda_conv_scratch(const struct tfc_cuda_conv_plan *plan) {
  return plan->scratch;
}

// Converts an image between the graph's layout and cuDNN's. `size`: its spatial dimensions in cuDNN's layout, padding
// included.
static int move_image(const struct tfc_cuda_conv_plan *p, const struct tfc_cuda_layout *ours, const int64_t *size,
                      int64_t channels, bool back, void *to, const void *from, void *stream) {
  const struct tfc_cuda_conv *c = &p->key.conv;
  const struct tfc_cuda_layout theirs = tfc_cuda_layout_packed(size, channels, p->way.first);
  const struct tfc_cuda_images images = {.batch = c->slide.batch,
                                         .channels = channels,
                                         .size = {ours->size[0], ours->size[1], ours->size[2]},
                                         .element = (int32_t)tfc_dtype_size((tfc_dtype)c->type)};
  return tfc_cuda_images_copy(&images, back ? &theirs : ours, from, back ? ours : &theirs, to, stream);
}
static int take_x(const struct tfc_cuda_conv_plan *p, void *to, const void *from, void *stream) {
  int error = is_padded(&p->key) ? tfc_cuda_clear_bytes(to, bytes_of(&p->key, 0), stream) : 0;
  const struct tfc_cuda_slide *g = &p->key.conv.slide;
  return error ? error : move_image(p, &g->x, p->key.padded, g->channels, false, to, from, stream);
}
static int give_x(const struct tfc_cuda_conv_plan *p, void *to, const void *from, void *stream) {
  const struct tfc_cuda_slide *g = &p->key.conv.slide;
  return move_image(p, &g->x, p->key.padded, g->channels, true, to, from, stream);
}
static int move_y(const struct tfc_cuda_conv_plan *p, bool back, void *to, const void *from, void *stream) {
  const struct tfc_cuda_slide *g = &p->key.conv.slide;
  return move_image(p, &g->y, g->y.size, g->filters, back, to, from, stream);
}
tfc_filter_form tfc_cuda_conv_form(const struct tfc_cuda_conv_plan *plan) {
  return plan->way.first ? TFC_FILTER_CHANNELS_FIRST : TFC_FILTER_CHANNELS_LAST;
}
double tfc_cuda_conv_channels_last_gain_us(const struct tfc_cuda_conv_plan *plan) {
  return plan->gain_ns == NO_WAY ? NAN : plan->gain_ns / 1e3;
}

tfc_status tfc_cuda_conv_run(struct tfc_cuda_launch *l, const struct tfc_cuda_conv_plan *plan, void *x, void *w,
                             tfc_filter_form form, void *y, void *scratch) {
  tfc_status s = NULL;
  struct cudnnContext *handle = NULL;
  const struct tfc_cuda_conv *c = &plan->key.conv;
  const struct way *way = &plan->way;
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const void *alpha = c->type == TFC_DOUBLE ? (const void *)&wide_one : &one;
  const void *beta = c->type == TFC_DOUBLE ? (const void *)&wide_zero : &zero;
  char *memory = scratch;
  bool own_x = plan->x_at != SIZE_MAX, own_y = plan->y_at != SIZE_MAX;
  const tfc_filter_form wanted = tfc_cuda_conv_form(plan);
  const bool own_w = form != wanted;
  void *fx = own_x ? memory + plan->x_at : x, *fy = own_y ? memory + plan->y_at : y,
       *fw = own_w ? memory + plan->w_at : w;
  int error = 0;
  TFC_RETURN_IF_ERROR(l->library->cudnn(l->library, &handle));
  if (own_x && c->role != TFC_CUDA_CONV_INPUT) error = take_x(plan, fx, x, l->stream);
  if (!error && own_y && c->role != TFC_CUDA_CONV_FORWARD) error = move_y(plan, false, fy, y, l->stream);
  if (!error && own_w && c->role != TFC_CUDA_CONV_FILTER)
    error = tfc_cuda_filter_transpose(c, form, w, wanted, fw, l->stream);
  if (error) return tfc_cuda_status(l, error);
  switch (c->role) {
  case TFC_CUDA_CONV_FORWARD:
    TFC_CUDNN_CHECK(cudnnConvolutionForward(handle, alpha, way->x, fx, way->w, fw, way->convolution,
                                            (cudnnConvolutionFwdAlgo_t)way->algorithm, memory, way->workspace, beta,
                                            way->y, fy));
    if (own_y) error = move_y(plan, true, y, fy, l->stream);
    break;
  case TFC_CUDA_CONV_INPUT:
    TFC_CUDNN_CHECK(cudnnConvolutionBackwardData(handle, alpha, way->w, fw, way->y, fy, way->convolution,
                                                 (cudnnConvolutionBwdDataAlgo_t)way->algorithm, memory, way->workspace,
                                                 beta, way->x, fx));
    if (own_x) error = give_x(plan, x, fx, l->stream);
    break;
  default:
    TFC_CUDNN_CHECK(cudnnConvolutionBackwardFilter(handle, alpha, way->x, fx, way->y, fy, way->convolution,
                                                   (cudnnConvolutionBwdFilterAlgo_t)way->algorithm, memory,
                                                   way->workspace, beta, way->w, fw));
    error = tfc_cuda_filter_transpose(c, wanted, fw, form, w, l->stream);
    break;
  }
  tfc_cuda_count_launch();
  if (error) return tfc_cuda_status(l, error);
out:
  return s;
}

#endif
