// Operations that make summaries: Summary protos in a string, equal to those of TensorFlow's kernels in every byte.
// io_writer.c writes them to events files.
#include "runtime/ops/io_summary.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/graph/export_attr.h"
#include "runtime/ops/image_codec.h"

static void put_double(struct tfc_text *out, uint32_t number, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (!bits) return; // protos do not contain default values
  tfc_wire_put_varint(out, number << 3 | TFC_WIRE_64);
  tfc_text_add(out, (tfc_str){(const char *)&value, sizeof value});
}

// Returns element `i` of a real tensor.
static double real_at(const struct tfc_tensor *t, int64_t i) {
  if (t->dtype == TFC_BOOL) return ((const bool *)t->data)[i];
  OPS_SWITCH(OPS_REALS, t->dtype, { return (double)OPS_GET(((const S *)t->data)[i]); })
  return 0;
}

tfc_status tfc_summary_scalar(struct tfc_text *out, tfc_str tag, double value) {
  struct tfc_text item = {0};
  if (tag.size) tfc_wire_put_bytes(&item, 1, tag);
  tfc_wire_put_float(&item, 2, (float)value);
  tfc_wire_put_bytes(out, 1, tfc_text_view(&item));
  out->failed |= item.failed;
  tfc_text_deinit(&item);
  return NULL;
}

// --- Histograms --------------------------------------------------------------------------------------------------
// The limits of buckets grow by a tenth, from 1e-12 to 1e20, and are mirrored below zero (as in TensorFlow's
// lib/histogram).
enum { LIMITS_MOST = 2000 };
static uint32_t make_limits(double *limits) {
  uint32_t half = 0;
  static const double least = 1.0e-12, most = 1.0e20;
  for (double v = least; v < most; v *= 1.1) half++;
  uint32_t n = 2 * (half + 1) + 1, at = 0;
  limits[half + 1] = 0;
  for (double v = least; v < most; v *= 1.1, at++) {
    limits[half + 2 + at] = v;
    limits[half - at] = -v;
  }
  limits[n - 1] = DBL_MAX;
  limits[0] = -DBL_MAX;
  return n;
}

tfc_status tfc_summary_histogram(struct tfc_text *out, tfc_str tag, const struct tfc_tensor *values, tfc_str node) {
  double limits[LIMITS_MOST], counts[LIMITS_MOST] = {0}, least = DBL_MAX, most = -DBL_MAX, sum = 0, squares = 0;
  uint32_t n = make_limits(limits);
  int64_t count = tfc_tensor_elements(values);
  for (int64_t i = 0; i < count; i++) {
    double x = real_at(values, i);
    TFC_KERNEL_CHECK(!isnan(x), "Nan in summary histogram for: %.*s", TFC_STR_ARG(node));
    TFC_KERNEL_CHECK(!isinf(x), "Infinity in summary histogram for: %.*s", TFC_STR_ARG(node));
    uint32_t low = 0, high = n; // find the first limit above x
    while (low < high) {
      uint32_t middle = (low + high) / 2;
      if (limits[middle] > x)
        high = middle;
      else
        low = middle + 1;
    }
    counts[low < n ? low : n - 1] += 1;
    if (x < least) least = x;
    if (x > most) most = x;
    sum += x;
    squares += x * x;
  }
  struct tfc_text histogram = {0}, ends = {0}, buckets = {0}, item = {0};
  for (uint32_t i = 0; i < n;) { // neighbouring empty buckets are joined into one
    double end = limits[i], c = counts[i++];
    for (; c <= 0 && i < n && counts[i] <= 0; i++) end = limits[i];
    tfc_text_add(&ends, (tfc_str){(const char *)&end, 8});
    tfc_text_add(&buckets, (tfc_str){(const char *)&c, 8});
  }
  put_double(&histogram, 1, least);
  put_double(&histogram, 2, most);
  put_double(&histogram, 3, (double)count);
  put_double(&histogram, 4, sum);
  put_double(&histogram, 5, squares);
  tfc_wire_put_bytes(&histogram, 6, tfc_text_view(&ends));
  tfc_wire_put_bytes(&histogram, 7, tfc_text_view(&buckets));
  if (tag.size) tfc_wire_put_bytes(&item, 1, tag);
  tfc_wire_put_bytes(&item, 5, tfc_text_view(&histogram));
  tfc_wire_put_bytes(out, 1, tfc_text_view(&item));
  out->failed |= item.failed | histogram.failed | ends.failed | buckets.failed;
  tfc_text_deinit(&histogram);
  tfc_text_deinit(&ends);
  tfc_text_deinit(&buckets);
  tfc_text_deinit(&item);
  return NULL;
}

