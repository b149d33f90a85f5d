// EncodeWav and DecodeWav for WAV files in memory, with 16 bits per sample. A file consists of a header and chunks;
// each chunk begins with four letters and its length. Numbers are little-endian.
#include <math.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

enum { PCM = 1, BITS = 16, HEADER = 44, FORMAT = 16 };
static const float SCALE = 1 << 15;

struct wave {
  int64_t channels, rate, samples;
  const uint8_t *data; // [samples, channels] of two bytes
};
static uint32_t number(const uint8_t *p, int bytes) {
  uint32_t v = 0;
  for (int i = 0; i < bytes; i++) v |= (uint32_t)p[i] << 8 * i;
  return v;
}

static tfc_status read_format(const uint8_t *p, uint32_t size, struct wave *w) {
  TFC_KERNEL_CHECK(size >= FORMAT, "Bad format chunk size for WAV: Expected at least 16, but got %u", size);
  TFC_KERNEL_CHECK(number(p, 2) == PCM, "Bad audio format for WAV: Expected 1 (PCM), but got %u", number(p, 2));
  w->channels = number(p + 2, 2), w->rate = number(p + 4, 4);
  const uint32_t bits = number(p + 14, 2), frame = number(p + 12, 2);
  TFC_KERNEL_CHECK(w->channels > 0, "Bad number of channels for WAV: Expected 1 or more, but got 0");
  TFC_KERNEL_CHECK(bits == BITS, "Can only read 16-bit WAV files, but received %u", bits);
  TFC_KERNEL_CHECK(frame == w->channels * 2, "Bad bytes per sample in WAV header: Expected %lld but got %u",
                   (long long)w->channels * 2, frame);
  TFC_KERNEL_CHECK(number(p + 8, 4) == frame * (uint64_t)w->rate,
                   "Bad bytes per second in WAV header: Expected %lld but got %u", (long long)(frame * w->rate),
                   number(p + 8, 4));
  return NULL;
}
static tfc_status read_wave(tfc_str file, struct wave *w) {
  *w = (struct wave){0};
  TFC_KERNEL_CHECK(file.size >= 12 && tfc_str_starts(file, "RIFF"), "Header mismatch: Expected RIFF");
  const uint8_t *p = (const uint8_t *)file.data, *end = p + file.size;
  TFC_KERNEL_CHECK(memcmp(p + 8, "WAVE", 4) == 0, "Header mismatch: Expected WAVE");
  for (p += 12; end - p >= 8;) {
    const char *name = (const char *)p;
    const uint32_t size = number(p + 4, 4);
    p += 8;
    TFC_KERNEL_CHECK(size <= (size_t)(end - p), "Data too short when trying to read a chunk of %u bytes", size);
    if (memcmp(name, "fmt ", 4) == 0) TFC_RETURN_IF_ERROR(read_format(p, size, w));
    if (memcmp(name, "data", 4) == 0 && !w->data) {
      TFC_KERNEL_CHECK(w->channels, "a WAV file whose data comes before its format");
      w->data = p;
      w->samples = size / (w->channels * 2);
    }
    p += size;
  }
  TFC_KERNEL_CHECK(w->data, "No data chunk found in WAV");
  return NULL;
}

// contents -> audio [samples, channels], sample_rate. If more channels are wanted than the file has, its last one is
// repeated; samples after the end of the file are 0.
static tfc_status decode_wav(struct tfc_kernel_ctx *ctx) {
  const int64_t channels = tfc_node_attr_int(ctx->graph, ctx->node, "desired_channels", -1);
  const int64_t samples = tfc_node_attr_int(ctx->graph, ctx->node, "desired_samples", -1);
  struct tfc_tensor *y = NULL, *rate = NULL;
  struct wave w;
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "contents must be scalar, got shape %s",
                   tfc_shape_show(&ctx->inputs[0]->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(read_wave(tfc_tensor_get_string(ctx->inputs[0], 0), &w));
  const struct tfc_shape shape = TFC_SHAPE(samples < 0 ? w.samples : samples, channels < 0 ? w.channels : channels);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &shape, &y));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, TFC_INT32, &TFC_SHAPE_SCALAR, &rate));
  *(int32_t *)rate->data = (int32_t)w.rate;
  for (int64_t i = 0; i < shape.dims[0]; i++)
    for (int64_t c = 0; c < shape.dims[1]; c++) {
      const int64_t from = i * w.channels + (c < w.channels ? c : w.channels - 1);
      ((float *)y->data)[i * shape.dims[1] + c] =
          i < w.samples ? (float)(int16_t)number(w.data + 2 * from, 2) * (1 / SCALE) : 0;
    }
  return NULL;
}

