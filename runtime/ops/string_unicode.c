// Operations on code points: UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode, UnicodeTranscode, for UTF-8,
// UTF-16-BE and UTF-32-BE. Bytes that are no character are replaced (once for each longest beginning of one), left out,
// or an error.
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/row.h"
#include "runtime/ops/splits.h"
#include "runtime/ops/string_utf8.h"

enum encoding { UTF_8, UTF_16_BE, UTF_32_BE, OTHER };
struct unicode {
  enum encoding from, to;
  bool strict, ignore, controls; // controls: replace control characters too
  uint32_t replacement;
};
static enum encoding encoding_of(tfc_str name) {
  static const char *const names[] = {"UTF-8", "UTF-16-BE", "UTF-32-BE"};
  for (int i = 0; i < 3; i++)
    if (tfc_str_is(name, names[i])) return (enum encoding)i;
  return OTHER;
}
static tfc_status prepare(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct unicode, u);
  const struct tfc_graph *g = ctx->graph;
  const struct tfc_node *n = ctx->node;
  tfc_str from = tfc_node_attr_string(g, n, "input_encoding", "UTF-8");
  tfc_str errors = tfc_node_attr_string(g, n, "errors", "replace");
  u->from = encoding_of(from);
  u->to = encoding_of(tfc_node_attr_string(g, n, "output_encoding", "UTF-8"));
  if (u->from == OTHER || u->to == OTHER)
    return tfc_status_make(TFC_UNIMPLEMENTED, "the encoding %.*s is not supported", TFC_STR_ARG(from));
  u->strict = tfc_str_is(errors, "strict");
  u->ignore = tfc_str_is(errors, "ignore");
  u->controls = tfc_node_attr_bool(g, n, "replace_control_characters", false);
  u->replacement = (uint32_t)tfc_node_attr_int(g, n, "replacement_char", 0xfffd);
  TFC_KERNEL_CHECK(u->replacement <= 0x10ffff, "replacement_char out of unicode codepoint range");
  return NULL;
}
static bool is_character(uint32_t v) {
  return v <= 0x10ffff && (v < 0xd800 || v > 0xdfff);
}
// Whether v is a character, and not one to which Unicode will never give a meaning.
static bool is_assignable(uint32_t v) {
  return is_character(v) && (v < 0xfdd0 || (v > 0xfdef && (v & 0xfffe) != 0xfffe));
}
static uint32_t next_wide(const uint8_t *s, size_t size, size_t *at, size_t unit) {
  uint32_t v = 0;
  if (size - *at < unit) {
    *at = size;
    return TFC_NONE;
  }
  for (size_t i = 0; i < unit; i++) v = v << 8 | s[(*at)++];
  if (unit == 4) return is_character(v) ? v : TFC_NONE;
  if (v < 0xd800 || v > 0xdfff) return v;
  if (v < 0xdc00 && size - *at < 2) *at = size; // a pair that is cut short counts as one error
  if (v >= 0xdc00 || *at == size) return TFC_NONE;
  uint32_t second = (uint32_t)s[*at] << 8 | s[*at + 1];
  if (second < 0xdc00 || second > 0xdfff) return TFC_NONE;
  *at += 2;
  return 0x10000 + ((v - 0xd800) << 10) + (second - 0xdc00);
}
struct characters {
  int32_t *values;
  int64_t *starts; // [count]: where each begins, in bytes
  int64_t count, capacity;
};
static tfc_status characters_add(struct characters *c, uint32_t value, size_t start) {
  if (c->count == c->capacity) {
    int64_t more = c->capacity ? 2 * c->capacity : 64;
    int32_t *values = realloc(c->values, (size_t)more * sizeof *values);
    if (values) c->values = values;
    int64_t *starts = realloc(c->starts, (size_t)more * sizeof *starts);
    if (starts) c->starts = starts;
    if (!values || !starts) return tfc_status_no_memory(NULL);
    c->capacity = more;
  }
  c->values[c->count] = (int32_t)value;
  c->starts[c->count++] = (int64_t)start;
  return NULL;
}
static tfc_status decode(const struct unicode *u, tfc_str text, struct characters *c) {
  const uint8_t *s = (const uint8_t *)text.data;
  for (size_t at = 0; at < text.size;) {
    size_t start = at;
    uint32_t v = u->from == UTF_8 ? ops_next_utf8(s, text.size, &at)
                                  : next_wide(s, text.size, &at, u->from == UTF_16_BE ? 2 : 4);
    if (v == TFC_NONE) {
      TFC_KERNEL_CHECK(!u->strict, "Invalid formatting on input string");
      if (u->ignore) continue;
      v = u->replacement;
    } else if (u->controls && v <= 0x1f) {
      if (u->ignore) continue;
      v = u->replacement;
    }
    TFC_RETURN_IF_ERROR(characters_add(c, v, start));
  }
  return NULL;
}
static void encode(enum encoding to, uint32_t v, struct tfc_text *out) {
  char b[4];
  size_t n = 0;
  if (to == UTF_32_BE) {
    for (int shift = 24; shift >= 0; shift -= 8) b[n++] = (char)(v >> shift);
  } else if (to == UTF_16_BE) {
    uint32_t high = v >= 0x10000 ? 0xd800 + ((v - 0x10000) >> 10) : v, low = 0xdc00 + ((v - 0x10000) & 0x3ff);
    b[n++] = (char)(high >> 8), b[n++] = (char)high;
    if (v >= 0x10000) b[n++] = (char)(low >> 8), b[n++] = (char)low;
  } else if (v < 0x80) {
    b[n++] = (char)v;
  } else {
    int more = v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
    static const uint8_t leads[] = {0, 0xc0, 0xe0, 0xf0};
    b[n++] = (char)(leads[more] | v >> (6 * more));
    while (more-- > 0) b[n++] = (char)(0x80 | (v >> (6 * more) & 0x3f));
  }
  tfc_text_add(out, (tfc_str){b, n});
}