// --- Tensors -----------------------------------------------------------------------------------------------------
tfc_status tfc_summary_tensor(struct tfc_text *out, tfc_str tag, tfc_str node, const struct tfc_tensor *t,
                              tfc_str metadata) {
  struct tfc_text item = {0};
  TFC_KERNEL_CHECK(t->dtype == TFC_STRING || tfc_dtype_is_plain(t->dtype), "a summary cannot hold %s",
                   tfc_dtype_name(t->dtype));
  if (tag.size) tfc_wire_put_bytes(&item, 1, tag);
  if (node.size) tfc_wire_put_bytes(&item, 7, node);
  tfc_wire_put_tensor(&item, 8, t);
  if (metadata.data) tfc_wire_put_bytes(&item, 9, metadata);
  tfc_wire_put_bytes(out, 1, tfc_text_view(&item));
  out->failed |= item.failed;
  tfc_text_deinit(&item);
  return NULL;
}

// --- Kernels -----------------------------------------------------------------------------------------------------
static tfc_status give(struct tfc_kernel_ctx *ctx, struct tfc_text *summary, tfc_status s) {
  struct tfc_tensor *y = NULL;
  if (!s) s = tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE_SCALAR, &y);
  if (!s) s = tfc_tensor_set_text(y, 0, summary);
  tfc_text_deinit(summary);
  return s;
}

static tfc_status scalar_summary(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *tags = ctx->inputs[0], *values = ctx->inputs[1];
  struct tfc_text summary = {0};
  int64_t n = tfc_tensor_elements(tags);
  TFC_KERNEL_CHECK(tfc_shape_equal(&tags->shape, &values->shape), "tags and values are not the same shape: %s != %s",
                   tfc_shape_show(&tags->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&values->shape, (char[TFC_SHAPE_TEXT]){0}));
  tfc_status s = NULL;
  for (int64_t i = 0; !s && i < n; i++)
    s = tfc_summary_scalar(&summary, tfc_tensor_get_string(tags, i), real_at(values, i));
  return give(ctx, &summary, s);
}

static tfc_status histogram_summary(struct tfc_kernel_ctx *ctx) {
  struct tfc_text summary = {0};
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "tags must be scalar");
  return give(
      ctx, &summary,
      tfc_summary_histogram(&summary, tfc_tensor_get_string(ctx->inputs[0], 0), ctx->inputs[1], ctx->node->name));
}

static tfc_status tensor_summary(struct tfc_kernel_ctx *ctx) {
  struct tfc_text summary = {0};
  return give(ctx, &summary, tfc_summary_tensor(&summary, (tfc_str){0}, ctx->node->name, ctx->inputs[0], (tfc_str){0}));
}

static tfc_status tensor_summary_v2(struct tfc_kernel_ctx *ctx) {
  struct tfc_text summary = {0};
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "tag must be scalar");
  TFC_KERNEL_CHECK(ctx->inputs[2]->shape.rank == 0, "serialized_summary_metadata must be scalar");
  tfc_str metadata = tfc_tensor_get_string(ctx->inputs[2], 0);
  return give(ctx, &summary,
              tfc_summary_tensor(&summary, tfc_tensor_get_string(ctx->inputs[0], 0), (tfc_str){0}, ctx->inputs[1],
                                 metadata.data ? metadata : TFC_STR("")));
}

// Adds the tag of item `i`; it contains the number only if there may be several items.
static void put_tag(struct tfc_text *out, tfc_str base, const char *kind, int64_t i, int64_t most) {
  struct tfc_text tag = {0};
  tfc_text_add(&tag, base);
  tfc_text_printf(&tag, most > 1 ? "/%s/%lld" : "/%s", kind, (long long)i);
  tfc_wire_put_bytes(out, 1, tfc_text_view(&tag));
  out->failed |= tag.failed;
  tfc_text_deinit(&tag);
}

static void put_little(struct tfc_text *out, uint32_t value, size_t bytes) {
  char c[4] = {(char)value, (char)(value >> 8), (char)(value >> 16), (char)(value >> 24)};
  tfc_text_add(out, (tfc_str){c, bytes});
}

