// Operations on strings, element by element: case, white space, length, joining, cutting, splitting. They work on bytes
// unless the op says UTF-8.
#include <locale.h>
#include <stdlib.h>
#include <wctype.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"
#include "runtime/ops/string_utf8.h"

static size_t encode(uint32_t v, char out[4]) {
  if (v < 0x80) return out[0] = (char)v, 1;
  size_t n = v < 0x800 ? 2 : v < 0x10000 ? 3 : 4;
  for (size_t i = n; i-- > 1; v >>= 6) out[i] = (char)(0x80 | (v & 63));
  out[0] = (char)((0xf00u >> n & 0xffu) | v);
  return n;
}
// Converts every letter of any alphabet to upper or lower case. Each stays one letter, except for sharp s, whose upper
// case is SS. Bytes that are no character become U+FFFD.
static tfc_status convert_utf8(tfc_str from, bool upper, locale_t locale, struct tfc_text *text) {
  for (size_t i = 0; i < from.size;) {
    uint32_t v = ops_next_utf8((const uint8_t *)from.data, from.size, &i);
    if (v == TFC_NONE) v = 0xfffd;
    if (upper && v == 0xdf) {
      tfc_text_add(text, TFC_STR("SS"));
    } else {
      char out[4];
      v = (uint32_t)(upper ? towupper_l((wint_t)v, locale) : towlower_l((wint_t)v, locale));
      tfc_text_add(text, (tfc_str){out, encode(v, out)});
    }
  }
  return text->failed ? tfc_status_no_memory("strings") : NULL;
}
static tfc_status each_utf8(struct tfc_kernel_ctx *ctx, bool upper) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  if (!locale) return tfc_status_make(TFC_UNIMPLEMENTED, "this system has no C.UTF-8 locale for the case of letters");
  for (int64_t i = 0; !s && i < tfc_tensor_elements(x); i++) {
    struct tfc_text text = {0};
    s = convert_utf8(tfc_tensor_get_string(x, i), upper, locale, &text);
    if (!s) s = tfc_tensor_set_text(y, i, &text);
    tfc_text_deinit(&text);
  }
  freelocale(locale);
  return s;
}
static bool is_utf8(const struct tfc_kernel_ctx *ctx) {
  return tfc_str_is(tfc_node_attr_string(ctx->graph, ctx->node, "encoding", ""), "utf-8");
}

// Makes a tensor of strings like `x`; `change` is applied to a copy of each.
static tfc_status each_string(struct tfc_kernel_ctx *ctx, void (*change)(char *text, size_t *size)) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++) {
    tfc_str from = tfc_tensor_get_string(x, i);
    char *copy = tfc_str_dup(from);
    size_t size = from.size;
    if (!copy) return tfc_status_no_memory("strings");
    change(copy, &size);
    const tfc_status status = tfc_tensor_set_string(y, i, (tfc_str){copy, size});
    free(copy);
    TFC_RETURN_IF_ERROR(status);
  }
  return NULL;
}
static void to_lower(char *text, size_t *size) {
  for (size_t i = 0; i < *size; i++)
    if (text[i] >= 'A' && text[i] <= 'Z') text[i] = (char)(text[i] + ('a' - 'A'));
}
static void to_upper(char *text, size_t *size) {
  for (size_t i = 0; i < *size; i++)
    if (text[i] >= 'a' && text[i] <= 'z') text[i] = (char)(text[i] - ('a' - 'A'));
}
static bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
static void strip(char *text, size_t *size) {
  size_t from = 0, to = *size;
  while (from < to && is_space(text[from])) from++;
  while (to > from && is_space(text[to - 1])) to--;
  memmove(text, text + from, to - from);
  *size = to - from;
}
static tfc_status string_lower(struct tfc_kernel_ctx *ctx) {
  return is_utf8(ctx) ? each_utf8(ctx, false) : each_string(ctx, to_lower);
}
static tfc_status string_upper(struct tfc_kernel_ctx *ctx) {
  return is_utf8(ctx) ? each_utf8(ctx, true) : each_string(ctx, to_upper);
}
static tfc_status string_strip(struct tfc_kernel_ctx *ctx) {
  return each_string(ctx, strip);
}

