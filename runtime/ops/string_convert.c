// Operations that convert strings from and to numbers, bytes and base64, or hash them into buckets.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"
#include "runtime/ops/string_hash.h"
#include "runtime/ops/string_number.h"

static tfc_status hash_bucket(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  int64_t buckets = tfc_node_attr_int(ctx->graph, ctx->node, "num_buckets", 1);
  TFC_KERNEL_CHECK(buckets > 0, "num_buckets must be positive");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT64, &x->shape, &y));
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++)
    ((int64_t *)y->data)[i] = (int64_t)(tfc_fingerprint64(tfc_tensor_get_string(x, i)) % (uint64_t)buckets);
  return NULL;
}

static bool number_of(const char *text, tfc_dtype type, void *out) {
  char *end;
  while (*text == ' ' || (*text >= '\t' && *text <= '\r')) text++;
  if (!*text) return false;
  errno = 0;
  switch ((int)type) {
  case TFC_FLOAT: *(float *)out = strtof(text, &end); break;
  case TFC_DOUBLE: *(double *)out = strtod(text, &end); break;
  default: {
    long long v = strtoll(text, &end, 10);
    if (errno == ERANGE || (type == TFC_INT32 && (v < INT32_MIN || v > INT32_MAX))) return false;
    if (type == TFC_INT32)
      *(int32_t *)out = (int32_t)v;
    else
      *(int64_t *)out = v;
  }
  }
  if (end == text) return false;
  while (*end == ' ' || (*end >= '\t' && *end <= '\r')) end++;
  return *end == 0;
}
bool tfc_string_number(tfc_str text, tfc_dtype type, void *out) {
  char *whole = tfc_str_dup(text);
  bool ok = whole && strlen(whole) == text.size && number_of(whole, type, out);
  free(whole);
  return ok;
}
static tfc_status string_to_number(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, &x->shape, &y));
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++) {
    tfc_str s = tfc_tensor_get_string(x, i);
    bool ok = tfc_string_number(s, type, (char *)y->data + (size_t)i * tfc_dtype_size(type));
    TFC_KERNEL_CHECK(ok, "StringToNumberOp could not correctly convert string: %.*s", TFC_STR_ARG(s));
  }
  return NULL;
}