// Appends frames [frames, channels], with values from -1 to 1, as a 16-bit WAV file.
static void put_wav(struct tfc_text *out, const float *x, int64_t frames, int64_t channels, uint32_t rate) {
  uint32_t bytes = (uint32_t)(frames * channels * 2);
  tfc_text_add(out, TFC_STR("RIFF"));
  put_little(out, bytes + 36, 4);
  tfc_text_add(out, TFC_STR("WAVEfmt "));
  put_little(out, 16, 4);
  put_little(out, 1, 2); // PCM
  put_little(out, (uint32_t)channels, 2);
  put_little(out, rate, 4);
  put_little(out, rate * (uint32_t)channels * 2, 4);
  put_little(out, (uint32_t)channels * 2, 2);
  put_little(out, 16, 2);
  tfc_text_add(out, TFC_STR("data"));
  put_little(out, bytes, 4);
  for (int64_t i = 0; i < frames * channels; i++) {
    float v = roundf(x[i] * 32768.0f);
    v = v >= -32768.0f ? v : -32768.0f; // NaN becomes -32768 as well
    put_little(out, (uint32_t)(int32_t)(v <= 32767.0f ? v : 32767.0f), 2);
  }
}

static tfc_status audio_summary_of(struct tfc_kernel_ctx *ctx, float rate) {
  const struct tfc_tensor *x = ctx->inputs[1];
  struct tfc_text summary = {0};
  int64_t most = tfc_node_attr_int(ctx->graph, ctx->node, "max_outputs", 3);
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "Tag must be a scalar");
  TFC_KERNEL_CHECK(x->shape.rank == 2 || x->shape.rank == 3, "Tensor must be 3-D or 2-D, got: %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(rate > 0, "sample_rate must be > 0");
  int64_t frames = x->shape.dims[1], channels = x->shape.rank == 3 ? x->shape.dims[2] : 1;
  TFC_KERNEL_CHECK(frames * channels < INT64_C(1) << 30, "the sound is too long for a WAV file");
  TFC_KERNEL_CHECK(channels > 0 || x->shape.dims[0] == 0, "channels must be positive");
  TFC_KERNEL_CHECK(x->shape.dims[0] == 0 || rate < 0x1p32f, "sample_rate must be in (0, 2^32), got: %g", (double)rate);
  const uint32_t whole = x->shape.dims[0] ? (uint32_t)lrintf(rate) : 1;
  for (int64_t i = 0; i < x->shape.dims[0] && i < most; i++) {
    struct tfc_text item = {0}, audio = {0}, wav = {0};
    put_tag(&item, tfc_tensor_get_string(ctx->inputs[0], 0), "audio", i, most);
    tfc_wire_put_float(&audio, 1, rate);
    if (channels) tfc_wire_put_varint(&audio, 2 << 3), tfc_wire_put_varint(&audio, (uint64_t)channels);
    if (frames) tfc_wire_put_varint(&audio, 3 << 3), tfc_wire_put_varint(&audio, (uint64_t)frames);
    put_wav(&wav, (const float *)x->data + i * frames * channels, frames, channels, whole ? whole : 1);
    tfc_wire_put_bytes(&audio, 4, tfc_text_view(&wav));
    tfc_wire_put_bytes(&audio, 5, TFC_STR("audio/wav"));
    tfc_wire_put_bytes(&item, 6, tfc_text_view(&audio));
    tfc_wire_put_bytes(&summary, 1, tfc_text_view(&item));
    summary.failed |= item.failed | audio.failed | wav.failed;
    tfc_text_deinit(&item);
    tfc_text_deinit(&audio);
    tfc_text_deinit(&wav);
  }
  return give(ctx, &summary, NULL);
}
static tfc_status audio_summary(struct tfc_kernel_ctx *ctx) {
  return audio_summary_of(ctx, (float)tfc_node_attr_float(ctx->graph, ctx->node, "sample_rate", 0));
}
static tfc_status audio_summary_v2(struct tfc_kernel_ctx *ctx) {
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[2]) == 1, "sample_rate must be a scalar");
  return audio_summary_of(ctx, *(const float *)ctx->inputs[2]->data);
}

