// AudioSpectrogram and Mfcc, which prepare sound for speech models. Both compute in double and round once.
#include <stdlib.h>
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

static int64_t next_power(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

// --- AudioSpectrogram ------------------------------------------------------------------------------------------------
struct spectrogram {
  int64_t window, stride, size; // size: the length of the transform, a power of two
  bool squared;
  double *hann;       // [window]
  double (*roots)[2]; // [size / 2]
};
static tfc_status spectrogram_read(const struct tfc_graph *g, const struct tfc_node *n, struct spectrogram *s) {
  s->window = tfc_node_attr_int(g, n, "window_size", 0);
  s->stride = tfc_node_attr_int(g, n, "stride", 0);
  s->squared = tfc_node_attr_bool(g, n, "magnitude_squared", false);
  TFC_KERNEL_CHECK(s->window >= 2 && s->window <= 1 << 24, "window_size must be from 2 to 2^24, not %lld",
                   (long long)s->window);
  TFC_KERNEL_CHECK(s->stride >= 1, "stride must be at least 1, not %lld", (long long)s->stride);
  s->size = next_power(s->window);
  return NULL;
}
static tfc_status spectrogram_prepare(struct tfc_prepare_ctx *ctx) {
  struct spectrogram *s = TFC_ARENA_NEW(ctx->arena, struct spectrogram);
  if (!s) return tfc_status_no_memory(NULL);
  TFC_RETURN_IF_ERROR(spectrogram_read(ctx->graph, ctx->node, s));
  s->hann = tfc_arena_alloc(ctx->arena, (size_t)s->window * sizeof *s->hann);
  s->roots = tfc_arena_alloc(ctx->arena, (size_t)s->size * sizeof *s->roots);
  if (!s->hann || !s->roots) return tfc_status_no_memory(NULL);
  for (int64_t i = 0; i < s->window; i++)
    s->hann[i] = 0.5 - 0.5 * cos(2 * M_PI * (double)i / (double)s->window); // the periodic form of the window
  for (int64_t i = 0; i < s->size / 2; i++) {
    const double angle = -2 * M_PI * (double)i / (double)s->size;
    s->roots[i][0] = cos(angle), s->roots[i][1] = sin(angle);
  }
  ctx->state = s;
  return NULL;
}

// Transforms x [size] of real and imaginary parts, in place.
static void transform(const struct spectrogram *s, double (*x)[2]) {
  const int64_t n = s->size;
  for (int64_t i = 1, j = 0; i < n; i++) { // puts elements in the order of reversed bits
    int64_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i >= j) continue;
    const double re = x[i][0], im = x[i][1];
    x[i][0] = x[j][0], x[i][1] = x[j][1];
    x[j][0] = re, x[j][1] = im;
  }
  for (int64_t length = 2; length <= n; length *= 2)
    for (int64_t i = 0; i < n; i += length)
      for (int64_t k = 0; k < length / 2; k++) {
        const double *w = s->roots[k * (n / length)];
        double *a = x[i + k], *b = x[i + k + length / 2];
        const double re = b[0] * w[0] - b[1] * w[1], im = b[0] * w[1] + b[1] * w[0];
        b[0] = a[0] - re, b[1] = a[1] - im;
        a[0] += re, a[1] += im;
      }
}