// --- AsString ----------------------------------------------------------------------------------------------------
struct format {
  char ints[24], floats[24], complexes[56];
};
static tfc_status make_format(struct tfc_kernel_ctx *ctx, struct format *out) {
  int64_t precision = tfc_node_attr_int(ctx->graph, ctx->node, "precision", -1);
  int64_t width = tfc_node_attr_int(ctx->graph, ctx->node, "width", -1);
  bool scientific = tfc_node_attr_bool(ctx->graph, ctx->node, "scientific", false);
  bool shortest = tfc_node_attr_bool(ctx->graph, ctx->node, "shortest", false);
  tfc_str fill = tfc_node_attr_string(ctx->graph, ctx->node, "fill", "");
  TFC_KERNEL_CHECK(fill.size <= 1 && (fill.size == 0 || strchr("0 +-", fill.data[0])),
                   "Fill argument not supported: "
                   "\"%.*s\"",
                   TFC_STR_ARG(fill));
  TFC_KERNEL_CHECK(width <= 4096 && precision <= 4096, "width and precision must be at most 4096");
  TFC_KERNEL_CHECK(!(scientific && shortest), "Cannot select both scientific and shortest notation");
  char start[24], digits[12] = "";
  if (width > -1)
    snprintf(start, sizeof start, "%%%.*s%d", TFC_STR_ARG(fill), (int)width);
  else
    snprintf(start, sizeof start, "%%");
  if (precision > -1) snprintf(digits, sizeof digits, ".%d", (int)precision);
  char kind = scientific ? 'e' : shortest ? 'g' : 'f';
  snprintf(out->ints, sizeof out->ints, "%.12slld", start);
  snprintf(out->floats, sizeof out->floats, "%.10s%.8s%c", start, digits, kind);
  snprintf(out->complexes, sizeof out->complexes, "(%s,%s)", out->floats, out->floats);
  return NULL;
}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
// Formats are made above, from checked parts only.
static int show(char *text, size_t size, const struct format *f, const struct tfc_tensor *x, int64_t i) {
  switch ((int)x->dtype) {
  case TFC_BOOL: return snprintf(text, size, "%s", ((const bool *)x->data)[i] ? "true" : "false");
  case TFC_FLOAT: return snprintf(text, size, f->floats, (double)((const float *)x->data)[i]);
  case TFC_DOUBLE: return snprintf(text, size, f->floats, ((const double *)x->data)[i]);
  case TFC_HALF: return snprintf(text, size, f->floats, (double)tfc_half_to_float(((const uint16_t *)x->data)[i]));
  case TFC_BFLOAT16:
    return snprintf(text, size, f->floats, (double)tfc_bfloat16_to_float(((const uint16_t *)x->data)[i]));
  case TFC_COMPLEX64: {
    float _Complex v = ((const float _Complex *)x->data)[i];
    return snprintf(text, size, f->complexes, (double)creal(v), (double)cimag(v));
  }
  case TFC_COMPLEX128: {
    double _Complex v = ((const double _Complex *)x->data)[i];
    return snprintf(text, size, f->complexes, creal(v), cimag(v));
  }
  case TFC_UINT64: {
    uint64_t v = ((const uint64_t *)x->data)[i];
    if (v > INT64_MAX) return snprintf(text, size, "%llu", (unsigned long long)v);
    return snprintf(text, size, f->ints, (long long)v);
  }
  default: return snprintf(text, size, f->ints, (long long)tfc_tensor_int(x, i));
  }
}
#pragma GCC diagnostic pop
static tfc_status as_string(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct format f;
  char text[16384];
  if (x->dtype == TFC_STRING) return tfc_kernel_set_output(ctx, 0, x);
  TFC_KERNEL_CHECK(x->dtype != TFC_RESOURCE && x->dtype != TFC_VARIANT, "handles have no text");
  TFC_RETURN_IF_ERROR(make_format(ctx, &f));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &x->shape, &y));
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++) {
    int n = show(text, sizeof text, &f, x, i);
    TFC_KERNEL_CHECK(n >= 0 && n < (int)sizeof text, "element %lld makes too long a string", (long long)i);
    TFC_RETURN_IF_ERROR(tfc_tensor_set_string(y, i, (tfc_str){text, (size_t)n}));
  }
  return NULL;
}