// Converts pixels to bytes. If none is negative, 0 … the largest become 0 … 255; otherwise 128 is zero and the largest
// magnitude is 127 away from it. Pixels that are not finite get the bad colour. float and double compute in their own
// type, half in half.
static tfc_status image_bytes(const struct tfc_tensor *x, int64_t image, const uint8_t *bad, uint8_t *out) {
  int64_t hw = x->shape.dims[1] * x->shape.dims[2], depth = x->shape.dims[3];
  OPS_SWITCH(OPS_FLOATS, x->dtype, {
    const S *in = (const S *)x->data + image * hw * depth;
    float least = INFINITY, most = -INFINITY;
    S scale = {0}, offset = {0}, product, sum;
    for (int64_t pass = 0; pass < 2; pass++) {
      for (int64_t i = 0; i < hw; i++) {
        bool finite = true;
        for (int64_t k = 0; k < depth; k++) finite &= isfinite(OPS_GET(in[i * depth + k])) != 0;
        for (int64_t k = 0; k < depth; k++) {
          C v = OPS_GET(in[i * depth + k]);
          if (!pass && finite) {
            least = fminf(least, (float)v);
            most = fmaxf(most, (float)v);
          } else if (pass && finite) {
            OPS_PUT(product, v * OPS_GET(scale));
            OPS_PUT(sum, OPS_GET(product) + OPS_GET(offset));
            out[i * depth + k] = (uint8_t)(int32_t)OPS_GET(sum);
          } else if (pass) {
            out[i * depth + k] = bad[k];
          }
        }
      }
      float far = fmaxf(fabsf(least), fabsf(most));
      OPS_PUT(scale, least < 0 ? (far < 1e-6f ? 0 : 127.0f / far) : most < 1e-6f ? 0 : 255.0f / most);
      OPS_PUT(offset, least < 0 ? 128 : 0);
    }
  })
  return NULL;
}

static tfc_status image_summary(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[1];
  const struct tfc_attr *color = tfc_node_attr(ctx->graph, ctx->node, "bad_color");
  uint8_t bad[4] = {255, 0, 0, 255};
  struct tfc_text summary = {0};
  tfc_status s = NULL;
  int64_t most = tfc_node_attr_int(ctx->graph, ctx->node, "max_images", 3);
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "Tags must be a scalar");
  TFC_KERNEL_CHECK(x->shape.rank == 4 && (x->shape.dims[3] == 1 || x->shape.dims[3] == 3 || x->shape.dims[3] == 4),
                   "Tensor must be 4-D with last dim 1, 3, or 4, not %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  const int64_t *d = x->shape.dims;
  TFC_KERNEL_CHECK(d[1] < INT32_MAX && d[2] < INT32_MAX, "the images are too large");
  TFC_KERNEL_CHECK(d[1] && d[2], "input tensor must have non-zero dims. Found: %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  if (color && color->kind == TFC_ATTR_TENSOR) {
    TFC_KERNEL_CHECK(color->tensor->dtype == TFC_UINT8 && tfc_tensor_elements(color->tensor) >= d[3],
                     "bad_color must be uint8 with a value for each channel");
    memcpy(bad, color->tensor->data, (size_t)d[3]);
  }
  size_t size = (size_t)(d[1] * d[2] * d[3]);
  uint8_t *bytes = malloc(size + 1);
  if (!bytes) return tfc_status_no_memory("a summary");
  for (int64_t i = 0; !s && i < d[0] && i < most; i++) {
    struct tfc_text item = {0}, image = {0}, file = {0};
    if (x->dtype == TFC_UINT8)
      memcpy(bytes, (const uint8_t *)x->data + (size_t)i * size, size);
    else
      s = image_bytes(x, i, bad, bytes);
    if (!s) s = tfc_png_write(bytes, d[1], d[2], (int)d[3], 8, -1, &file);
    put_tag(&item, tfc_tensor_get_string(ctx->inputs[0], 0), "image", i, most);
    for (uint32_t k = 0; k < 3; k++)
      tfc_wire_put_varint(&image, (k + 1) << 3), tfc_wire_put_varint(&image, (uint64_t)d[k + 1]);
    tfc_wire_put_bytes(&image, 4, tfc_text_view(&file));
    tfc_wire_put_bytes(&item, 4, tfc_text_view(&image));
    tfc_wire_put_bytes(&summary, 1, tfc_text_view(&item));
    summary.failed |= item.failed | image.failed | file.failed;
    tfc_text_deinit(&item);
    tfc_text_deinit(&image);
    tfc_text_deinit(&file);
  }
  free(bytes);
  return give(ctx, &summary, s);
}

