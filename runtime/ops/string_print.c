// Operations that show tensors as text: StringFormat, and Print and PrintV2, which write it to the log.
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <tgmath.h>

#include "runtime/base/log.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

static void add_escaped(struct tfc_text *out, tfc_str s) { // escaped as in C
  for (size_t i = 0; i < s.size; i++) {
    unsigned char c = (unsigned char)s.data[i];
    const char *at = c && c < 0x80 ? strchr("\nn\rr\tt\"\"''\\\\", c) : NULL;
    if (at)
      tfc_text_printf(out, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : c);
    else if (c < 0x20 || c >= 0x7f)
      tfc_text_printf(out, "\\%03o", c);
    else
      tfc_text_add(out, tfc_str_sub(s, i, i + 1));
  }
}
// Prints a number with as few digits as are always exact as text (FLT_DIG or DBL_DIG); with more if reading the text
// would not give the number back.
static void add_float(struct tfc_text *out, double v, bool narrow) {
  char text[40];
  if (isnan(v)) {
    tfc_text_add(out, signbit(v) ? TFC_STR("-nan") : TFC_STR("nan"));
    return;
  }
  snprintf(text, sizeof text, "%.*g", narrow ? FLT_DIG : DBL_DIG, v);
  if (narrow ? strtof(text, NULL) != (float)v : strtod(text, NULL) != v)
    snprintf(text, sizeof text, "%.*g", narrow ? FLT_DIG + 3 : DBL_DIG + 2, v);
  tfc_text_add(out, tfc_str_from(text));
}
static void add_element(struct tfc_text *out, const struct tfc_tensor *x, int64_t i, bool quoted) {
  switch ((int)x->dtype) {
  case TFC_STRING:
    if (!quoted) {
      add_escaped(out, tfc_tensor_get_string(x, i));
      return;
    }
    tfc_text_add(out, TFC_STR("\""));
    tfc_text_add(out, tfc_tensor_get_string(x, i));
    tfc_text_add(out, TFC_STR("\""));
    return;
  case TFC_BOOL: tfc_text_printf(out, "%d", ((const bool *)x->data)[i]); return;
  case TFC_FLOAT: add_float(out, (double)((const float *)x->data)[i], true); return;
  case TFC_DOUBLE: add_float(out, ((const double *)x->data)[i], false); return;
  case TFC_HALF: add_float(out, (double)tfc_half_to_float(((const uint16_t *)x->data)[i]), true); return;
  case TFC_BFLOAT16: add_float(out, (double)tfc_bfloat16_to_float(((const uint16_t *)x->data)[i]), true); return;
  case TFC_COMPLEX64:
  case TFC_COMPLEX128: tfc_text_add(out, TFC_STR("?")); return; // as TensorFlow shows it
  case TFC_UINT64: tfc_text_printf(out, "%llu", (unsigned long long)((const uint64_t *)x->data)[i]); return;
  default:
    if (x->dtype == TFC_RESOURCE || x->dtype == TFC_VARIANT)
      tfc_text_add(out, TFC_STR("<handle>"));
    else
      tfc_text_printf(out, "%lld", (long long)tfc_tensor_int(x, i));
  }
}

// StringFormat shows the first and the last `ends` elements of each dimension.
static void add_ends(struct tfc_text *out, const struct tfc_tensor *x, int d, int64_t at, int64_t ends) {
  int rank = x->shape.rank;
  if (d == rank) {
    add_element(out, x, at, true);
    return;
  }
  int64_t n = x->shape.dims[d], step = 1, last = n - ends > ends ? n - ends : ends;
  for (int e = d + 1; e < rank; e++) step *= x->shape.dims[e];
  tfc_text_add(out, TFC_STR("["));
  for (int64_t i = 0, shown = 0; i < n; i++) {
    bool gap = i == ends && n > 2 * ends;
    if (i >= ends && i < last && !gap) continue;
    if (shown++ > 0 || gap) {
      // Between elements is a space; between rows are newlines, and a space for each open bracket.
      for (int k = 0; d < rank - 1 && k < rank - d - 1; k++) tfc_text_add(out, TFC_STR("\n"));
      for (int k = 0; k <= (d < rank - 1 ? d : 0); k++) tfc_text_add(out, TFC_STR(" "));
    }
    if (gap)
      tfc_text_add(out, TFC_STR("..."));
    else
      add_ends(out, x, d + 1, at + i * step, ends);
  }
  tfc_text_add(out, TFC_STR("]"));
}
// Print shows the first `limit` elements.
static void add_first(struct tfc_text *out, const struct tfc_tensor *x, int d, int64_t *at, int64_t limit) {
  if (*at >= limit) return;
  int64_t n = d < x->shape.rank ? x->shape.dims[d] : 1;
  if (d >= x->shape.rank - 1) {
    for (int64_t i = 0; i < n && *at < limit; i++) {
      if (i > 0) tfc_text_add(out, TFC_STR(" "));
      add_element(out, x, (*at)++, false);
    }
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    bool opened = *at < limit;
    if (opened) tfc_text_add(out, TFC_STR("["));
    add_first(out, x, d + 1, at, limit);
    if (opened) tfc_text_add(out, TFC_STR("]"));
  }
}