// --- Base64, with '-' and '_' for the last two digits -------------------------------------------------------------
static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static tfc_status encode_base64(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  bool pad = tfc_node_attr_bool(ctx->graph, ctx->node, "pad", false);
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++) {
    tfc_str s = tfc_tensor_get_string(x, i);
    char *text = malloc(s.size / 3 * 4 + 5), *to = text;
    if (!text) return tfc_status_no_memory("converting strings");
    for (size_t k = 0; k < s.size; k += 3) {
      size_t left = s.size - k;
      uint32_t v = (uint32_t)(uint8_t)s.data[k] << 16 | (left > 1 ? (uint32_t)(uint8_t)s.data[k + 1] << 8 : 0) |
                   (left > 2 ? (uint8_t)s.data[k + 2] : 0);
      *to++ = digits64[v >> 18];
      *to++ = digits64[v >> 12 & 63];
      if (left > 1) *to++ = digits64[v >> 6 & 63];
      if (left > 2) *to++ = digits64[v & 63];
      if (pad && left == 1) *to++ = '=';
      if (pad && left <= 2) *to++ = '=';
    }
    const tfc_status status = tfc_tensor_set_string(y, i, (tfc_str){text, (size_t)(to - text)});
    free(text);
    TFC_RETURN_IF_ERROR(status);
  }
  return NULL;
}
static tfc_status decode_base64(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++) {
    tfc_str s = tfc_tensor_get_string(x, i);
    size_t n = s.size;
    while (n && s.size - n < 2 && s.data[n - 1] == '=') n--;
    TFC_KERNEL_CHECK(n % 4 != 1, "Invalid base64 string in element %lld", (long long)i);
    char *bytes = malloc(n / 4 * 3 + 4), *to = bytes;
    if (!bytes) return tfc_status_no_memory("converting strings");
    uint32_t v = 0;
    bool ok = true;
    for (size_t k = 0; k < n; k++) {
      const char *at = s.data[k] ? strchr(digits64, s.data[k]) : NULL;
      ok = ok && at;
      v = v << 6 | (at ? (uint32_t)(at - digits64) : 0);
      if (k % 4 == 3) *to++ = (char)(v >> 16), *to++ = (char)(v >> 8), *to++ = (char)v, v = 0;
    }
    if (n % 4 == 2) *to++ = (char)(v >> 4);
    if (n % 4 == 3) *to++ = (char)(v >> 10), *to++ = (char)(v >> 2);
    const tfc_status status = ok ? tfc_tensor_set_string(y, i, (tfc_str){bytes, (size_t)(to - bytes)}) : NULL;
    free(bytes);
    TFC_KERNEL_CHECK(ok, "Invalid character found in base64 (element %lld).", (long long)i);
    TFC_RETURN_IF_ERROR(status);
  }
  return NULL;
}

// Input: bytes [...], all of one length; output [..., length / size of an element].
static tfc_status decode_raw(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  bool swap = !tfc_node_attr_bool(ctx->graph, ctx->node, "little_endian", true);
  int64_t n = tfc_tensor_elements(x);
  size_t size = tfc_dtype_size(type), length = n ? tfc_tensor_get_string(x, 0).size : 0;
  TFC_KERNEL_CHECK(x->shape.rank < TFC_MAX_RANK, "too many dimensions");
  for (int64_t i = 1; i < n; i++)
    TFC_KERNEL_CHECK(tfc_tensor_get_string(x, i).size == length,
                     "DecodeRaw requires input strings to all be the same size, but element %lld has size %zu != %zu",
                     (long long)i, tfc_tensor_get_string(x, i).size, length);
  TFC_KERNEL_CHECK(length % size == 0,
                   "Input to DecodeRaw has length %zu that is not a multiple of %zu, the size of %s", length, size,
                   tfc_dtype_name(type));
  struct tfc_shape shape = x->shape;
  shape.dims[shape.rank++] = (int64_t)(length / size);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, &shape, &y));
  size_t part = tfc_dtype_is_complex(type) ? size / 2 : size; // the bytes that are swapped together
  for (int64_t i = 0; i < n; i++) {
    char *to = (char *)y->data + (size_t)i * length;
    if (length) memcpy(to, tfc_tensor_get_string(x, i).data, length);
    for (size_t k = 0; swap && k + part <= length; k += part)
      for (size_t b = 0; b < part / 2; b++) {
        char t = to[k + b];
        to[k + b] = to[k + part - 1 - b];
        to[k + part - 1 - b] = t;
      }
  }
  return NULL;
}
// As decode_raw, for strings that are first cut to fixed_length bytes, or filled up with zeros.
static tfc_status decode_padded_raw(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 0, "fixed_length must be a scalar");
  int64_t length = ops_scalar_int(ctx->inputs[1]), size = (int64_t)tfc_dtype_size(type);
  bool swap = !tfc_node_attr_bool(ctx->graph, ctx->node, "little_endian", true);
  TFC_KERNEL_CHECK(length > 0, "fixed_length must be greater than zero, it is %lld", (long long)length);
  TFC_KERNEL_CHECK(length % size == 0, "fixed_length (%lld) must be divisible by %lld, the size of %s",
                   (long long)length, (long long)size, tfc_dtype_name(type));
  TFC_KERNEL_CHECK(x->shape.rank < TFC_MAX_RANK, "too many dimensions");
  struct tfc_shape shape = x->shape;
  shape.dims[shape.rank++] = length / size;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, &shape, &y));
  if (y->size) memset(y->data, 0, y->size);
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++) {
    tfc_str text = tfc_tensor_get_string(x, i);
    char *to = (char *)y->data + i * length;
    if (text.size) memcpy(to, text.data, text.size < (size_t)length ? text.size : (size_t)length);
    for (int64_t k = 0; swap && k < length; k += size)
      for (int64_t b = 0; b < size / 2; b++) {
        char t = to[k + b];
        to[k + b] = to[k + size - 1 - b];
        to[k + size - 1 - b] = t;
      }
  }
  return NULL;
}
static tfc_status shape_decode_raw(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = *ctx->inputs[0];
  if (ctx->outputs[0].rank < 0) return NULL;
  if (ctx->outputs[0].rank == TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
  ctx->outputs[0].dims[ctx->outputs[0].rank++] = TFC_DIM_UNKNOWN;
  return NULL;
}

static tfc_status shape_decode_padded_raw(struct tfc_shape_ctx *ctx) {
  TFC_RETURN_IF_ERROR(shape_decode_raw(ctx));
  const struct tfc_tensor *length = ctx->input_values ? ctx->input_values[1] : NULL;
  int64_t size = (int64_t)tfc_dtype_size(ctx->graph->output_dtypes[ctx->node->output_begin]);
  if (!length || length->shape.rank != 0 || ctx->outputs[0].rank < 1) return NULL;
  int64_t n = ops_scalar_int(length);
  if (n <= 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "fixed_length must be greater than zero, it is %lld", (long long)n);
  if (n % size)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "fixed_length (%lld) must be divisible by %lld", (long long)n,
                           (long long)size);
  ctx->outputs[0].dims[ctx->outputs[0].rank - 1] = n / size;
  return NULL;
}