static void put(uint8_t **p, uint32_t v, int bytes) {
  for (int i = 0; i < bytes; i++) *(*p)++ = (uint8_t)(v >> 8 * i);
}
static void put_name(uint8_t **p, const char name[4]) {
  memcpy(*p, name, 4);
  *p += 4;
}
// audio [samples, channels], sample_rate
static tfc_status encode_wav(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *rate = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *scratch = NULL;
  TFC_KERNEL_CHECK(x->shape.rank == 2, "audio must be 2-dimensional but got shape %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(rate->shape.rank == 0, "sample_rate must be a scalar");
  const int64_t channels = x->shape.dims[1], n = tfc_tensor_elements(x), second = *(const int32_t *)rate->data;
  TFC_KERNEL_CHECK(second > 0 && channels > 0 && channels <= UINT16_MAX && n <= INT32_MAX / 2 - HEADER,
                   "sample_rate must be > 0, and there must be channels: %lld, %lld", (long long)second,
                   (long long)channels);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE_SCALAR, &y));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, HEADER + (size_t)n * 2, &scratch));
  uint8_t *p = scratch->data;
  put_name(&p, "RIFF"), put(&p, (uint32_t)(HEADER - 8 + n * 2), 4), put_name(&p, "WAVE");
  put_name(&p, "fmt "), put(&p, FORMAT, 4), put(&p, PCM, 2), put(&p, (uint32_t)channels, 2);
  put(&p, (uint32_t)second, 4), put(&p, (uint32_t)(second * channels * 2), 4), put(&p, (uint32_t)channels * 2, 2);
  put(&p, BITS, 2), put_name(&p, "data"), put(&p, (uint32_t)(n * 2), 4);
  for (int64_t i = 0; i < n; i++) {
    const float v = roundf(((const float *)x->data)[i] * SCALE);
    put(&p, (uint32_t)(int32_t)(v != v ? 0 : fmaxf(fminf(v, INT16_MAX), INT16_MIN)), 2);
  }
  const tfc_status s = tfc_tensor_set_string(y, 0, (tfc_str){scratch->data, HEADER + (size_t)n * 2});
  tfc_buffer_release(scratch);
  return s;
}
static tfc_status shape_decode(struct tfc_shape_ctx *ctx) {
  const int64_t channels = tfc_node_attr_int(ctx->graph, ctx->node, "desired_channels", -1);
  const int64_t samples = tfc_node_attr_int(ctx->graph, ctx->node, "desired_samples", -1);
  struct tfc_shape scalar;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 0, &scalar));
  ctx->outputs[0] = TFC_SHAPE(samples < 0 ? TFC_DIM_UNKNOWN : samples, channels < 0 ? TFC_DIM_UNKNOWN : channels);
  ctx->outputs[1] = TFC_SHAPE_SCALAR;
  return NULL;
}

#define ROW .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE
static const struct tfc_op_def io_wave_rows[] = {
    {.name = "DecodeWav",
     .inputs = "contents: string",
     .outputs = "audio: float, sample_rate: int32",
     .attrs = "desired_channels: int = -1, desired_samples: int = -1",
     ROW,
     .shape = shape_decode,
     .kernel = decode_wav},
    {.name = "EncodeWav",
     .inputs = "audio: float, sample_rate: int32",
     .outputs = "contents: string",
     ROW,
     .shape = ops_shape_scalar,
     .kernel = encode_wav,
     .samples = "float[5,2], int32[]=8000"},
};
TFC_REGISTER_OPS(io_wave_rows);