static bool begins_character(char c) {
  return ((unsigned char)c & 0xc0) != 0x80;
}
static int64_t characters(tfc_str s) {
  int64_t n = 0;
  for (size_t i = 0; i < s.size; i++) n += begins_character(s.data[i]);
  return n;
}
static bool in_characters(const struct tfc_kernel_ctx *ctx) {
  return tfc_str_is(tfc_node_attr_string(ctx->graph, ctx->node, "unit", "BYTE"), "UTF8_CHAR");
}
static tfc_status string_length(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &x->shape, &y));
  bool utf8 = in_characters(ctx);
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++) {
    tfc_str s = tfc_tensor_get_string(x, i);
    ((int32_t *)y->data)[i] = (int32_t)(utf8 ? characters(s) : (int64_t)s.size);
  }
  return NULL;
}

// Joins the inputs element by element; they have one shape, or are scalars, which are repeated. Without inputs, the
// result is an empty string.
static tfc_status string_join(struct tfc_kernel_ctx *ctx) {
  tfc_str separator = tfc_node_attr_string(ctx->graph, ctx->node, "separator", "");
  const struct tfc_shape scalar = TFC_SHAPE_SCALAR, *like = &scalar;
  struct tfc_tensor *y = NULL;
  for (uint32_t k = 0; k < ctx->input_count; k++)
    if (ctx->inputs[k]->shape.rank != 0) {
      TFC_KERNEL_CHECK(like->rank == 0 || tfc_shape_equal(like, &ctx->inputs[k]->shape),
                       "Input shapes do not match: %s vs. %s", tfc_shape_show(like, (char[TFC_SHAPE_TEXT]){0}),
                       tfc_shape_show(&ctx->inputs[k]->shape, (char[TFC_SHAPE_TEXT]){0}));
      like = &ctx->inputs[k]->shape;
    }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, like, &y));
  for (int64_t i = 0; i < tfc_tensor_elements(y); i++) {
    struct tfc_text text = {0};
    for (uint32_t k = 0; k < ctx->input_count; k++) {
      if (k) tfc_text_add(&text, separator);
      tfc_text_add(&text, tfc_tensor_get_string(ctx->inputs[k], ctx->inputs[k]->shape.rank == 0 ? 0 : i));
    }
    const tfc_status s = tfc_tensor_set_text(y, i, &text);
    tfc_text_deinit(&text);
    TFC_RETURN_IF_ERROR(s);
  }
  return NULL;
}

// Inputs: (inputs, reduction_indices). The first index in the list varies fastest; without indices, all dimensions are
// joined and the last one varies fastest.
static tfc_status reduce_join(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *indices = ctx->inputs[1];
  tfc_str separator = tfc_node_attr_string(ctx->graph, ctx->node, "separator", "");
  bool keep = tfc_node_attr_bool(ctx->graph, ctx->node, "keep_dims", false), reduced[TFC_MAX_RANK] = {0};
  int axes[TFC_MAX_RANK], count = 0, rank = x->shape.rank;
  for (int64_t i = 0; i < tfc_tensor_elements(indices); i++) {
    int64_t axis = tfc_tensor_int(indices, i);
    TFC_KERNEL_CHECK(axis >= -rank && axis < rank, "Invalid reduction dimension %lld for input with %d dimension(s)",
                     (long long)axis, rank);
    if (axis < 0) axis += rank;
    TFC_KERNEL_CHECK(!reduced[axis], "Duplicate reduction dimension %lld", (long long)axis);
    reduced[axis] = true;
    axes[count++] = (int)axis;
  }
  struct tfc_shape shape = TFC_SHAPE_SCALAR;
  int64_t strides[TFC_MAX_RANK], n = 1;
  tfc_shape_strides(&x->shape, strides);
  for (int k = 0; k < rank; k++) {
    if (!reduced[k])
      shape.dims[shape.rank++] = x->shape.dims[k];
    else if (keep)
      shape.dims[shape.rank++] = 1;
    if (reduced[k]) n *= x->shape.dims[k];
  }
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &shape, &y));
  for (int64_t i = 0; i < tfc_tensor_elements(y); i++) {
    int64_t base = 0, rest = i;
    for (int k = rank; k-- > 0;)
      if (!reduced[k]) base += rest % x->shape.dims[k] * strides[k], rest /= x->shape.dims[k];
    struct tfc_text text = {0};
    for (int64_t j = 0; j < n; j++) {
      int64_t at = base, left = j;
      for (int a = 0; a < count; a++)
        at += left % x->shape.dims[axes[a]] * strides[axes[a]], left /= x->shape.dims[axes[a]];
      if (j) tfc_text_add(&text, separator);
      tfc_text_add(&text, tfc_tensor_get_string(x, at));
    }
    const tfc_status s = tfc_tensor_set_text(y, i, &text);
    tfc_text_deinit(&text);
    TFC_RETURN_IF_ERROR(s);
  }
  return NULL;
}