// Input [samples, channels]; output [channels, slices, 1 + size / 2].
static tfc_status spectrogram(struct tfc_kernel_ctx *ctx) {
  const struct spectrogram *s = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *scratch = NULL;
  TFC_KERNEL_CHECK(x->shape.rank == 2, "input must be 2-dimensional%s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  const int64_t samples = x->shape.dims[0], channels = x->shape.dims[1], bins = 1 + s->size / 2;
  const int64_t slices = samples < s->window ? 0 : 1 + (samples - s->window) / s->stride;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(channels, slices, bins), &y));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)s->size * 2 * sizeof(double), &scratch));
  double(*line)[2] = scratch->data;
  float *out = y->data;
  for (int64_t c = 0; c < channels; c++)
    for (int64_t k = 0; k < slices; k++) {
      memset(line, 0, (size_t)s->size * sizeof *line);
      for (int64_t i = 0; i < s->window; i++)
        line[i][0] = (double)((const float *)x->data)[(k * s->stride + i) * channels + c] * s->hann[i];
      transform(s, line);
      for (int64_t i = 0; i < bins; i++) {
        const float power = (float)(line[i][0] * line[i][0] + line[i][1] * line[i][1]);
        *out++ = s->squared ? power : sqrtf(power);
      }
    }
  tfc_buffer_release(scratch);
  return NULL;
}
static tfc_status shape_spectrogram(struct tfc_shape_ctx *ctx) {
  struct spectrogram s;
  struct tfc_shape x;
  TFC_RETURN_IF_ERROR(spectrogram_read(ctx->graph, ctx->node, &s));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &x));
  const int64_t slices = x.dims[0] < 0          ? TFC_DIM_UNKNOWN
                         : x.dims[0] < s.window ? 0
                                                : 1 + (x.dims[0] - s.window) / s.stride;
  ctx->outputs[0] = TFC_SHAPE(x.dims[1], slices, 1 + s.size / 2);
  return NULL;
}

// --- Mfcc ------------------------------------------------------------------------------------------------------------
// Mel-frequency cepstral coefficients. Magnitudes are summed in triangles, whose centres are evenly spaced on the mel
// scale; each triangle begins at the centre before its own and ends at the one after. The logarithms of these sums go
// through a cosine transform.
static double mel(double frequency) {
  return 1127.0 * log1p(frequency / 700.0);
}
struct mfcc {
  int64_t bins, first, last, channels, coefficients;
  int64_t *band;           // [bins]: the triangle on whose falling side the bin is; -1: before the first
  double *weight, *cosine; // [bins]: the bin's share in that triangle; [coefficients, channels]
};
static void mfcc_make(double rate, double low, double high, struct mfcc *m) {
  const double hertz = 0.5 * rate / (double)(m->bins - 1), bottom = mel(low);
  const double step = (mel(high) - bottom) / (double)(m->channels + 1);
  m->first = (int64_t)(1.5 + low / hertz), m->last = (int64_t)(high / hertz);
  if (m->last >= m->bins) return;
  int64_t channel = 0; // its centre is bottom + step (channel + 1)
  for (int64_t i = m->first; i <= m->last; i++) {
    const double at = mel((double)i * hertz);
    while (channel < m->channels && bottom + step * (double)(channel + 1) < at) channel++;
    m->band[i] = channel - 1;
    m->weight[i] = (bottom + step * (double)(channel + 1) - at) / step;
  }
  for (int64_t i = 0; i < m->coefficients; i++)
    for (int64_t j = 0; j < m->channels; j++)
      m->cosine[i * m->channels + j] =
          sqrt(2.0 / (double)m->channels) * cos((double)i * M_PI / (double)m->channels * ((double)j + 0.5));
}
static void mfcc_line(const struct mfcc *m, const float *powers, double *banks, float *out) {
  memset(banks, 0, (size_t)m->channels * sizeof *banks);
  for (int64_t i = m->first; i <= m->last; i++) {
    const double magnitude = sqrt((double)powers[i]), part = magnitude * m->weight[i];
    const int64_t c = m->band[i];
    if (c >= 0) banks[c] += part;
    if (c + 1 < m->channels) banks[c + 1] += magnitude - part;
  }
  for (int64_t c = 0; c < m->channels; c++) banks[c] = log(banks[c] < 1e-12 ? 1e-12 : banks[c]);
  for (int64_t i = 0; i < m->coefficients; i++) {
    double sum = 0;
    for (int64_t c = 0; c < m->channels; c++) sum += m->cosine[i * m->channels + c] * banks[c];
    out[i] = (float)sum;
  }
}
// Inputs: spectrogram [channels, slices, bins] of squared magnitudes, sample_rate; output [channels, slices,
// coefficients].
static tfc_status mfcc(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const struct tfc_graph *g = ctx->graph;
  const struct tfc_node *n = ctx->node;
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *scratch = NULL;
  const double high = tfc_node_attr_float(g, n, "upper_frequency_limit", 4000),
               low = tfc_node_attr_float(g, n, "lower_frequency_limit", 20);
  TFC_KERNEL_CHECK(x->shape.rank == 3, "spectrogram must be 3-dimensional%s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[1]) == 1, "Input sample_rate should be a scalar tensor");
  struct mfcc m = {.bins = x->shape.dims[2],
                   .channels = tfc_node_attr_int(g, n, "filterbank_channel_count", 40),
                   .coefficients = tfc_node_attr_int(g, n, "dct_coefficient_count", 13)};
  const double rate = *(const int32_t *)ctx->inputs[1]->data;
  TFC_KERNEL_CHECK(m.bins >= 2 && rate > 0 && m.channels >= 1 && m.coefficients >= 1 && m.coefficients <= m.channels &&
                       m.channels < 1 << 20 && low >= 0 && high > low,
                   "Mfcc initialization failed for channel count %lld, sample rate %g and input channels %lld",
                   (long long)m.channels, rate, (long long)m.bins);
  TFC_RETURN_IF_ERROR(
      tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(x->shape.dims[0], x->shape.dims[1], m.coefficients), &y));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(
      ctx, (size_t)(2 * m.bins + m.coefficients * m.channels + m.channels) * sizeof(double), &scratch));
  m.weight = scratch->data;
  m.band = (int64_t *)(m.weight + m.bins);
  m.cosine = m.weight + 2 * m.bins;
  mfcc_make(rate, low, high, &m);
  if (m.last >= m.bins) memset(y->data, 0, y->size); // the upper limit is above all bins: TensorFlow gives zeros
  for (int64_t i = 0; m.last < m.bins && i < x->shape.dims[0] * x->shape.dims[1]; i++)
    mfcc_line(&m, (const float *)x->data + i * m.bins, m.cosine + m.coefficients * m.channels,
              (float *)y->data + i * m.coefficients);
  tfc_buffer_release(scratch);
  return NULL;
}
static tfc_status shape_mfcc(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, scalar;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 3, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 0, &scalar));
  x.dims[2] = tfc_node_attr_int(ctx->graph, ctx->node, "dct_coefficient_count", 13);
  ctx->outputs[0] = x;
  return NULL;
}
OPS_COST_PER_ELEMENT(cost_spectrogram, 40)