#define STRING(shape_, kernel_)                                                                                        \
  .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = shape_, .kernel = kernel_
static const struct tfc_op_def string_convert_rows[] = {
    {.name = "DecodePaddedRaw",
     .inputs = "input_bytes: string, fixed_length: int32",
     .outputs = "output: out_type",
     .attrs =
         "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}, little_endian: bool "
         "= true",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(shape_decode_padded_raw, decode_padded_raw)},
    {.name = "StringToHashBucketFast",
     .inputs = "input: string",
     .outputs = "output: int64",
     .attrs = "num_buckets: int >= 1",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(ops_shape_same, hash_bucket)},
    {.name = "StringToNumber",
     .inputs = "string_tensor: string",
     .outputs = "output: out_type",
     .attrs = "out_type: {float, double, int32, int64} = float",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(ops_shape_same, string_to_number)},
    {.name = "AsString",
     .inputs = "input: T",
     .outputs = "output: string",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, "
              "complex128, bool, variant, string}, precision: int = -1, scientific: bool = false, shortest: bool = "
              "false, width: int = -1, fill: string = ''",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(ops_shape_same, as_string)},
    {.name = "EncodeBase64",
     .inputs = "input: string",
     .outputs = "output: string",
     .attrs = "pad: bool = false",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(ops_shape_same, encode_base64)},
    {.name = "DecodeBase64",
     .inputs = "input: string",
     .outputs = "output: string",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(ops_shape_same, decode_base64)},
    {.name = "DecodeRaw",
     .inputs = "bytes: string",
     .outputs = "output: out_type",
     .attrs = "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, "
              "bfloat16}, little_endian: bool = true",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(shape_decode_raw, decode_raw)},
};
TFC_REGISTER_OPS(string_convert_rows);