// Returns the index of the element of `operand` that element `i` of the result (of shape `s`) is computed from, if the
// operand is broadcast to that shape. Both indices are those of row-major order.
static int64_t broadcast_index(const struct tfc_shape *s, const struct tfc_shape *operand, int64_t i) {
  int64_t at = 0, strides[TFC_MAX_RANK];
  tfc_shape_strides(operand, strides);
  for (int k = s->rank, o = operand->rank; k-- > 0 && o-- > 0;) {
    if (operand->dims[o] != 1) at += i % s->dims[k] * strides[o];
    i /= s->dims[k];
  }
  return at;
}

static size_t offset_of_character(tfc_str s, int64_t n) {
  size_t i = 0;
  for (; i < s.size; i++)
    if (begins_character(s.data[i]) && n-- == 0) break;
  return i;
}

// Inputs: (input, pos, len), broadcast.
static tfc_status substr(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *pos = ctx->inputs[1], *len = ctx->inputs[2];
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(tfc_shape_equal(&pos->shape, &len->shape), "pos and len should have the same shape, got: %s vs. %s",
                   tfc_shape_show(&pos->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&len->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&x->shape, &pos->shape, &shape));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &shape, &y));
  bool utf8 = in_characters(ctx);
  for (int64_t i = 0; i < tfc_tensor_elements(y); i++) {
    tfc_str s = tfc_tensor_get_string(x, broadcast_index(&shape, &x->shape, i));
    int64_t at = broadcast_index(&shape, &pos->shape, i);
    int64_t from = tfc_tensor_int(pos, at), n = tfc_tensor_int(len, at);
    int64_t size = utf8 ? characters(s) : (int64_t)s.size;
    // A negative length means everything if counted in bytes, and nothing if counted in characters.
    TFC_KERNEL_CHECK(from <= size && from >= -size && !(utf8 && from < 0 && n < 0),
                     "pos %lld out of range for string '%.*s' at index %lld", (long long)from, TFC_STR_ARG(s),
                     (long long)i);
    if (from < 0) from += size;
    int64_t to = n < 0 ? (utf8 ? from : size) : n > size - from ? size : from + n;
    tfc_str part = utf8 ? tfc_str_sub(s, offset_of_character(s, from), offset_of_character(s, to))
                        : tfc_str_sub(s, (size_t)from, (size_t)to);
    TFC_RETURN_IF_ERROR(tfc_tensor_set_string(y, i, part));
  }
  return NULL;
}