// Input: x with n strings; outputs: splits [n + 1], characters [m], and where each begins in its string [m].
static tfc_status unicode_decode(struct tfc_kernel_ctx *ctx) {
  const struct unicode *u = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *splits = NULL, *values = NULL, *starts = NULL;
  struct characters c = {0};
  int64_t n = tfc_tensor_elements(x);
  tfc_dtype type = tfc_node_attr_type(ctx->graph, ctx->node, "Tsplits", TFC_INT64);
  tfc_status s = NULL;
  TFC_TRY(s, tfc_kernel_output(ctx, 0, type, &TFC_SHAPE(n + 1), &splits));
  ops_set_split(splits, 0, 0);
  for (int64_t i = 0; i < n; i++) {
    TFC_TRY(s, decode(u, tfc_tensor_get_string(x, i), &c));
    ops_set_split(splits, i + 1, c.count);
  }
  TFC_TRY(s, tfc_kernel_output(ctx, 1, TFC_INT32, &TFC_SHAPE(c.count), &values));
  if (c.count) memcpy(values->data, c.values, (size_t)c.count * sizeof *c.values);
  if (ctx->output_count > 2) {
    TFC_TRY(s, tfc_kernel_output(ctx, 2, TFC_INT64, &TFC_SHAPE(c.count), &starts));
    if (c.count) memcpy(starts->data, c.starts, (size_t)c.count * sizeof *c.starts);
  }
out:
  free(c.values);
  free(c.starts);
  return s;
}
static tfc_status unicode_transcode(struct tfc_kernel_ctx *ctx) {
  const struct unicode *u = ctx->state;
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++) {
    struct characters c = {0};
    struct tfc_text text = {0};
    tfc_status s = decode(u, tfc_tensor_get_string(x, i), &c);
    for (int64_t k = 0; k < c.count && !s; k++) encode(u->to, (uint32_t)c.values[k], &text);
    if (!s) s = tfc_tensor_set_text(y, i, &text);
    tfc_text_deinit(&text);
    free(c.values);
    free(c.starts);
    TFC_RETURN_IF_ERROR(s);
  }
  return NULL;
}
// Inputs: values [m], splits [n + 1]; output: n strings.
static tfc_status unicode_encode(struct tfc_kernel_ctx *ctx) {
  const struct unicode *u = ctx->state;
  const struct tfc_tensor *values = ctx->inputs[0], *splits = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  int64_t n = tfc_tensor_elements(splits) - 1, count = tfc_tensor_elements(values);
  TFC_KERNEL_CHECK(splits->shape.rank == 1 && n >= 0, "input_splits must be a vector that is not empty");
  TFC_KERNEL_CHECK(tfc_tensor_int(splits, 0) == 0, "First value in input_splits must be zero.");
  TFC_KERNEL_CHECK(tfc_tensor_int(splits, n) == count,
                   "Last value in input_splits must be equal to the number of values.");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE(n), &y));
  for (int64_t i = 0; i < n; i++) {
    int64_t from = tfc_tensor_int(splits, i), to = tfc_tensor_int(splits, i + 1);
    TFC_KERNEL_CHECK(to >= from && to <= count, "Values in input_splits must be equal or in ascending order.");
    struct tfc_text text = {0};
    for (int64_t k = from; k < to; k++) {
      uint32_t v = (uint32_t)((const int32_t *)values->data)[k];
      if (!is_assignable(v)) {
        if (u->strict) {
          tfc_text_deinit(&text);
          return tfc_status_make(TFC_INVALID_ARGUMENT, "Code point is out of range for Unicode, or a noncharacter.");
        }
        if (!u->ignore) v = u->replacement;
        if (v > 0x10ffff) continue; // other invalid values are kept, surrogates too if the encoding has them
        if (!is_character(v) && u->to == UTF_8) v = 0xfffd;
      }
      encode(u->to, v, &text);
    }
    const tfc_status s = tfc_tensor_set_text(y, i, &text);
    tfc_text_deinit(&text);
    TFC_RETURN_IF_ERROR(s);
  }
  return NULL;
}
static tfc_status shape_decode(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  int64_t n = x->rank < 0 || !tfc_shape_is_static(x) ? TFC_DIM_UNKNOWN : tfc_shape_elements(x) + 1;
  ctx->outputs[0] = TFC_SHAPE(n);
  for (uint32_t i = 1; i < ctx->node->output_count; i++) ctx->outputs[i] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  return NULL;
}
static tfc_status shape_encode(struct tfc_shape_ctx *ctx) {
  struct tfc_shape values, splits;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 1, &values));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &splits));
  ctx->outputs[0] = TFC_SHAPE(splits.dims[0] > 0 ? splits.dims[0] - 1 : TFC_DIM_UNKNOWN);
  return NULL;
}