static tfc_status string_format(struct tfc_kernel_ctx *ctx) {
  tfc_str rest = tfc_node_attr_string(ctx->graph, ctx->node, "template", "%s");
  tfc_str mark = tfc_node_attr_string(ctx->graph, ctx->node, "placeholder", "%s");
  int64_t summarize = tfc_node_attr_int(ctx->graph, ctx->node, "summarize", 3);
  struct tfc_tensor *y = NULL;
  struct tfc_text text = {0};
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE(), &y));
  TFC_KERNEL_CHECK(mark.size > 0, "the placeholder is empty");
  for (uint32_t i = 0;;) {
    size_t at = 0;
    while (at + mark.size <= rest.size && memcmp(rest.data + at, mark.data, mark.size) != 0) at++;
    bool found = at + mark.size <= rest.size;
    tfc_text_add(&text, tfc_str_sub(rest, 0, found ? at : rest.size));
    if (found != (i < ctx->input_count))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "num placeholders in template and num inputs must match (%u inputs)",
               ctx->input_count);
    if (!found) break;
    const struct tfc_tensor *x = ctx->inputs[i++];
    int64_t n = tfc_tensor_elements(x);
    if (tfc_dtype_is_complex(x->dtype)) {
      int64_t limit = summarize < 0 || summarize > n ? n : summarize;
      if (x->shape.rank) tfc_text_add(&text, TFC_STR("["));
      for (int64_t k = 0; k < limit; k++) tfc_text_add(&text, k ? TFC_STR(" ?") : TFC_STR("?"));
      if (n > limit) tfc_text_add(&text, TFC_STR("..."));
      if (x->shape.rank) tfc_text_add(&text, TFC_STR("]"));
    } else if (x->shape.rank == 0 && summarize == 0)
      tfc_text_add(&text, TFC_STR("..."));
    else if ((n && summarize) || x->dtype != TFC_BOOL) // a tensor without bools gets no brackets
      add_ends(&text, x, 0, 0, summarize < 0 || summarize > n ? n : summarize);
    rest = tfc_str_sub(rest, at + mark.size, rest.size);
  }
  TFC_TRY(s, tfc_tensor_set_text(y, 0, &text));
out:
  tfc_text_deinit(&text);
  return s;
}

static tfc_status print(struct tfc_kernel_ctx *ctx) {
  _Atomic int64_t *calls = ctx->node_state;
  int64_t first = tfc_node_attr_int(ctx->graph, ctx->node, "first_n", -1);
  int64_t summarize = tfc_node_attr_int(ctx->graph, ctx->node, "summarize", 3);
  TFC_RETURN_IF_ERROR(tfc_kernel_set_output(ctx, 0, ctx->inputs[0]));
  if (first >= 0 && atomic_fetch_add(calls, 1) >= first) return NULL;
  struct tfc_text text = {0};
  tfc_text_add(&text, tfc_node_attr_string(ctx->graph, ctx->node, "message", ""));
  for (uint32_t i = 1; i < ctx->input_count; i++) {
    const struct tfc_tensor *x = ctx->inputs[i];
    int64_t at = 0, n = tfc_tensor_elements(x), limit = summarize < 0 || summarize > n ? n : summarize;
    tfc_text_add(&text, TFC_STR("["));
    add_first(&text, x, 0, &at, limit);
    if (n > limit) tfc_text_add(&text, TFC_STR("..."));
    tfc_text_add(&text, TFC_STR("]"));
  }
  if (!text.failed) tfc_log(TFC_LOG_INFO, "%.*s", (int)text.size, text.data ? text.data : "");
  tfc_text_deinit(&text);
  return NULL;
}
static tfc_status print_v2(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  TFC_KERNEL_CHECK(x->shape.rank == 0, "Input is expected to be scalar, but got %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  tfc_str text = tfc_tensor_get_string(x, 0);
  tfc_log(TFC_LOG_INFO, "%.*s", TFC_STR_ARG(text));
  return NULL;
}
static tfc_status shape_print_v2(struct tfc_shape_ctx *ctx) {
  struct tfc_shape s;
  return ops_with_rank(ctx, 0, 0, &s);
}

static const struct tfc_op_def string_print_rows[] = {
    {.name = "StringFormat",
     .inputs = "inputs: T",
     .outputs = "output: string",
     .attrs = "T: list(type) >= 0, template: string = '%s', placeholder: string = '%s', summarize: int = 3",
     .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .shape = ops_shape_scalar,
     .kernel = string_format},
    {.name = "Print",
     .inputs = "input: T, data: U",
     .outputs = "output: T",
     .attrs = "T: type, U: list(type) >= 0, message: string = '', first_n: int = -1, summarize: int = 3",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST,
     .node_state = sizeof(int64_t),
     .shape = ops_shape_same,
     .kernel = print,
     .gradient = ops_grad_identity},
    {.name = "PrintV2",
     .inputs = "input: string",
     .outputs = "",
     .attrs = "output_stream: string = 'stderr', end: string = '\n'",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .shape = shape_print_v2,
     .kernel = print_v2},
};
TFC_REGISTER_OPS(string_print_rows);