// Splits one string and calls `got` for each piece.
static void split_one(tfc_str s, tfc_str separator, int64_t most, void (*got)(void *arg, tfc_str piece), void *arg) {
  if (separator.size == 0 && most != 0) { // splits at runs of white space
    size_t at = 0;
    for (int64_t pieces = 0;; pieces++) {
      while (at < s.size && is_space(s.data[at])) at++;
      // The last piece is the rest, even if that is empty.
      if (pieces == most) return got(arg, tfc_str_sub(s, at, s.size));
      if (at == s.size) return;
      size_t end = at;
      while (end < s.size && !is_space(s.data[end])) end++;
      got(arg, tfc_str_sub(s, at, end));
      at = end;
    }
  }
  size_t at = 0;
  for (int64_t pieces = 0; most < 0 || pieces < most; pieces++) {
    const char *hit = s.size > at ? memmem(s.data + at, s.size - at, separator.data, separator.size) : NULL;
    if (!hit) break;
    got(arg, tfc_str_sub(s, at, (size_t)(hit - s.data)));
    at = (size_t)(hit - s.data) + separator.size;
  }
  got(arg, tfc_str_sub(s, at, s.size));
}
struct pieces {
  int64_t row, column, count, widest;
  int64_t *indices; // NULL: only count
  struct tfc_tensor *values;
  tfc_status failure;
};
static void got_piece(void *arg, tfc_str piece) {
  struct pieces *p = arg;
  if (p->indices) {
    p->indices[2 * p->count] = p->row;
    p->indices[2 * p->count + 1] = p->column;
    if (!p->failure) p->failure = tfc_tensor_set_string(p->values, p->count, piece);
  }
  p->count++;
  if (++p->column > p->widest) p->widest = p->column;
}
// Inputs: (input [n], sep); outputs: indices [pieces, 2], values [pieces], shape [2].
// Splits at every byte in `delimiters`; if there are none, each byte is a piece.
static void split_any(tfc_str s, tfc_str delimiters, bool skip_empty, void (*got)(void *arg, tfc_str piece),
                      void *arg) {
  for (size_t from = 0, at = 0; s.size && at <= s.size; at++) {
    bool cut = at == s.size || (delimiters.size && memchr(delimiters.data, s.data[at], delimiters.size));
    if (!delimiters.size && at < s.size) got(arg, tfc_str_sub(s, at, at + 1));
    if (!delimiters.size || !cut) continue;
    if (at > from || !skip_empty) got(arg, tfc_str_sub(s, from, at));
    from = at + 1;
  }
}
static tfc_status split_strings(struct tfc_kernel_ctx *ctx, bool any) {
  const struct tfc_tensor *x = ctx->inputs[0];
  TFC_KERNEL_CHECK(x->shape.rank == 1, "input must be a vector, got shape: %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 0, "sep must be a scalar");
  tfc_str separator = tfc_tensor_get_string(ctx->inputs[1], 0);
  int64_t most = tfc_node_attr_int(ctx->graph, ctx->node, "maxsplit", -1), n = tfc_tensor_elements(x);
  bool skip = tfc_node_attr_bool(ctx->graph, ctx->node, "skip_empty", true);
  struct pieces p = {0};
  struct tfc_tensor *indices = NULL, *shape = NULL;
  for (int pass = 0; pass < 2; pass++) {
    if (pass) {
      TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT64, &TFC_SHAPE(p.count, 2), &indices));
      TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, TFC_STRING, &TFC_SHAPE(p.count), &p.values));
      p.indices = indices->data;
      p.count = 0;
      if (indices->size == 0) break;
    }
    for (p.row = 0; p.row < n; p.row++) {
      p.column = 0;
      if (any)
        split_any(tfc_tensor_get_string(x, p.row), separator, skip, got_piece, &p);
      else
        split_one(tfc_tensor_get_string(x, p.row), separator, most, got_piece, &p);
    }
  }
  TFC_RETURN_IF_ERROR(p.failure);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2, TFC_INT64, &TFC_SHAPE(2), &shape));
  ((int64_t *)shape->data)[0] = n;
  ((int64_t *)shape->data)[1] = p.widest;
  return NULL;
}
static tfc_status string_split(struct tfc_kernel_ctx *ctx) {
  return split_strings(ctx, false);
}
static tfc_status string_split_any(struct tfc_kernel_ctx *ctx) {
  return split_strings(ctx, true);
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static tfc_status shape_join(struct tfc_shape_ctx *ctx) {
  struct tfc_shape out = TFC_SHAPE_SCALAR;
  for (uint32_t i = 0; i < ctx->node->input_count; i++) {
    const struct tfc_shape *s = ctx->inputs[i];
    if (s->rank == 0) continue;
    if (s->rank < 0) {
      out = out.rank == 0 ? TFC_SHAPE_UNKNOWN : out;
      continue;
    }
    if (out.rank <= 0) {
      out = *s;
    } else {
      struct tfc_shape merged;
      TFC_RETURN_IF_ERROR(tfc_shape_merge(&out, s, &merged));
      out = merged;
    }
  }
  ctx->outputs[0] = out;
  return NULL;
}
static tfc_status shape_reduce_join(struct tfc_shape_ctx *ctx) {
  const struct tfc_tensor *indices = ctx->input_values ? ctx->input_values[1] : NULL;
  const struct tfc_shape *x = ctx->inputs[0];
  bool keep = tfc_node_attr_bool(ctx->graph, ctx->node, "keep_dims", false), reduced[TFC_MAX_RANK] = {0};
  ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  if (ctx->inputs[1]->rank > 1)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "reduction_indices must be a vector or a scalar");
  if (!indices && keep && x->rank >= 0) ctx->outputs[0] = tfc_shape_unknown_of_rank(x->rank);
  if (!indices || x->rank < 0) return NULL;
  for (int64_t i = 0; i < tfc_tensor_elements(indices); i++) {
    int64_t axis = tfc_tensor_int(indices, i);
    if (axis < -x->rank || axis >= x->rank)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "reduction dimension %lld of %d", (long long)axis, x->rank);
    reduced[axis < 0 ? axis + x->rank : axis] = true;
  }
  struct tfc_shape out = TFC_SHAPE_SCALAR;
  for (int k = 0; k < x->rank; k++)
    if (!reduced[k])
      out.dims[out.rank++] = x->dims[k];
    else if (keep)
      out.dims[out.rank++] = 1;
  ctx->outputs[0] = out;
  return NULL;
}
static tfc_status shape_substr(struct tfc_shape_ctx *ctx) {
  return tfc_shape_broadcast(ctx->inputs[0], ctx->inputs[1], &ctx->outputs[0]);
}
static tfc_status shape_split(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE(TFC_DIM_UNKNOWN, 2);
  ctx->outputs[1] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  ctx->outputs[2] = TFC_SHAPE(2);
  return NULL;
}