#define ERRORS                                                                                                         \
  "errors: {\"strict\", \"replace\", \"ignore\"} = \"replace\", replacement_char: int = 65533, "                       \
  "replace_control_characters: bool = false"
#define DECODE(more)                                                                                                   \
  .inputs = "input: string", .outputs = "row_splits: Tsplits, char_values: int32" more,                                \
  .attrs = "input_encoding: string, " ERRORS ", Tsplits: {int32, int64} = int64", .flags = TFC_OP_HOST,                \
  .shape = shape_decode, .prepare = prepare, .kernel = unicode_decode
static const struct tfc_op_def string_unicode_rows[] = {
    {.name = "UnicodeDecode", DECODE("")},
    {.name = "UnicodeDecodeWithOffsets", DECODE(", char_to_byte_starts: int64")},
    {.name = "UnicodeEncode",
     .inputs = "input_values: int32, input_splits: Tsplits",
     .outputs = "output: string",
     .attrs = "errors: {\"ignore\", \"replace\", \"strict\"} = \"replace\", "
              "output_encoding: {\"UTF-8\", \"UTF-16-BE\", \"UTF-32-BE\"}, replacement_char: int = 65533, "
              "Tsplits: {int32, int64} = int64",
     .flags = TFC_OP_HOST,
     .shape = shape_encode,
     .prepare = prepare,
     .kernel = unicode_encode},
    {.name = "UnicodeTranscode",
     .inputs = "input: string",
     .outputs = "output: string",
     .attrs = "input_encoding: string, output_encoding: {\"UTF-8\", \"UTF-16-BE\", \"UTF-32-BE\"}, " ERRORS,
     .flags = TFC_OP_HOST,
     .shape = ops_shape_same,
     .prepare = prepare,
     .kernel = unicode_transcode},
};
TFC_REGISTER_OPS(string_unicode_rows);