static const struct tfc_op_def signal_audio_rows[] = {
    {.name = "AudioSpectrogram",
     .inputs = "input: float",
     .outputs = "spectrogram: float",
     .attrs = "window_size: int, stride: int, magnitude_squared: bool = false",
     .shape = shape_spectrogram,
     .cost = cost_spectrogram,
     .prepare = spectrogram_prepare,
     .kernel = spectrogram,
     .samples = "float[50,2] {window_size=12, stride=5}"},
    {.name = "Mfcc",
     .inputs = "spectrogram: float, sample_rate: int32",
     .outputs = "output: float",
     .attrs = "upper_frequency_limit: float = 4000.0, lower_frequency_limit: float = 20.0, "
              "filterbank_channel_count: int = 40, dct_coefficient_count: int = 13",
     .host_inputs = 2,
     .shape = shape_mfcc,
     .cost = cost_spectrogram,
     .kernel = mfcc,
     .samples = "float[1,2,33]=[1,2,3,4,5,6,7,8,9,8,7,6,5,4,3,2,1,2,3,4,5,6,7,8,9,8,7,6,5,4,3,2,1,1,2,3,4,5,6,7,8,9,8,"
                "7,6,5,4,3,2,1,2,3,4,5,6,7,8,9,8,7,6,5,4,3,2,1], int32[]=16000"},
};
TFC_REGISTER_OPS(signal_audio_rows);