#define STRING(shape_, kernel_)                                                                                        \
  .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = shape_, .kernel = kernel_
static const struct tfc_op_def string_ops_rows[] = {
    {.name = "StringLower",
     .inputs = "input: string",
     .outputs = "output: string",
     .attrs = "encoding: string = ''",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(ops_shape_same, string_lower)},
    {.name = "StringUpper",
     .inputs = "input: string",
     .outputs = "output: string",
     .attrs = "encoding: string = ''",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(ops_shape_same, string_upper)},
    {.name = "StringStrip",
     .inputs = "input: string",
     .outputs = "output: string",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(ops_shape_same, string_strip)},
    {.name = "StringLength",
     .inputs = "input: string",
     .outputs = "output: int32",
     .attrs = "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(ops_shape_same, string_length)},
    {.name = "StringJoin",
     .inputs = "inputs: N * string",
     .outputs = "output: string",
     .attrs = "N: int >= 0, separator: string = ''",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(shape_join, string_join)},
    {.name = "ReduceJoin",
     .inputs = "inputs: string, reduction_indices: int32",
     .outputs = "output: string",
     .attrs = "keep_dims: bool = false, separator: string = ''",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(shape_reduce_join, reduce_join)},
    {.name = "Substr",
     .inputs = "input: string, pos: T, len: T",
     .outputs = "output: string",
     .attrs = "T: {int32, int64}, unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(shape_substr, substr)},
    {.name = "StringSplitV2",
     .inputs = "input: string, sep: string",
     .outputs = "indices: int64, values: string, shape: int64",
     .attrs = "maxsplit: int = -1",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(shape_split, string_split)},
    {.name = "StringSplit",
     .inputs = "input: string, delimiter: string",
     .outputs = "indices: int64, values: string, shape: int64",
     .attrs = "skip_empty: bool = true",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     STRING(shape_split, string_split_any)},
};
TFC_REGISTER_OPS(string_ops_rows);