// Returns the tag of one Summary.value, or "" if it has none.
static tfc_str tag_of(tfc_str value) {
  struct tfc_wire w = tfc_wire_of(value);
  struct tfc_field f;
  tfc_str tag = {0};
  while (tfc_wire_next(&w, &f))
    if (f.number == 1 && f.type == TFC_WIRE_BYTES) tag = f.bytes;
  return tag;
}

static tfc_status merge_one(tfc_str summary, struct tfc_strmap *tags, struct tfc_text *out) {
  struct tfc_wire w = tfc_wire_of(summary);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 1 || f.type != TFC_WIRE_BYTES) continue;
    tfc_str tag = tag_of(f.bytes);
    bool found = false;
    if (tag.size && !tfc_strmap_put(tags, tag, 0, &found)) return tfc_status_no_memory("a summary");
    TFC_KERNEL_CHECK(!found, "Duplicate tag %.*s found in summary inputs", TFC_STR_ARG(tag));
    tfc_wire_put_bytes(out, 1, f.bytes);
  }
  TFC_KERNEL_CHECK(!w.error, "Could not parse one of the summary inputs: %s", w.error);
  return NULL;
}

static tfc_status merge_summary(struct tfc_kernel_ctx *ctx) {
  struct tfc_text summary = {0};
  struct tfc_strmap tags = {0};
  tfc_status s = NULL;
  for (uint32_t i = 0; !s && i < ctx->input_count; i++)
    for (int64_t k = 0; !s && k < tfc_tensor_elements(ctx->inputs[i]); k++)
      s = merge_one(tfc_tensor_get_string(ctx->inputs[i], k), &tags, &summary);
  tfc_strmap_deinit(&tags);
  return give(ctx, &summary, s);
}

#define TYPES "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
#define IO(kernel_)                                                                                                    \
  .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE, .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX,             \
  .shape = ops_shape_scalar, .kernel = kernel_
static const struct tfc_op_def io_summary_rows[] = {
    {.name = "ScalarSummary",
     .inputs = "tags: string, values: T",
     .outputs = "summary: string",
     .attrs = "T: " TYPES,
     IO(scalar_summary),
     .effect = TFC_EFFECT_SAVE},
    {.name = "HistogramSummary",
     .inputs = "tag: string, values: T",
     .outputs = "summary: string",
     .attrs = "T: " TYPES " = float",
     IO(histogram_summary),
     .effect = TFC_EFFECT_SAVE},
    {.name = "TensorSummary",
     .inputs = "tensor: T",
     .outputs = "summary: string",
     .attrs = "T: type, description: string = '', labels: list(string) = [], display_name: string = ''",
     IO(tensor_summary),
     .effect = TFC_EFFECT_SAVE},
    {.name = "TensorSummaryV2",
     .inputs = "tag: string, tensor: T, serialized_summary_metadata: string",
     .outputs = "summary: string",
     .attrs = "T: type",
     IO(tensor_summary_v2),
     .effect = TFC_EFFECT_SAVE},
    {.name = "ImageSummary",
     .inputs = "tag: string, tensor: T",
     .outputs = "summary: string",
     .attrs = "max_images: int >= 1 = 3, T: {uint8, float, half, double} = float, bad_color: tensor",
     IO(image_summary),
     .effect = TFC_EFFECT_SAVE},
    {.name = "AudioSummary",
     .inputs = "tag: string, tensor: float",
     .outputs = "summary: string",
     .attrs = "sample_rate: float, max_outputs: int >= 1 = 3",
     IO(audio_summary),
     .effect = TFC_EFFECT_SAVE},
    {.name = "AudioSummaryV2",
     .inputs = "tag: string, tensor: float, sample_rate: float",
     .outputs = "summary: string",
     .attrs = "max_outputs: int >= 1 = 3",
     IO(audio_summary_v2),
     .effect = TFC_EFFECT_SAVE},
    {.name = "MergeSummary",
     .inputs = "inputs: N * string",
     .outputs = "summary: string",
     .attrs = "N: int >= 1",
     IO(merge_summary),
     .effect = TFC_EFFECT_SAVE},
};
TFC_REGISTER_OPS(io_summary_rows);
